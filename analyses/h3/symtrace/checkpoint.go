package symtrace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// CheckpointThread is a thread where the image is, if that is a checkpoint: in the middle of the
// run, with several threads.
type CheckpointThread struct {
	ID    arch.ThreadID
	State vex.State
	// Executed is how many instructions of its path the thread has executed, and LastRan orders
	// threads by the time when they ran last.
	Executed, LastRan uint64
	// Return is where the thread's function returns to; 0: it does not end so.
	Return uint64
	// Call is the call that the thread is in, if it is in one that is not followed.
	Call *PendingCall
}

// PendingCall is a call that is under way at a checkpoint.
type PendingCall struct {
	Function
	Return uint64
	// Arguments are those of a synchronization operation. Waits says that the thread waits in it,
	// and has done everything that comes before the wait.
	Arguments [3]uint64
	Waits     bool
}

// startAtCheckpoint makes the walkers of the threads at a checkpoint.
func (b *pass) startAtCheckpoint() {
	for i := range b.image.Threads {
		s := &b.image.Threads[i]
		b.startedThreads[s.ID] = true
		w := b.newThread(s.ID)
		w.machine.State, w.memory, w.returnAddress = s.State, symmem.New(b.image.peekChanged), s.Return
		w.signalStack.Unknown = true
		w.at = w.path.Advance(paths.Position{}, int(s.Executed))
		b.byPointer[s.State.Word(vex.OffsetFS)] = w
	}
	for id := range b.paths {
		if id <= b.image.LastThread {
			b.startedThreads[id] = true // some are gone
		}
	}
	for i, w := range b.threads {
		w.startStretch()
		w.pendingCall = b.image.Threads[i].Call
	}
}

// resumePendingCall continues with the call that the thread is in.
func (w *threadExec) resumePendingCall() error {
	in := w.pendingCall
	w.pendingCall = nil
	c := &functionCall{Function: in.Function, Call: Call{Return: in.Return, Name: in.Name}}
	c.returnAt, c.returned = w.path.FindBlock(w.at, in.Return)
	if !c.returned {
		w.noteLastCall(c)
		w.endPath(InCall)
		return nil
	}
	if err := w.restoreCalleeSaved(c.returnAt); err != nil {
		return err
	}
	if in.Role == Print {
		w.returnFromCall(c, w.pass.pool.Word(1, 64))
		return nil
	}
	if in.Role != Synchronize {
		w.returnFromCall(c, w.pass.pool.Word(in.Value, 64))
		return nil
	}
	o := &syncOperation{functionCall: c, thread: w, object: in.Arguments[0], waitsAlready: in.Waits}
	if in.waitsOnCondition() {
		o.second = in.Arguments[1]
	}
	ways := o.possibleEnds()
	w.otherOutcomes += len(ways) - 1
	w.tryWays(ways, false)
	return nil
}

// waitsOnCondition reports whether the operation waits on a condition variable.
func (s *PendingCall) waitsOnCondition() bool {
	switch s.Op {
	case event.OpCondWait, event.OpCondTimedWait, event.OpCondClockWait, event.OpC11CndWait:
		return true
	}
	return false
}

// calleeSaved are the registers that a function gives back as they were (System V ABI,
// figure 3.4), but for the stack pointer.
var calleeSaved = [...]int{3, 5, 12, 13, 14, 15}

// restoreCalleeSaved gives the thread the registers that it has after the call that it is in. The
// rest of the call is executed on private memory for that: it pops them from its stack.
func (w *threadExec) restoreCalleeSaved(end paths.Position) error {
	m := w.machine
	m.Memory = symmem.Known{Memory: w.memory.Fork()}
	if err := w.runBetween(&m, w.at, end); err != nil {
		return fmt.Errorf("thread %d cannot be followed out of the call that it is in at the checkpoint: %w", w.ID, err)
	}
	for _, r := range calleeSaved {
		w.machine.State.SetWord(vex.OffsetRAX+8*r, m.State.Word(vex.OffsetRAX+8*r))
	}
	w.machine.State.SetWord(offsetRSP, m.State.Word(offsetRSP)-8)
	return nil
}

// checkpointPrefix makes the events for the state at a checkpoint: which thread holds which lock,
// and which threads wait. Each thread's trace begins with these events, and all of them precede all
// other events: a barrier separates them, and they are totally ordered as the events of a core of
// their own.
type checkpointPrefix struct {
	pass  *pass
	core  arch.CoreID
	place uint64
}

// startBarrier is where that barrier would be.
const startBarrier = kernelObjects - wordDistance

// prependCheckpointEvents puts the events for the state at the checkpoint, or at the creation of the second thread, before the threads'
// traces.
func (b *pass) prependCheckpointEvents() {
	o := &checkpointPrefix{pass: b}
	for _, p := range b.paths {
		for _, s := range p.Blocks {
			o.core = max(o.core, s.Core+1)
		}
	}
	if len(b.image.Threads) == 0 {
		o.prependHeldLocks(b.threads[0])
		return
	}
	order := slices.Clone(b.threads[:len(b.image.Threads)])
	slices.SortStableFunc(order, func(x, y *threadExec) int {
		s, t := &b.image.Threads[x.number], &b.image.Threads[y.number]
		if s.isAsleep() != t.isAsleep() {
			return map[bool]int{true: -1, false: 1}[s.isAsleep()]
		}
		return cmp.Compare(s.LastRan, t.LastRan)
	})
	for _, w := range order {
		o.prependThread(w, o.heldLocks(w))
	}
}

