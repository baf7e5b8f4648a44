package windows

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched/windows"
)

// raceFinder finds the accesses of the server's threads in a window that the turns leave unordered, and the
// constraints that order them (PEREGRINE, section 3.1). It is a recorder.Recording that precedes the machine's
// own, so that it has a thread's accesses before the thread's next turn.
type raceFinder struct {
	recorder.Nothing
	tasks    func(arch.ThreadID) *kernel.Task
	follower *races.Follower
	buffer   *memlog.Buffer
	threads  map[arch.ThreadID]*raceThread
	numbered []*raceThread
	spaces   map[*mem.Space]*races.Space
	counted  uint64 // the engine's count of branches when the log was taken last
	cuts     []raceCut
	found    []hybrid.Constraint
	recorder *recorder.Recorder
	current  *raceThread      // whose log is taken
	requests *requestFollower // that shares the log, or nil
	steps    int              // of all threads since the begin of the window
	most     int              // with more steps, the window gets no constraints
	forked   func(parent, child int32)
}

// raceThread is a thread of the machine.
type raceThread struct {
	id       arch.ThreadID
	runner   *races.Runner
	space    *mem.Space
	number   int
	name     string
	serves   bool
	branches uint64
	// syncs is the number of segments that have begun, begun that at the begin of the window.
	syncs, begun uint64
	steps        []raceStep // instructions with accesses since the begin of the window
}

// raceStep is an instruction that a thread has executed, after a number of branches, in a segment.
type raceStep struct {
	pc, branches uint64
	syncs        uint64
}

// raceCut is the begin of a segment, before the access of a number.
type raceCut struct {
	thread int
	at     uint64
}

// mostSteps bounds the memory that a window takes: 800 MB. The start of a database has more.
const mostSteps = 1 << 25

// newRaceFinder makes a finder that takes the memory log, which the engine must keep.
func newRaceFinder(tasks func(arch.ThreadID) *kernel.Task) *raceFinder {
	f := &raceFinder{
		most: mostSteps, tasks: tasks, buffer: memlog.NewBuffer(), threads: map[arch.ThreadID]*raceThread{}, spaces: map[*mem.Space]*races.Space{},
	}
	f.follower = races.NewFollower(races.ScheduleRelative, false, func(r *races.Race) {
		if !f.isOverfull() && f.numbered[r.First.Thread].serves && f.numbered[r.Second.Thread].serves {
			f.found = append(f.found, hybrid.Constraint{First: r.First, Second: r.Second})
		}
	})
	return f
}

// close frees the memory.
func (f *raceFinder) close() {
	f.follower.Close()
	f.buffer.Close()
}

func (f *raceFinder) serves(id arch.ThreadID) bool {
	t := f.tasks(id)
	return t != nil && t.InService()
}

// threadOf returns a thread, whose memory may have become that of another program.
func (f *raceFinder) threadOf(id arch.ThreadID, space *mem.Space) *raceThread {
	t := f.threads[id]
	if t == nil {
		t = &raceThread{id: id, number: len(f.numbered)}
		f.threads[id] = t
		f.numbered = append(f.numbered, t)
		process := 0
		if task := f.tasks(id); task != nil {
			process = int(task.Process().PID())
		}
		f.follower.SetProcess(t.number, process)
	}
	if t.runner == nil || space != nil && t.space != space {
		s := f.spaces[space]
		if s == nil {
			s = f.follower.NewSpace()
			f.spaces[space] = s
		}
		t.space, t.runner, t.serves = space, f.follower.NewRunner(t.number, s), f.serves(id)
		t.runner.Ignore(!t.serves)
	}
	return t
}

// feed follows a part of the log of the current thread.
func (f *raceFinder) feed(log *memlog.Buffer) {
	t, entries := f.current, log.Entries()
	if len(entries) == 0 {
		return
	}
	if f.requests != nil && t.serves {
		f.requests.noteState(f.tasks(t.id), entries)
	}
	f.follower.Turn(t.runner, t.branches)
	f.follower.Follow(entries, log.AllBytes(), t.branches, f.counted, func(uint64) {})
	if t.serves && !f.isOverfull() {
		f.noteSteps(t, entries)
	}
}

// take follows the engine's log of a thread, after the follower of requests has taken its part.
func (f *raceFinder) take(r *recorder.Recorder, t *raceThread, requests func(*concolicrun.Recording)) {
	cpu := r.CPU()
	f.current = t
	if q := f.requests; q != nil && requests != nil {
		requests(q.run)
	}
	if cpu.LoggedMemory() > 0 {
		cpu.SwapMemory(f.buffer)
		f.feed(f.buffer)
	}
	now := cpu.CountedBranches()
	t.branches += now - f.counted
	f.counted = now
}

// noteSteps keeps which instructions a thread has executed.
func (f *raceFinder) noteSteps(t *raceThread, entries []memlog.Entry) {
	for i := range entries {
		e := &entries[i]
		if e.Kind != memlog.Load && e.Kind != memlog.Store {
			continue
		}
		s := raceStep{pc: e.PC, branches: t.branches + uint64(e.Branches-uint32(f.counted)), syncs: t.syncs}
		if n := len(t.steps); n == 0 || t.steps[n-1] != s {
			t.steps = append(t.steps, s)
			f.steps++
		}
	}
	if f.isOverfull() {
		f.found = nil
		for _, t := range f.numbered {
			t.steps = nil
		}
	}
}

