package epoch

import (
	"bytes"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched/partialorder"
)

const pageBytes = arch.PageSize

var noStop = arch.Stop{}

// tap is a Recording that watches a replica: its output, its failure, and
// where its stacks end. It is on the host's side: snapshots share it.
type tap struct {
	recorder.Nothing
	m        *machine.Machine
	recorder *partialorder.Recorder // of a thread-parallel replica, or nil
	failed   string
	output   []Output
	sent     map[arch.ThreadID]uint64
	gone     map[arch.ThreadID]arch.Addr
	exits    map[arch.ThreadID]bool      // the threads that have ended their process
	within   map[arch.ThreadID]arch.Addr // where the stack was when an operation began
	// under are the operations that a thread is in handlers of signals in, likewise.
	under map[arch.ThreadID][]arch.Addr
	reads *readSums // nil unless they are asked for
}

// SharedInSnapshot marks that copies of the machine's state share it.
func (*tap) BoundInSnapshot() {}

// floor is how far a thread's stack is in use, and the contents of the registers
// that functions preserve (System V ABI for AMD64, section 3.2.1): between two
// epochs no one needs the others. In an operation they all are the C
// library's.
type floor struct {
	sp     arch.Addr
	inside bool
	block  arch.Addr // the thread's control block
	pc     uint64
	kept   [6]uint64
}

func (t *tap) beginEpoch(from *Checkpoint) {
	t.failed, t.output = "", nil
	t.reads.beginEpoch(t.m.CPU())
	t.sent, t.gone, t.within = map[arch.ThreadID]uint64{}, map[arch.ThreadID]arch.Addr{}, map[arch.ThreadID]arch.Addr{}
	t.exits = map[arch.ThreadID]bool{}
	t.under = map[arch.ThreadID][]arch.Addr{}
	for id, f := range from.floors {
		if f.inside {
			t.within[id] = f.sp
		}
	}
}

// stream is a descriptor of the guest whose bytes stay with the replica.
type stream struct {
	tap *tap
	fd  int
}

// Write implements io.Writer.
func (s stream) Write(p []byte) (int, error) {
	list := s.tap.output
	if n := len(list); n > 0 && list[n-1].FD == s.fd {
		list[n-1].Data = append(list[n-1].Data, p...)
	} else {
		s.tap.output = append(list, Output{s.fd, bytes.Clone(p)})
	}
	return len(p), nil
}

// Begin implements recorder.Recording: a slice may begin where an operation does.
func (t *tap) Begin(r *recorder.Recorder, task *kernel.Task) { t.Stopped(r, task, noStop) }

// Stopped implements recorder.Recording.
func (t *tap) Stopped(_ *recorder.Recorder, task *kernel.Task, _ arch.Stop) {
	id := task.ID()
	began, known := t.within[id]
	t.reads.takeReads(t.m.CPU(), id, known)
	switch inside := t.m.InOperation(id); {
	case inside && !known:
		t.within[id] = t.stackPointer()
	case !inside && known:
		delete(t.within, id)
		t.clearLeftovers(task, began)
	}
}

// leftovers is how far below the stack an operation leaves data that depend on whether it had to wait.
const leftovers = 512

// returnAddress is the size of what a call stores on the stack.
const returnAddress = 8

// clearLeftovers clears what an operation has left below the stack of a thread that has just returned from it. It began
// with the stack at an address. A later function may have some of these bytes in its frame without ever storing there, and
// whether an operation waits differs between replicas.
func (t *tap) clearLeftovers(task *kernel.Task, began arch.Addr) {
	if sp := t.stackPointer(); sp == began+returnAddress {
		_ = task.Process().Space().CopyOut(sp-leftovers, make([]byte, leftovers)) // what is not mapped has no data
	}
}

// Leave takes the stores of a thread that is not the running one.
func (t *tap) Leave(on *recorder.Recorder) {
	id := on.At().Thread
	_, known := t.within[id]
	t.reads.takeReads(t.m.CPU(), id, known)
}

// stackPointer is the stack pointer of the loaded thread.
func (t *tap) stackPointer() arch.Addr {
	var r arch.Regs
	t.m.CPU().Regs(&r)
	return arch.Addr(r.GPR[arch.RSP])
}

