package debug

import (
	"iter"
	"math"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/gdbserver"
)

// A run under a debugger is the same run: it stops in between and continues as if it had not. To
// run backwards the machine returns to a checkpoint, a snapshot between two scheduling decisions,
// and runs to the position from there.

// position is a point of a run: step decisions have been carried out, and n instructions of the
// quantum of the next one. n is beforeQuantum before the decision is taken, and 0 once the
// thread of the quantum is about to run.
type position struct {
	step uint64
	n    int64
}

const beforeQuantum = -1

func (p position) before(q position) bool { return p.step < q.step || p.step == q.step && p.n < q.n }

// decision is a decision that was carried out: a quantum of a thread, with the number of its
// instructions, or another decision (NoThread).
type decision struct {
	thread       arch.ThreadID
	debugged     bool // the thread is of the process that is debugged
	instructions uint64
}

// checkpoint is a point to return to.
type checkpoint struct {
	step, instructions uint64
	snapshot           *machine.Snapshot
}

const (
	// checkpointEvery is the number of instructions between checkpoints at first, and
	// checkpointNear the number before a position that the run returns to.
	checkpointEvery, checkpointNear = 20_000_000, 1_000_000
	// maxCheckpoints bounds their number; when it is reached every other one is removed.
	maxCheckpoints = 64
)

// foundStop is a reason to stop and its positions: that of a run forwards, and that of a run
// backwards.
type foundStop struct {
	at, back position
	stop     gdbserver.Stop
}

// goal is the event that a run is to stop at.
type goal struct {
	from     position
	to       *position // stop here
	points   bool      // break- and watchpoints count
	onlyLast bool      // but only the last of them, which is kept in last
	last     *foundStop

	stepping arch.ThreadID // the thread that is to step, or NoThread
	stepped  bool          // it has

	interrupted func() bool
}

// debugger is a machine as gdbserver sees it, and the hook that follows its loop.
type debugger struct {
	machine.NoHook
	m   *machine.Machine
	pid int32 // of the process that is debugged

	program string // that it runs

	// The run is a coroutine that pauses in the middle of a quantum.
	resume    func() (struct{}, bool)
	unwind    func()
	yield     func(struct{}) bool
	unwinding bool // the coroutine is unwinding

	step         uint64
	instructions uint64       // before the quantum
	task         *kernel.Task // whose quantum it is; nil between decisions
	debugged     bool         // the task is of the process
	n            uint64       // instructions of the quantum
	last         arch.ThreadID

	decisions   []decision // by decision
	checkpoints []checkpoint
	spacing     uint64

	points  []gdbserver.Point
	recent  []arch.Addr // breakpoints when GDB last had the run continue
	watch   watch
	goal    goal
	current gdbserver.Stop
	final   *gdbserver.Stop // how the program ends, once that is known
	end     position        // the last one before that
}

func newDebugger(m *machine.Machine) *debugger {
	first := m.Kernel().Tasks()[0]
	d := &debugger{m: m, pid: first.Process().PID(), last: first.ID(), spacing: checkpointEvery}
	d.program = first.Process().Executable()
	d.current = gdbserver.Stop{Thread: int32(first.ID())}
	m.AddHook(d)
	m.WriteOutputOnce()
	d.addCheckpoint()
	d.startRun()
	return d
}

// startRun makes the run a new coroutine, at a decision.
func (d *debugger) startRun() {
	d.unwinding = false
	d.resume, d.unwind = iter.Pull(d.run)
}

// run is the coroutine.
func (d *debugger) run(yield func(struct{}) bool) {
	d.yield = yield
	for !d.m.Done() && d.pauseBetween() {
		d.m.Step()
		if d.unwinding {
			return
		}
		d.completeDecision()
	}
}

// pause stops the run, and returns when it is to continue. The run must not continue if the
// coroutine is unwinding then.
func (d *debugger) pause(stop gdbserver.Stop) {
	d.current = stop
	d.unwinding = !d.yield(struct{}{})
}