// prependHeldLocks has the first thread begin with Lock events for the locks that it holds when it creates the second
// one. They precede all events of other threads.
func (o *checkpointPrefix) prependHeldLocks(w *threadExec) {
	held := o.heldLocks(w)
	for i := range held {
		held[i].Core, held[i].CoreInstructions, held[i].Thread, held[i].PC = o.core, uint64(i), w.number, w.events[0].PC
	}
	w.prependEvents(held)
}

// prependEvents puts events for the state at the start before all others of the thread.
func (w *threadExec) prependEvents(first []model.Event) {
	w.events = append(first, w.events...)
	w.coordinates = append(slices.Repeat([]Coordinate{{Named: true}}, len(first)), w.coordinates...)
}

func (s *CheckpointThread) isAsleep() bool {
	return s.Call != nil && s.Call.Waits && s.Call.waitsOnCondition()
}

// prependThread puts a thread's events before all others of it.
func (o *checkpointPrefix) prependThread(w *threadExec, held []model.Event) {
	in := o.pass.image.Threads[w.number].Call
	var first []model.Event
	if o.pass.image.Threads[w.number].isAsleep() {
		condition, mutex := o.pass.objectID(in.Arguments[0]), o.pass.objectID(in.Arguments[1])
		first = []model.Event{{Kind: model.Lock, Object: mutex}, {Kind: model.Sleep, Object: condition}, {Kind: model.Unlock, Object: mutex}}
	}
	first = append(first, held...)
	count := len(o.pass.image.Threads)
	first = append(first, model.Event{Kind: model.Arrive, Object: o.pass.objectID(startBarrier), Count: count})
	for i := range first {
		o.place++
		first[i].Core, first[i].CoreInstructions = o.core, o.place
	}
	behind := []model.Event{{Kind: model.Leave, Object: o.pass.objectID(startBarrier)}}
	if in != nil && in.Waits && in.Op == event.OpBarrierWait {
		at := in.Arguments[0]
		behind = append(behind, model.Event{Kind: model.Arrive, Object: o.pass.objectID(at), Count: o.pass.barrierCount(w, at)})
	}
	for i := range behind {
		behind[i].Core = o.core + 1 + arch.CoreID(w.number) // when it continues is not known
	}
	first = append(first, behind...)
	for i := range first {
		first[i].Thread, first[i].PC = w.number, arch.Addr(w.pass.image.Threads[w.number].State.Word(vex.OffsetRIP))
	}
	w.prependEvents(first)
}

// Where glibc has, in a mutex, how often it was taken by its owner, that and the kind,
// and in a lock for readers who writes.
const (
	mutexCount, mutexOwner, mutexKind = 4, 8, 16
	recursive                         = 1
	lockWriter                        = 24
)

func (m *Image) wordAt(addr uint64) uint32 {
	var b [4]byte
	m.peekChanged(addr, b[:])
	return uint32(symmem.ValueOf(b[:]).Lo)
}

// heldLocks has Lock events for the locks that a thread holds at the start, as far as they are
// used later. The owner of a mutex is in memory; a thread holds another lock if it later releases
// it without having taken it.
func (o *checkpointPrefix) heldLocks(w *threadExec) []model.Event {
	b := o.pass
	var all []model.Event
	returned := w.unmatchedUnlocks()
	for _, addr := range slices.Sorted(maps.Keys(b.lockKinds)) {
		e := model.Event{Kind: model.Lock, Object: b.objectIDs[addr]}
		n := returned[e.Object]
		switch b.lockKinds[addr] {
		case model.Mutex:
			if n = 0; b.image.wordAt(addr) != 0 && arch.ThreadID(b.image.wordAt(addr+mutexOwner)) == w.ID {
				n = 1
				if b.image.wordAt(addr+mutexKind)&3 == recursive {
					n = int(b.image.wordAt(addr + mutexCount))
				}
			}
		case model.ReadWriteLock:
			e.Shared = arch.ThreadID(b.image.wordAt(addr+lockWriter)) != w.ID
		}
		all = append(all, slices.Repeat([]model.Event{e}, n)...)
	}
	return all
}

// unmatchedUnlocks is how often a thread gives back each lock without having taken it.
func (w *threadExec) unmatchedUnlocks() map[event.ObjectID]int {
	depth, before := map[event.ObjectID]int{}, map[event.ObjectID]int{}
	for i := range w.events {
		switch e := &w.events[i]; {
		case e.Kind == model.Lock:
			depth[e.Object]++
		case e.Kind == model.Unlock && depth[e.Object] > 0:
			depth[e.Object]--
		case e.Kind == model.Unlock:
			before[e.Object]++
		}
	}
	return before
}
