package recorder

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Phase is where a run is in relation to the recorded stretch.
type Phase uint8

// Phases, in their order.
const (
	BeforeStretch Phase = iota
	InStretch
	AfterStretch
)

// limits is the state of a Recorder that records a stretch.
type limits struct {
	bounds  *Bounds
	settled func() bool
	phase   Phase
	// counted is the engine's count of branches when the thread began to run or stopped last.
	counted uint64
	issued  map[arch.ThreadID]event.Syscall // system calls that are under way
}

// SharedInSnapshot marks that a run of which a stretch is recorded does not return to snapshots.
func (*limits) SharedInSnapshot() {}

// Limit has the recorder record a stretch of a run that has not begun. Before and after it the trace gets only
// what repeats the run. The stretch begins and ends where settled is true: no thread is inside an instruction.
//
// Events have the numbers and stamps that they have in a recording of the whole run. A stretch that begins with the run
// has no Recording.Open.
func (r *Recorder) Limit(b *Bounds, settled func() bool) {
	r.limits = &limits{bounds: b, settled: settled, issued: map[arch.ThreadID]event.Syscall{}}
	if b.Phase() == BeforeStretch {
		p := newPast()
		r.parts = append(r.parts, p)
		r.trace.Mute(p.keepEvent)
		return
	}
	r.limits.phase = InStretch
	for _, p := range r.parts {
		if p, ok := p.(*Late); ok {
			p.start()
		}
	}
}

// Processes iterates over the processes that have threads, with their threads by id.
func (r *Recorder) Processes(yield func(pid int32, threads []*kernel.Task) bool) {
	var order []int32
	of := map[int32][]*kernel.Task{}
	for _, t := range r.kernel.Tasks() {
		pid := t.Process().PID()
		if of[pid] == nil {
			order = append(order, pid)
		}
		of[pid] = append(of[pid], t)
	}
	for _, pid := range order {
		if of[pid][0].Process().Space() != nil && !yield(pid, of[pid]) {
			return
		}
	}
}

// Now is the stamp of a thread at the present place; the number in it is that of the last event.
func (r *Recorder) Now(t arch.ThreadID) event.Stamp { return r.stampOf(t) }

// MoveOn begins or ends the stretch if it is time to. The engine has stopped within the quantum of the thread, or the
// thread is about to run.
func (r *Recorder) MoveOn(t *kernel.Task) {
	if r.limits != nil {
		r.moveOn(t)
	}
}

func (r *Recorder) moveOn(running *kernel.Task) {
	l := r.limits
	now := l.bounds.Phase()
	if now == l.phase || !l.settled() {
		return
	}
	if l.phase == BeforeStretch {
		l.phase = InStretch
		r.trace.Unmute()
		r.openParts(running)
	}
	if now == AfterStretch {
		l.phase = AfterStretch
		for _, p := range r.parts {
			if p, ok := p.(*Late); ok {
				p.end(r)
			}
		}
		r.trace.Mute(nil)
		r.cpu.EndLogs()
	}
}

// openParts reports the beginning of the stretch. Recordings that begin with it learn of the system calls that are
// under way.
func (r *Recorder) openParts(running *kernel.Task) {
	for _, p := range r.parts {
		p.Open(r)
	}
	l := r.limits
	threads := make([]arch.ThreadID, 0, len(l.issued))
	for t := range l.issued {
		threads = append(threads, t)
	}
	slices.Sort(threads)
	for _, p := range r.parts {
		late, ok := p.(*Late)
		if !ok {
			continue
		}
		for _, id := range threads {
			if t := r.kernel.Task(id); t != nil {
				e := l.issued[id]
				late.Issue(r, t, &e)
			}
		}
		if running != nil {
			late.Begin(r, running)
		}
	}
}

// begin notes that a thread is about to run.
func (l *limits) begin(r *Recorder, t *kernel.Task) {
	l.bounds.Begin(r, t)
	r.moveOn(nil)
	l.counted = r.cpu.CountedBranches()
}

// stopped counts the branches of a thread before the stretch, so that stamps in it have the same counts as in a
// recording of the whole run. The engine counts them if a later recording does (emu.CPU.CountBranches).
func (l *limits) stopped(r *Recorder) {
	n := r.cpu.CountedBranches()
	if l.phase == BeforeStretch {
		r.AddBranches(n - l.counted)
	}
	l.counted = n
}

// issue notes a system call that is issued.
func (l *limits) issue(r *Recorder, t *kernel.Task, e *event.Syscall) {
	l.bounds.Issue(r, t, e)
	r.moveOn(nil)
	l.issued[e.Thread] = *e
}

// complete notes a system call that is done.
func (l *limits) complete(r *Recorder, t *kernel.Task, e *event.Syscall) {
	l.bounds.Return(r, t, e)
	r.moveOn(nil)
	delete(l.issued, e.Thread)
}

// exit forgets the call of a thread that ends.
func (l *limits) exit(t arch.ThreadID) { delete(l.issued, t) }

// Late is a Recording that begins with the recorded stretch and ends with it.
type Late struct {
	make  func() (Recording, error)
	fail  func(error)
	inner Recording
}

// NewLate makes a Recording that calls a function for the Recording when the stretch begins, and passes on events from
// then on. Fail gets its error.
func NewLate(make func() (Recording, error), fail func(error)) *Late {
	return &Late{make: make, fail: fail, inner: Nothing{}}
}

// SharedInSnapshot marks that a run of which a stretch is recorded does not return to snapshots.
func (*Late) SharedInSnapshot() {}

// start makes the Recording.
func (l *Late) start() {
	p, err := l.make()
	if err != nil {
		p = Nothing{}
		l.fail(err)
	}
	l.inner = p
}

// Open implements Recording.
func (l *Late) Open(r *Recorder) {
	l.start()
	l.inner.Open(r)
}

// end ends the Recording with the stretch.
func (l *Late) end(r *Recorder) {
	l.inner.Finish(r)
	l.inner = Nothing{}
}

// Begin implements Recording, and so do the methods after it.
func (l *Late) Begin(r *Recorder, t *kernel.Task)                    { l.inner.Begin(r, t) }
func (l *Late) Stopped(r *Recorder, t *kernel.Task, s arch.Stop)     { l.inner.Stopped(r, t, s) }
func (l *Late) Switch(r *Recorder, e *event.Switch)                  { l.inner.Switch(r, e) }
func (l *Late) Start(r *Recorder, t *kernel.Task, e *event.Start)    { l.inner.Start(r, t, e) }
func (l *Late) Exit(r *Recorder, e *event.Exit)                      { l.inner.Exit(r, e) }
func (l *Late) Issue(r *Recorder, t *kernel.Task, e *event.Syscall)  { l.inner.Issue(r, t, e) }
func (l *Late) Return(r *Recorder, t *kernel.Task, e *event.Syscall) { l.inner.Return(r, t, e) }
func (l *Late) Signal(r *Recorder, e *event.Signal)                  { l.inner.Signal(r, e) }
func (l *Late) Finish(r *Recorder)                                   { l.inner.Finish(r) }

// Leave implements leaver.
func (l *Late) Leave(r *Recorder) {
	if p, ok := l.inner.(leaver); ok {
		p.Leave(r)
	}
}

// Continue implements continuer.
func (l *Late) Continue(r *Recorder) {
	if p, ok := l.inner.(continuer); ok {
		p.Continue(r)
	}
}

// Save implements saver.
func (l *Late) Save() {
	if p, ok := l.inner.(saver); ok {
		p.Save()
	}
}