// Issue implements recorder.Recording.
func (t *tap) Issue(_ *recorder.Recorder, task *kernel.Task, e *event.Syscall) {
	switch e.Number {
	case unix.SYS_RT_SIGRETURN:
		t.leaveHandler(e.Thread)
	case unix.SYS_EXIT:
		t.gone[e.Thread] = t.stackPointer()
	case unix.SYS_EXIT_GROUP:
		t.exits[e.Thread] = true
	default:
		t.sumOutput(task, e)
	}
}

// Signal implements recorder.Recording.
func (t *tap) Signal(_ *recorder.Recorder, e *event.Signal) {
	if sp, ok := t.within[e.Thread]; ok {
		t.under[e.Thread] = append(t.under[e.Thread], sp)
	}
}

// leaveHandler goes back to the operation that a thread's handler has interrupted, if there is
// one.
func (t *tap) leaveHandler(id arch.ThreadID) {
	if k := len(t.under[id]); k > 0 && t.m.InOperation(id) {
		t.within[id], t.under[id] = t.under[id][k-1], t.under[id][:k-1]
	}
}

// Return implements recorder.Recording.
func (t *tap) Return(_ *recorder.Recorder, task *kernel.Task, e *event.Syscall) {
	interrupted := int64(e.Result) == -int64(unix.EINTR)
	if t.recorder != nil {
		t.recorder.NoteTime(e.Thread, e.Number, t.m.Kernel().Now())
	}
	switch dependent := partialorder.IsTimeDependent(e.Number); {
	case t.recorder == nil || !dependent && !interrupted:
	case !t.m.InOperation(e.Thread):
		t.recorder.NoteWrites(e.Thread, e.Number, readAnswers(task, e))
	case dependent:
		t.recorder.NoteAnswer(e.Thread, partialorder.Answer{Number: e.Number, Result: e.Result, Writes: readAnswers(task, e)})
	}
}

// readAnswers reads the bytes that a call has written to say which time it is, or how much of a wait was left
// when a signal ended it.
func readAnswers(task *kernel.Task, e *event.Syscall) (list []event.Write) {
	for i := range linux.Arity(e.Number) {
		at, a := arch.Addr(e.Args[i]), &linux.Lookup(e.Number).Args[i]
		answers := a.Output == linux.OutputFixed && linux.Has(e.Number, linux.TimeDependent) || a.Output == linux.OutputLeft
		if at == 0 || !answers {
			continue
		}
		b := make([]byte, a.Size)
		if n := task.Process().Peek(at, b); n > 0 {
			list = append(list, event.Write{Addr: at, Data: b[:n]})
		}
	}
	return list
}

// Start implements recorder.Recording.
func (t *tap) Start(_ *recorder.Recorder, task *kernel.Task, e *event.Start) {
	if t.recorder != nil {
		maker := t.m.Kernel().Task(e.Parent)
		t.recorder.NoteBirth(e.Thread, e.Parent, maker == nil || maker.Process() != task.Process())
	}
}

// Exit implements recorder.Recording.
func (t *tap) Exit(_ *recorder.Recorder, e *event.Exit) {
	delete(t.within, e.Thread)
	delete(t.under, e.Thread)
	if signal := int(e.Status & 0x7f); partialorder.IsFailureSignal(signal) && t.failed == "" {
		t.failed = machine.SignalName(signal)
	}
}

// currentFloors is where the stacks of all threads end.
func (t *tap) currentFloors(k *kernel.Kernel) map[arch.ThreadID]floor {
	floors := map[arch.ThreadID]floor{}
	for _, task := range k.Tasks() {
		var r arch.Regs
		var fp [arch.FPSize]byte
		task.Registers(&r, &fp)
		g := &r.GPR
		f := floor{sp: arch.Addr(g[arch.RSP]), block: arch.Addr(r.FSBase)}
		if sp, ok := t.within[task.ID()]; ok {
			f.sp, f.inside = sp, true
		} else {
			f.pc, f.kept = r.RIP, [6]uint64{g[arch.RBX], g[arch.RBP], g[arch.R12], g[arch.R13], g[arch.R14], g[arch.R15]}
		}
		floors[task.ID()] = f
	}
	return floors
}

// sortedThreads are the keys of a map by thread.
func sortedThreads[V any](m map[arch.ThreadID]V) []arch.ThreadID {
	list := make([]arch.ThreadID, 0, len(m))
	for id := range m {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}
