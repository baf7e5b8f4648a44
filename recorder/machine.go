package recorder

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// saveEvery is the number of instructions between two flushes of the recorded data to
// disk, so that little is lost when the process is killed.
const saveEvery = 100_000_000

// Turn attributes all that happens from now on to a thread on a core, at a
// time.
func (r *Recorder) Turn(t arch.ThreadID, core arch.CoreID, now arch.Cycles) {
	if r.cpu != nil && r.cpu.LoggedMemory() > 0 {
		r.leaveTurn()
	}
	r.thread, r.core, r.time, r.began = t, core, now, now
	r.within = arch.Stop{}
	if r.acting = r.threads.At(t); r.acting != nil {
		r.acting.lastCore = core
	}
}

// Aside attributes the memory accesses that are logged during do to a thread, on the core
// that it ran on, in the middle of another one's turn.
func (r *Recorder) Aside(t arch.ThreadID, core arch.CoreID, do func()) {
	thread, turn, time := r.thread, r.core, r.time
	r.Turn(t, core, time)
	do()
	r.Turn(thread, turn, time)
}

// leaver is a Recording that takes the accesses logged in a turn before the next.
type leaver interface{ Leave(r *Recorder) }

// leaveTurn ends the turn of a thread after all its acts, such as
// to begin a system call that waits.
func (r *Recorder) leaveTurn() {
	for _, p := range r.parts {
		if p, ok := p.(leaver); ok {
			p.Leave(r)
		}
	}
}

// Timer reports that timers fire at a time, on behalf of no thread.
func (r *Recorder) Timer(now arch.Cycles) { r.Turn(arch.NoThread, arch.NoCore, now) }

// Run reports that the thread whose turn it is is loaded and about to run.
func (r *Recorder) Run(t *kernel.Task) {
	if r.limits != nil {
		r.limits.begin(r, t)
	}
	p := r.acting
	if r.cores[r.core] != r.thread || p.ranOn != r.core {
		r.cores[r.core], p.ranOn = r.thread, r.core
		r.changed = event.Switch{Stamp: r.Next(), Process: t.Process().PID()}
		for _, part := range r.parts {
			part.Switch(r, &r.changed)
		}
	}
	for _, part := range r.parts {
		part.Begin(r, t)
	}
}

// continuer is a Recording that has something to do before the engine runs, after all events before that.
type continuer interface{ Continue(r *Recorder) }

// Continue reports that the engine is about to run, or to continue after a stop.
func (r *Recorder) Continue() {
	for _, p := range r.parts {
		if p, ok := p.(continuer); ok {
			p.Continue(r)
		}
	}
}

// Stopped reports that the engine has stopped within the quantum or at its end.
func (r *Recorder) Stopped(t *kernel.Task, s arch.Stop) {
	r.within = s
	r.time = r.began + s.Cycles
	if r.limits != nil {
		r.limits.stopped(r)
	}
	for _, p := range r.parts {
		p.Stopped(r, t, s)
	}
	r.cpu.Drained()
}

// Ran reports that the quantum is over, and the core's clock after it. The kernel
// has not handled its end yet.
func (r *Recorder) Ran(t *kernel.Task, s arch.Stop, now arch.Cycles) {
	r.acting.instructions += s.Instructions
	r.within = arch.Stop{}
	r.time = now
	if s.Reason == arch.StopSyscall {
		r.reportIssue(t)
	}
	r.sinceSave += s.Instructions
	if r.sinceSave >= saveEvery {
		r.sinceSave = 0
		r.flushAll()
	}
}

// saver is a Recording that buffers its output.
type saver interface{ Save() }

func (r *Recorder) flushAll() {
	for _, p := range r.parts {
		if s, ok := p.(saver); ok {
			s.Save()
		}
	}
	if r.trace != nil {
		r.trace.Flush()
	}
}

// reportIssue reports the system call that the loaded thread has made.
func (r *Recorder) reportIssue(t *kernel.Task) {
	var regs arch.Regs
	r.cpu.Regs(&regs)
	g := &regs.GPR
	e := event.Syscall{
		Stamp: r.Next(), Phase: event.Enter, Number: kernel.CallNumber(g[arch.RAX]),
		Args: [6]uint64{g[arch.RDI], g[arch.RSI], g[arch.RDX], g[arch.R10], g[arch.R8], g[arch.R9]},
	}
	if r.limits != nil {
		r.limits.issue(r, t, &e)
	}
	for _, p := range r.parts {
		p.Issue(r, t, &e)
	}
}

// Syscall reports that a system call is done.
func (r *Recorder) Syscall(t *kernel.Task, number uint64, args [6]uint64, result uint64) {
	e := event.Syscall{Stamp: r.nextStamp(t.ID()), Phase: event.Return, Number: number, Args: args, Result: result}
	if r.limits != nil {
		r.limits.complete(r, t, &e)
	}
	for _, p := range r.parts {
		p.Return(r, t, &e)
	}
}

// Signal reports a signal that runs a handler or kills.
func (r *Recorder) Signal(d *kernel.Delivery) {
	e := event.Signal{Stamp: r.nextStamp(d.Thread), Number: int32(d.Signal), PC: d.PC, Info: d.Info}
	for _, p := range r.parts {
		p.Signal(r, &e)
	}
}

// Ready reports that a thread can run. An unknown one has just begun.
func (r *Recorder) Ready(id arch.ThreadID) {
	if r.threads.At(id) != nil {
		return
	}
	r.finishGone()
	t := r.kernel.Task(id)
	p := &progress{lastCore: arch.NoCore, ranOn: arch.NoCore}
	r.threads.Put(id, p)
	if id == r.thread {
		r.acting = p
	}
	e := event.Start{Stamp: r.nextStamp(id), Process: t.Process().PID(), Parent: r.thread}
	for _, p := range r.parts {
		p.Start(r, t, &e)
	}
}

// Gone reports that a thread has left the scheduler. Exit is called next, unless exec
// gave the thread another id.
func (r *Recorder) Gone(id arch.ThreadID) { r.gone = id }

func (r *Recorder) finishGone() {
	if r.gone != arch.NoThread {
		r.Exit(r.gone, 0)
	}
}

// Exit reports the end of a thread.
func (r *Recorder) Exit(t arch.ThreadID, status int) {
	r.gone = arch.NoThread
	e := event.Exit{Stamp: r.nextStamp(t), Status: int32(status)}
	if r.limits != nil {
		r.limits.exit(t)
	}
	r.threads.Delete(t)
	if t == r.thread {
		r.acting = nil
	}
	for _, p := range r.parts {
		p.Exit(r, &e)
	}
}

// Finish reports that the run is over.
func (r *Recorder) Finish() {
	for _, p := range r.parts {
		p.Finish(r)
	}
}

// Mark notes the place in the trace for the snapshot that is about to be made.
func (r *Recorder) Mark() {
	for _, p := range r.parts {
		if p, ok := p.(marker); ok {
			p.Mark(r)
		}
	}
	if r.trace != nil {
		r.mark = r.trace.Mark()
	}
}

// marker is a Recording that has something to do before a snapshot, and before
// the trace returns to it.
type marker interface {
	Mark(r *Recorder)
	Returned(r *Recorder)
}

// Returned reports that the machine has returned to the snapshot that r was copied
// from.
func (r *Recorder) Returned() {
	for _, p := range r.parts {
		if p, ok := p.(marker); ok {
			p.Returned(r)
		}
	}
	if r.trace != nil {
		r.trace.Return(r.mark)
	}
}