// here returns the position of the run.
func (d *debugger) here() position {
	if d.task == nil {
		return position{d.step, beforeQuantum}
	}
	return position{d.step, int64(d.n)}
}

// pauseBetween pauses before a decision if the run is to stop there. It returns false if the run
// ends there.
func (d *debugger) pauseBetween() bool {
	d.task = nil
	if to := d.goal.to; to != nil && !d.here().before(*to) {
		d.pause(d.stopAt(gdbserver.Stepped, d.last))
	}
	if !d.unwinding && d.goal.interrupted != nil && d.goal.interrupted() {
		d.pause(d.stopAt(gdbserver.Stepped, d.last))
	}
	return !d.unwinding
}

func (d *debugger) stopAt(why gdbserver.Reason, t arch.ThreadID) gdbserver.Stop {
	return gdbserver.Stop{Reason: why, Thread: int32(t)}
}

// completeDecision keeps a decision that was carried out, and stops the run if it has changed a
// watched value.
func (d *debugger) completeDecision() {
	if d.step == uint64(len(d.decisions)) {
		d.decisions = append(d.decisions, decision{thread: arch.NoThread})
	}
	done := d.decisions[d.step]
	d.step++
	d.task = nil
	if d.watch.hasChanged(d) {
		back := position{d.step - 1, beforeQuantum}
		if done.instructions > 0 {
			back.n = int64(done.instructions) - 1
		}
		d.stopOrKeep(foundStop{position{d.step, beforeQuantum}, back, d.watch.stop(d)})
	}
	if !d.unwinding {
		d.considerCheckpoint()
	}
}

// EngineStarts implements machine.Hook.
func (d *debugger) EngineStarts(t *kernel.Task) machine.Reaction {
	d.task, d.n, d.last = t, 0, t.ID()
	d.debugged = t.Process().PID() == d.pid
	if d.debugged {
		d.stopAtExec(t.Process().Executable())
		if d.watch.hasChanged(d) {
			d.stopOrKeep(foundStop{d.here(), position{d.step, beforeQuantum}, d.watch.stop(d)})
		}
		d.watch.guardPages(d)
	}
	d.stopIfReached()
	d.setHalt()
	return d.reaction()
}

// reaction abandons the quantum if the coroutine is unwinding.
func (d *debugger) reaction() machine.Reaction {
	if d.unwinding {
		return machine.AbandonQuantum
	}
	return machine.Proceed
}

// stopAtExec stops the run if the process has begun another program.
func (d *debugger) stopAtExec(program string) {
	if program == d.program {
		return
	}
	d.program = program
	if d.goal.points && !d.goal.onlyLast {
		d.pause(d.stopAt(gdbserver.Executed, d.task.ID()))
	}
}

// EngineStopped implements machine.Hook: the engine has stopped at a position that concerns the
// debugger, or at an access to a page that is guarded.
func (d *debugger) EngineStopped(_ *kernel.Task, s arch.Stop) machine.Reaction {
	switch s.Reason {
	case arch.StopFault:
		if d.admitAccess(s) {
			return machine.ResumeEngine
		}
		return machine.Proceed
	case arch.StopLog, arch.StopBreakpoint:
	default:
		return machine.Proceed
	}
	d.countInstructions(s)
	if d.watch.lifted {
		d.checkWatched()
	}
	d.stopIfReached()
	d.setHalt()
	return d.reaction()
}

// stopAtTrap stops the run if the quantum ends because an instruction cannot be carried out.
func (d *debugger) stopAtTrap(s arch.Stop) {
	if !d.debugged || d.goal.onlyLast || !d.goal.points {
		return
	}
	d.countInstructions(s)
	if signal := trapSignal(s); signal != 0 && d.here() != d.goal.from {
		stop := d.stopAt(gdbserver.Signalled, d.task.ID())
		stop.Signal = signal
		d.watch.liftGuard(d)
		d.pause(stop)
	}
}

