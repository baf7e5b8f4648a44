package symtrace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Stand is a thread where the image is, if that is a checkpoint: in the middle of the
// run, with several threads.
type Stand struct {
	ID    event.ThreadID
	State vex.State
	// Passed is how many instructions of its path the thread has behind it, and Latest
	// orders threads by when they ran last.
	Passed, Latest uint64
	// Return is where the thread's function returns to; 0: it does not end so.
	Return uint64
	// In is the call that the thread is in, if it is in one that is not followed.
	In *Standing
}

// Standing is a call that is under way at a checkpoint.
type Standing struct {
	Function
	Return uint64
	// Arguments are those of a synchronization operation, and Begun tells that the thread
	// waits in it, and has done what comes before that.
	Arguments [3]uint64
	Begun     bool
}

// stand makes the walkers of the threads at a checkpoint.
func (b *builder) stand() {
	for i := range b.image.Threads {
		s := &b.image.Threads[i]
		b.taken[s.ID] = true
		w := b.walker(s.ID)
		w.machine.State, w.mem, w.magic = s.State, newView(b.image), s.Return
		w.at = w.path.after(position{}, int(s.Passed))
		b.byPointer[s.State.Word(vex.OffsetFS)] = w
	}
	for id := range b.paths {
		if id <= b.image.Last {
			b.taken[id] = true // some are gone
		}
	}
	for i, w := range b.walkers {
		w.stretch()
		w.standing = b.image.Threads[i].In
	}
}

// resumes goes on with the call that the thread is in.
func (w *walker) resumes() error {
	in := w.standing
	w.standing = nil
	c := &called{Function: in.Function, Call: Call{Return: in.Return, Name: in.Name}}
	c.end, c.over = w.path.find(w.at, in.Return)
	if !c.over {
		w.last(c)
		w.finish(InCall)
		return nil
	}
	if err := w.unwound(c.end); err != nil {
		return err
	}
	if in.Role == Print {
		w.returns(c, w.b.pool.Word(1, 64))
		return nil
	}
	if in.Role != Synchronize {
		w.returns(c, w.b.pool.Word(in.Value, 64))
		return nil
	}
	o := &operation{called: c, w: w, object: in.Arguments[0], begun: in.Begun}
	if in.waits() {
		o.second = in.Arguments[1]
	}
	ways := o.ways()
	w.outcomes += len(ways) - 1
	w.choose(ways, false)
	return nil
}

// waits tells that an operation waits on a condition.
func (s *Standing) waits() bool {
	switch s.Op {
	case event.OpCondWait, event.OpCondTimedWait, event.OpCondClockWait, event.OpC11CndWait:
		return true
	}
	return false
}

// calleeSaved are the registers that a function gives back as they were (System V ABI,
// figure 3.4), but for the stack pointer.
var calleeSaved = [...]int{3, 5, 12, 13, 14, 15}

// unwound gives the thread the registers that it has behind a call that it is in. What
// is left of the call is executed aside for that: it takes them from its stack.
func (w *walker) unwound(end position) error {
	m := w.machine
	m.Memory = aside{w.mem.clone()}
	for at := w.at; at.i < end.i; {
		pc, _ := w.path.pc(at)
		m.State.SetWord(vex.OffsetRIP, pc)
		n, size := w.path.left(at)
		b, err := w.b.lift(pc, n, size)
		if err != nil {
			return err
		}
		if _, _, err = m.Run(b.Block); err != nil {
			return fmt.Errorf("the call that thread %d is in cannot be left: %w", w.ID, err)
		}
		at = w.path.after(at, max(1, m.Count))
	}
	for _, r := range calleeSaved {
		w.machine.State.SetWord(vex.OffsetRAX+8*r, m.State.Word(vex.OffsetRAX+8*r))
	}
	w.machine.State.SetWord(offsetRSP, m.State.Word(offsetRSP)-8)
	return nil
}

// opening is what has happened before a checkpoint, as far as it matters behind it: who
// has which lock, and who waits. Each thread has these events first, and all of them
// come before everything else: a barrier keeps them apart, and they have one order, that
// of a core of their own.
type opening struct {
	b     *builder
	core  event.CoreID
	place uint64
}

// gate is where that barrier would be.
const gate = kernelObjects - wordDistance