// isOverfull reports whether the window has had too many accesses to be examined.
func (f *raceFinder) isOverfull() bool { return f.steps > f.most }

// Begin implements recorder.Recording, and so do the methods below.
func (f *raceFinder) Begin(r *recorder.Recorder, t *kernel.Task) {
	f.recorder, f.counted = r, r.CPU().CountedBranches()
	f.take(r, f.threadOf(t.ID(), t.Space()), func(q *concolicrun.Recording) { q.Begin(r, t) })
	if f.requests != nil && t.InService() {
		f.requests.noteRegisters(t)
	}
}

// Stopped takes the log of the thread since it was begun or stopped.
func (f *raceFinder) Stopped(r *recorder.Recorder, t *kernel.Task, s arch.Stop) {
	f.take(r, f.threadOf(t.ID(), t.Space()), func(q *concolicrun.Recording) { q.Stopped(r, t, s) })
}

// Issue passes a system call on.
func (f *raceFinder) Issue(r *recorder.Recorder, t *kernel.Task, e *event.Syscall) {
	if f.requests != nil {
		f.requests.run.Issue(r, t, e)
	}
}

// Return takes the kernel's stores for a system call.
func (f *raceFinder) Return(r *recorder.Recorder, t *kernel.Task, e *event.Syscall) {
	f.take(r, f.threadOf(e.Thread, t.Space()), func(q *concolicrun.Recording) { q.Return(r, t, e) })
}

// Signal passes a signal on.
func (f *raceFinder) Signal(r *recorder.Recorder, e *event.Signal) {
	if f.requests != nil {
		f.requests.run.Signal(r, e)
	}
}

// Start passes the start of a thread on.
func (f *raceFinder) Start(r *recorder.Recorder, t *kernel.Task, e *event.Start) {
	if parent := f.tasks(e.Parent); parent != nil && parent.Process() != t.Process() {
		f.forked(parent.Process().PID(), t.Process().PID())
	}
	if f.requests != nil {
		f.requests.run.Executor.Signal(e.Parent) // the new thread has its registers
		f.requests.run.Start(r, t, e)
	}
}

// Exit takes the kernel's stores for a thread that is over.
func (f *raceFinder) Exit(r *recorder.Recorder, e *event.Exit) {
	f.take(r, f.threadOf(e.Thread, nil), func(q *concolicrun.Recording) { q.Exit(r, e) })
}

// beginSegment is windows.Controller.Cut.
func (f *raceFinder) beginSegment(id arch.ThreadID, name string) {
	t := f.threadOf(id, nil)
	t.name = name
	f.order(t)
}

func (f *raceFinder) order(t *raceThread) {
	f.follower.Sync(t.number, 0)
	t.syncs++
	f.cuts = append(f.cuts, raceCut{t.number, f.follower.Number()})
}

// beginWindow begins a window, after all that the threads have done so far.
func (f *raceFinder) beginWindow() {
	for range 2 {
		for _, t := range f.numbered {
			if t.serves {
				f.order(t)
			}
		}
	}
	f.cuts, f.found, f.steps = nil, nil, 0
	for _, t := range f.numbered {
		t.begun, t.steps = t.syncs, nil
	}
}

// constraints are the constraints on the races of the window that do not follow from others or from the order of
// the turns.
func (f *raceFinder) constraints() (list []windows.Constraint, races int) {
	var reducer hybrid.Reducer
	slices.SortStableFunc(f.found, func(a, b hybrid.Constraint) int {
		return cmp.Or(cmp.Compare(a.Second.At, b.Second.At), cmp.Compare(b.First.At, a.First.At))
	})
	cuts := f.cuts
	for _, c := range f.found {
		for ; len(cuts) > 0 && cuts[0].at <= c.Second.At; cuts = cuts[1:] {
			reducer.Sync(cuts[0].thread, 2*cuts[0].at)
		}
		first, second := f.placeOf(&c.First, true), f.placeOf(&c.Second, false)
		c.First.At, c.Second.At = 2*c.First.At+1, 2*c.Second.At+1
		if reducer.Add(c) {
			list = append(list, windows.Constraint{First: first, Second: second})
		}
	}
	return list, len(f.found)
}

// placeOf is where an instruction was executed in the window. An access of the kernel has the place of the thread's last
// instruction with an access before, if another thread is to precede it.
func (f *raceFinder) placeOf(i *races.Instance, precedes bool) windows.Place {
	t := f.numbered[i.Thread]
	p := windows.Place{Thread: t.name, Cuts: int(i.Syncs - t.begun), PC: i.PC}
	from, _ := slices.BinarySearchFunc(t.steps, i.Syncs, func(s raceStep, syncs uint64) int { return cmp.Compare(s.syncs, syncs) })
	to := from
	for to < len(t.steps) && t.steps[to].syncs == i.Syncs && t.steps[to].branches <= i.Branches {
		to++
	}
	if p.PC == 0 && !precedes && to > from {
		p.PC = arch.Addr(t.steps[to-1].pc)
	}
	for _, s := range t.steps[from:to] {
		if s.pc == uint64(p.PC) {
			p.Occurrence++
		}
	}
	return p
}