// EngineFinished implements machine.Hook: the quantum is over.
func (d *debugger) EngineFinished(_ *kernel.Task, s arch.Stop) machine.Reaction {
	if d.stopAtTrap(s); d.unwinding {
		return machine.AbandonQuantum
	}
	d.countInstructions(s)
	d.watch.liftGuard(d)
	d.watch.lifted = false
	if d.step == uint64(len(d.decisions)) {
		d.decisions = append(d.decisions, decision{d.task.ID(), d.debugged, s.Instructions})
	}
	d.instructions += s.Instructions
	return machine.Proceed
}

// countInstructions notes how many instructions of the quantum are done.
func (d *debugger) countInstructions(s arch.Stop) {
	d.n = s.Instructions
	g := &d.goal
	if d.task.ID() == g.stepping && position.before(countedFrom(g.from, d.step), d.here()) {
		g.stepped = true
	}
}

// countedFrom returns the position from which instructions of a decision count: the start of the
// run, or the beginning of the quantum.
func countedFrom(from position, step uint64) position {
	if from.step == step && from.n > 0 {
		return from
	}
	return position{step, 0}
}

// stopIfReached stops the run if it has reached a position to stop at.
func (d *debugger) stopIfReached() {
	g := &d.goal
	switch {
	case d.unwinding:
	case g.to != nil && d.here() == *g.to:
		d.pause(d.stopAt(gdbserver.Stepped, d.task.ID()))
	case !g.points || !d.debugged:
	case g.stepping == d.task.ID() && g.stepped:
		d.pause(d.stopAt(gdbserver.Stepped, d.task.ID()))
	case d.here() != g.from:
		if p, ok := d.breakpoint(); ok {
			stop := d.stopAt(gdbserver.AtBreak, d.task.ID())
			stop.Point = p
			d.stopOrKeep(foundStop{d.here(), d.here(), stop})
		}
	}
}

// stopOrKeep stops the run at a stop that was found, or keeps it if the last one is looked for.
func (d *debugger) stopOrKeep(f foundStop) {
	g := &d.goal
	switch {
	case !g.points || d.unwinding:
	case !g.onlyLast:
		d.pause(f.stop)
	case f.back.before(*g.to) && !g.to.before(f.at):
		g.last = &f
	}
}

// breakpoint finds the breakpoint at the PC. Breakpoints that GDB has removed to step a thread
// past them still hold for the others.
func (d *debugger) breakpoint() (gdbserver.Point, bool) {
	var r arch.Regs
	d.m.CPU().Regs(&r)
	pc := arch.Addr(r.RIP)
	for _, p := range d.points {
		if p.Addr == pc && p.Kind <= gdbserver.HardwareBreak {
			return p, true
		}
	}
	g := &d.goal
	if g.stepping != arch.NoThread && g.stepping != d.task.ID() && slices.Contains(d.recent, pc) {
		return gdbserver.Point{Addr: pc}, true
	}
	return gdbserver.Point{}, false
}

// setHalt has the engine stop at the next position that concerns the debugger.
func (d *debugger) setHalt() {
	at := uint64(math.MaxUint64)
	g := &d.goal
	if to := g.to; to != nil && to.step == d.step && to.n > int64(d.n) {
		at = uint64(to.n)
	}
	if g.stepping == d.task.ID() && !g.stepped || d.watch.lifted {
		at = min(at, d.n+1)
	}
	if at == math.MaxUint64 {
		at = 0
	}
	d.m.CPU().HaltAt(at)
}

// setBreakpoints sets the engine's breakpoints.
func (d *debugger) setBreakpoints() {
	list := slices.Clone(d.recent)
	for _, p := range d.points {
		if p.Kind <= gdbserver.HardwareBreak {
			list = append(list, p.Addr)
		}
	}
	d.m.CPU().SetDebugBreakpoints(list)
}