// open puts what has happened before a checkpoint into the threads' traces.
func (b *builder) open() {
	if len(b.image.Threads) == 0 {
		return
	}
	o := &opening{b: b}
	for _, p := range b.paths {
		for _, s := range p.spots {
			o.core = max(o.core, s.core+1)
		}
	}
	order := slices.Clone(b.walkers[:len(b.image.Threads)])
	slices.SortStableFunc(order, func(x, y *walker) int {
		s, t := &b.image.Threads[x.number], &b.image.Threads[y.number]
		if s.asleep() != t.asleep() {
			return map[bool]int{true: -1, false: 1}[s.asleep()]
		}
		return cmp.Compare(s.Latest, t.Latest)
	})
	for _, w := range order {
		o.thread(w, o.held(w))
	}
}

func (s *Stand) asleep() bool { return s.In != nil && s.In.Begun && s.In.waits() }

// thread puts a thread's events before all others of it.
func (o *opening) thread(w *walker, held []model.Event) {
	in := o.b.image.Threads[w.number].In
	var first []model.Event
	if o.b.image.Threads[w.number].asleep() {
		condition, mutex := o.b.objectID(in.Arguments[0]), o.b.objectID(in.Arguments[1])
		first = []model.Event{{Kind: model.Lock, Object: mutex}, {Kind: model.Sleep, Object: condition}, {Kind: model.Unlock, Object: mutex}}
	}
	first = append(first, held...)
	count := len(o.b.image.Threads)
	first = append(first, model.Event{Kind: model.Arrive, Object: o.b.objectID(gate), Count: count})
	for i := range first {
		o.place++
		first[i].Core, first[i].Place = o.core, o.place
	}
	behind := []model.Event{{Kind: model.Leave, Object: o.b.objectID(gate)}}
	if in != nil && in.Begun && in.Op == event.OpBarrierWait {
		at := in.Arguments[0]
		behind = append(behind, model.Event{Kind: model.Arrive, Object: o.b.objectID(at), Count: o.b.barrier(w, at)})
	}
	for i := range behind {
		behind[i].Core = o.core + 1 + event.CoreID(w.number) // when it goes on is not known
	}
	first = append(first, behind...)
	for i := range first {
		first[i].Thread, first[i].Where = w.number, event.Addr(w.b.image.Threads[w.number].State.Word(vex.OffsetRIP))
	}
	w.events = append(first, w.events...)
	w.coords = append(slices.Repeat([]Coordinate{{Name: true}}, len(first)), w.coords...)
}

// lockKind is what a lock is to the C library.
type lockKind uint8

const (
	mutex lockKind = iota
	forReaders
	spinning
)

// kindOf is what the lock of an operation is.
func kindOf(op event.SyncOp) lockKind {
	switch op {
	case event.OpSpinLock, event.OpSpinTryLock, event.OpSpinUnlock:
		return spinning
	case event.OpRWReadLock, event.OpRWTryReadLock, event.OpRWTimedReadLock, event.OpRWWriteLock, event.OpRWTryWriteLock,
		event.OpRWTimedWriteLock, event.OpRWUnlock:
		return forReaders
	}
	return mutex
}

// Where glibc has, in a mutex, how often it was taken by its owner, that and the kind,
// and in a lock for readers who writes.
const (
	mutexCount, mutexOwner, mutexKind = 4, 8, 16
	recursive                         = 1
	lockWriter                        = 24
)

func (m *Image) word(addr uint64) uint32 {
	var b [4]byte
	m.peek(addr, b[:])
	return uint32(valueOf(b[:]).Lo)
}

// held are the locks that a thread has at the checkpoint, as far as anybody uses them
// behind it. The owner of a mutex is in memory; of other locks a thread has those that
// it gives back without having taken them.
func (o *opening) held(w *walker) []model.Event {
	b := o.b
	var all []model.Event
	returned := w.returned()
	for _, addr := range slices.Sorted(maps.Keys(b.lockKinds)) {
		e := model.Event{Kind: model.Lock, Object: b.ids[addr]}
		n := returned[e.Object]
		switch b.lockKinds[addr] {
		case mutex:
			if n = 0; b.image.word(addr) != 0 && event.ThreadID(b.image.word(addr+mutexOwner)) == w.ID {
				n = 1
				if b.image.word(addr+mutexKind)&3 == recursive {
					n = int(b.image.word(addr + mutexCount))
				}
			}
		case forReaders:
			e.Shared = event.ThreadID(b.image.word(addr+lockWriter)) != w.ID
		}
		all = append(all, slices.Repeat([]model.Event{e}, n)...)
	}
	return all
}

// returned is how often a thread gives back each lock without having taken it.
func (w *walker) returned() map[event.ObjectID]int {
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
