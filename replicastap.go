package heddle

import (
	"bytes"
	"slices"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

const pageBytes = emu.PageSize

var noStop = emu.Stop{}

// tap is a Recording that watches a replica: what it writes, how it fails, and
// where its stacks end. It is on the host's side: snapshots share it.
type tap struct {
	recorder.Nothing
	m        *Machine
	recorder *sched.OrderRecorder // of a thread-parallel replica, or nil
	failed   string
	output   []Output
	sent     map[event.ThreadID]uint64
	gone     map[event.ThreadID]event.Addr
	within   map[event.ThreadID]event.Addr // where the stack was when an operation began
	// under are the operations that a thread is in handlers of signals in, likewise.
	under map[event.ThreadID][]event.Addr
	reads *readSums // nil unless they are asked for
}

// SharedInSnapshot marks that copies of the machine's state share it.
func (*tap) BoundInSnapshot() {}

// floor is how far a thread's stack is in use, and what it holds in the registers
// that functions preserve (System V ABI for AMD64, section 3.2.1): between two
// epochs the others hold what nobody needs. In an operation they all are the C
// library's.
type floor struct {
	sp     event.Addr
	inside bool
	block  event.Addr // the thread's control block
	pc     uint64
	kept   [6]uint64
}

func (t *tap) begin(from *Checkpoint) {
	t.failed, t.output = "", nil
	t.reads.begin(t.m.cpu)
	t.sent, t.gone, t.within = map[event.ThreadID]uint64{}, map[event.ThreadID]event.Addr{}, map[event.ThreadID]event.Addr{}
	t.under = map[event.ThreadID][]event.Addr{}
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
func (t *tap) Stopped(_ *recorder.Recorder, task *kernel.Task, _ emu.Stop) {
	id := task.ID()
	_, known := t.within[id]
	t.reads.take(t.m.cpu, id, known)
	switch inside := t.m.state.gating.syncs.InOperation(id); {
	case inside && !known:
		t.within[id] = t.stack()
	case !inside && known:
		delete(t.within, id)
	}
}

// Leave takes what another thread than the one that runs has stored.
func (t *tap) Leave(on *recorder.Recorder) {
	id := on.At().Thread
	_, known := t.within[id]
	t.reads.take(t.m.cpu, id, known)
}

// stack is the stack pointer of the loaded thread.
func (t *tap) stack() event.Addr {
	var r emu.Regs
	t.m.cpu.Regs(&r)
	return event.Addr(r.GPR[emu.RSP])
}

// Issue implements recorder.Recording.
func (t *tap) Issue(_ *recorder.Recorder, task *kernel.Task, e *event.Syscall) {
	switch e.Number {
	case unix.SYS_RT_SIGRETURN:
		t.handled(e.Thread)
	case unix.SYS_EXIT:
		t.gone[e.Thread] = t.stack()
	case unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_SENDTO:
		t.sends(task, e)
	}
}

// Signal implements recorder.Recording.
func (t *tap) Signal(_ *recorder.Recorder, e *event.Signal) {
	if sp, ok := t.within[e.Thread]; ok {
		t.under[e.Thread] = append(t.under[e.Thread], sp)
	}
}

// handled goes back to the operation that a thread's handler has interrupted, if there is
// one.
func (t *tap) handled(id event.ThreadID) {
	if k := len(t.under[id]); k > 0 && t.m.state.gating.syncs.InOperation(id) {
		t.within[id], t.under[id] = t.under[id][k-1], t.under[id][:k-1]
	}
}

// mostSent bounds how much of what one call sends is looked at.
const mostSent = 1 << 20

// sends sums up what a thread writes.
func (t *tap) sends(task *kernel.Task, e *event.Syscall) {
	b := make([]byte, min(e.Args[2], mostSent))
	n := task.Process().Peek(event.Addr(e.Args[1]), b)
	h := xxh3.New()
	sum := t.sent[e.Thread]
	_, _ = h.Write([]byte{byte(sum), byte(sum >> 8), byte(sum >> 16), byte(sum >> 24), byte(sum >> 32), byte(e.Args[0])})
	_, _ = h.Write(b[:n])
	t.sent[e.Thread] = h.Sum64()
}

// Return implements recorder.Recording.
func (t *tap) Return(_ *recorder.Recorder, task *kernel.Task, e *event.Syscall) {
	interrupted := int64(e.Result) == -int64(unix.EINTR)
	if t.recorder != nil && (sched.Told(e.Number) || interrupted) && !t.m.state.gating.syncs.InOperation(e.Thread) {
		t.recorder.Tell(e.Thread, e.Number, told(task, e))
	}
}

// results are the arguments of the calls that are told, or that a signal may end, which point to results, and
// the results' sizes (man pages of section 2).
var results = map[uint64][]struct{ arg, size int }{
	unix.SYS_GETITIMER:     {{1, 32}},
	unix.SYS_GETTIMEOFDAY:  {{0, 16}, {1, 8}},
	unix.SYS_GETRUSAGE:     {{1, 144}},
	unix.SYS_SYSINFO:       {{0, 112}},
	unix.SYS_TIMES:         {{0, 32}},
	unix.SYS_TIME:          {{0, 8}},
	unix.SYS_CLOCK_GETTIME: {{1, 16}},
	unix.SYS_GETCPU:        {{0, 4}, {1, 4}},
	// Calls that a signal has ended say how long they would have waited still.
	unix.SYS_NANOSLEEP:       {{1, 16}},
	unix.SYS_CLOCK_NANOSLEEP: {{3, 16}},
	unix.SYS_SELECT:          {{4, 16}},
	unix.SYS_PSELECT6:        {{4, 16}},
	unix.SYS_PPOLL:           {{2, 16}},
}

// told reads what a call has written.
func told(task *kernel.Task, e *event.Syscall) (list []event.Write) {
	for _, r := range results[e.Number] {
		at := event.Addr(e.Args[r.arg])
		if at == 0 {
			continue
		}
		b := make([]byte, r.size)
		if n := task.Process().Peek(at, b); n > 0 {
			list = append(list, event.Write{Addr: at, Data: b[:n]})
		}
	}
	return list
}

// Start implements recorder.Recording.
func (t *tap) Start(_ *recorder.Recorder, _ *kernel.Task, e *event.Start) {
	if t.recorder != nil {
		t.recorder.Born(e.Thread, e.Parent)
	}
}

// Exit implements recorder.Recording.
func (t *tap) Exit(_ *recorder.Recorder, e *event.Exit) {
	delete(t.within, e.Thread)
	delete(t.under, e.Thread)
	if signal := int(e.Status & 0x7f); sched.Failure(signal) && t.failed == "" {
		t.failed = signalName(signal)
	}
}

// floorsNow is where the stacks of all threads end.
func (t *tap) floorsNow(k *kernel.Kernel) map[event.ThreadID]floor {
	floors := map[event.ThreadID]floor{}
	for _, task := range k.Tasks() {
		var r emu.Regs
		var fp [emu.FPSize]byte
		task.Registers(&r, &fp)
		g := &r.GPR
		f := floor{sp: event.Addr(g[emu.RSP]), block: event.Addr(r.FSBase)}
		if sp, ok := t.within[task.ID()]; ok {
			f.sp, f.inside = sp, true
		} else {
			f.pc, f.kept = r.RIP, [6]uint64{g[emu.RBX], g[emu.RBP], g[emu.R12], g[emu.R13], g[emu.R14], g[emu.R15]}
		}
		floors[task.ID()] = f
	}
	return floors
}

// sortedThreads are the keys of a map by thread.
func sortedThreads[V any](m map[event.ThreadID]V) []event.ThreadID {
	list := make([]event.ThreadID, 0, len(m))
	for id := range m {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}
