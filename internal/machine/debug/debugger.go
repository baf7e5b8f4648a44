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

// A run under a debugger is the same run: it stops at places in between and goes
// on as if it had not. To go back the machine returns to a mark, a snapshot
// between two scheduling decisions, and runs to the place from there.

// place is a point of a run: so many decisions are carried out, and n
// instructions of the next one's slice. n is beforeSlice before the decision is
// taken, and 0 once the slice's thread is about to run.
type place struct {
	step uint64
	n    int64
}

const beforeSlice = -1

func (p place) before(q place) bool { return p.step < q.step || p.step == q.step && p.n < q.n }

// turn is what a decision was: a slice of a thread, with the number of its
// instructions, or something else.
type turn struct {
	thread       arch.ThreadID
	mine         bool // of the process that is debugged
	instructions uint64
}

// mark is a place to return to.
type mark struct {
	step, instructions uint64
	snapshot           *machine.Snapshot
}

const (
	// markEvery is how many instructions marks are apart at first, and markNear
	// how many around a place that was returned to.
	markEvery, markNear = 20_000_000, 1_000_000
	// maxMarks bounds their number; then every other one goes.
	maxMarks = 64
)

// found is a reason to stop and the place of it: where a run that comes from
// the front stops, and where one that comes from behind does.
type found struct {
	at, back place
	stop     gdbserver.Stop
}

// goal is what a run is looking for.
type goal struct {
	from   place
	to     *place // stop here
	points bool   // break- and watchpoints count
	note   bool   // but only the last of them is of interest
	noted  *found

	stepping arch.ThreadID // the thread that is to step, or NoThread
	moved    bool          // it has

	interrupted func() bool
}

// debugger is a machine as gdbserver sees it, and the hook that follows its loop.
type debugger struct {
	machine.NoHook
	m   *machine.Machine
	pid int32 // of the process that is debugged

	program string // that it runs

	// The run is a coroutine that pauses where it is: in the middle of a slice.
	resume func() (struct{}, bool)
	unwind func()
	yield  func(struct{}) bool
	gone   bool // the coroutine is unwinding

	step         uint64
	instructions uint64       // before the slice
	task         *kernel.Task // whose slice it is; nil between decisions
	mine         bool         // the task is of the process
	n            uint64       // instructions of the slice
	last         arch.ThreadID

	turns   []turn // by decision
	marks   []mark
	spacing uint64

	points  []gdbserver.Point
	recent  []arch.Addr // breakpoints when GDB last let the run go
	watch   watch
	goal    goal
	current gdbserver.Stop
	final   *gdbserver.Stop // how the program ends, once that is known
	end     place           // the last place before that
}

func newDebugger(m *machine.Machine) *debugger {
	first := m.Kernel().Tasks()[0]
	d := &debugger{m: m, pid: first.Process().PID(), last: first.ID(), spacing: markEvery}
	d.program = first.Process().Executable()
	d.current = gdbserver.Stop{Thread: int32(first.ID())}
	m.AddHook(d)
	m.WriteOutputOnce()
	d.mark()
	d.start()
	return d
}

// start makes the run a new coroutine, at a decision.
func (d *debugger) start() {
	d.gone = false
	d.resume, d.unwind = iter.Pull(d.run)
}

// run is the coroutine.
func (d *debugger) run(yield func(struct{}) bool) {
	d.yield = yield
	for !d.m.Done() && d.between() {
		d.m.Step()
		if d.gone {
			return
		}
		d.stepped()
	}
}

// pause stops for a reason, and returns when the run is to go on. It must not
// go on when the debugger is gone.
func (d *debugger) pause(stop gdbserver.Stop) {
	d.current = stop
	d.gone = !d.yield(struct{}{})
}

// here is where the run is.
func (d *debugger) here() place {
	if d.task == nil {
		return place{d.step, beforeSlice}
	}
	return place{d.step, int64(d.n)}
}

// between looks at the place before a decision; false: the run ends here.
func (d *debugger) between() bool {
	d.task = nil
	if to := d.goal.to; to != nil && !d.here().before(*to) {
		d.pause(d.stopAt(gdbserver.Stepped, d.last))
	}
	if !d.gone && d.goal.interrupted != nil && d.goal.interrupted() {
		d.pause(d.stopAt(gdbserver.Stepped, d.last))
	}
	return !d.gone
}

func (d *debugger) stopAt(why gdbserver.Reason, t arch.ThreadID) gdbserver.Stop {
	return gdbserver.Stop{Reason: why, Thread: int32(t)}
}

// stepped takes stock after a decision.
func (d *debugger) stepped() {
	if d.step == uint64(len(d.turns)) {
		d.turns = append(d.turns, turn{thread: arch.NoThread})
	}
	done := d.turns[d.step]
	d.step++
	d.task = nil
	if d.watch.changed(d) {
		back := place{d.step - 1, beforeSlice}
		if done.instructions > 0 {
			back.n = int64(done.instructions) - 1
		}
		d.report(found{place{d.step, beforeSlice}, back, d.watch.stop(d)})
	}
	if !d.gone {
		d.consider()
	}
}

// EngineStarts implements machine.Hook.
func (d *debugger) EngineStarts(t *kernel.Task) machine.Reaction {
	d.task, d.n, d.last = t, 0, t.ID()
	d.mine = t.Process().PID() == d.pid
	if d.mine {
		d.executed(t.Process().Executable())
		if d.watch.changed(d) {
			d.report(found{d.here(), place{d.step, beforeSlice}, d.watch.stop(d)})
		}
		d.watch.guard(d)
	}
	d.look()
	d.arm()
	return d.reaction()
}

// reaction abandons the quantum if the coroutine is unwinding.
func (d *debugger) reaction() machine.Reaction {
	if d.gone {
		return machine.AbandonQuantum
	}
	return machine.Proceed
}

// executed stops the run if the process has begun another program.
func (d *debugger) executed(program string) {
	if program == d.program {
		return
	}
	d.program = program
	if d.goal.points && !d.goal.note {
		d.pause(d.stopAt(gdbserver.Executed, d.task.ID()))
	}
}

// EngineStopped implements machine.Hook: the engine has stopped where the debugger looks, or
// at an access to a page that is guarded.
func (d *debugger) EngineStopped(_ *kernel.Task, s arch.Stop) machine.Reaction {
	switch s.Reason {
	case arch.StopFault:
		if d.admits(s) {
			return machine.ResumeEngine
		}
		return machine.Proceed
	case arch.StopLog, arch.StopBreakpoint:
	default:
		return machine.Proceed
	}
	d.count(s)
	if d.watch.lifted {
		d.watched()
	}
	d.look()
	d.arm()
	return d.reaction()
}

// trapped stops the run if the slice ends because an instruction cannot be carried out.
func (d *debugger) trapped(s arch.Stop) {
	if !d.mine || d.goal.note || !d.goal.points {
		return
	}
	d.count(s)
	if signal := trapSignal(s); signal != 0 && d.here() != d.goal.from {
		stop := d.stopAt(gdbserver.Signalled, d.task.ID())
		stop.Signal = signal
		d.watch.lift(d)
		d.pause(stop)
	}
}

// EngineFinished implements machine.Hook: the slice is over.
func (d *debugger) EngineFinished(_ *kernel.Task, s arch.Stop) machine.Reaction {
	if d.trapped(s); d.gone {
		return machine.AbandonQuantum
	}
	d.count(s)
	d.watch.lift(d)
	d.watch.lifted = false
	if d.step == uint64(len(d.turns)) {
		d.turns = append(d.turns, turn{d.task.ID(), d.mine, s.Instructions})
	}
	d.instructions += s.Instructions
	return machine.Proceed
}

// count notes how far the slice is.
func (d *debugger) count(s arch.Stop) {
	d.n = s.Instructions
	g := &d.goal
	if d.task.ID() == g.stepping && place.before(max0(g.from, d.step), d.here()) {
		g.moved = true
	}
}

// max0 is the place from which instructions of a decision count: where the run
// set out, or the beginning of the slice.
func max0(from place, step uint64) place {
	if from.step == step && from.n > 0 {
		return from
	}
	return place{step, 0}
}

// look stops the run if this is a place to stop at.
func (d *debugger) look() {
	g := &d.goal
	switch {
	case d.gone:
	case g.to != nil && d.here() == *g.to:
		d.pause(d.stopAt(gdbserver.Stepped, d.task.ID()))
	case !g.points || !d.mine:
	case g.stepping == d.task.ID() && g.moved:
		d.pause(d.stopAt(gdbserver.Stepped, d.task.ID()))
	case d.here() != g.from:
		if p, ok := d.breakpoint(); ok {
			stop := d.stopAt(gdbserver.AtBreak, d.task.ID())
			stop.Point = p
			d.report(found{d.here(), d.here(), stop})
		}
	}
}

// report stops the run for what was found, or notes it.
func (d *debugger) report(f found) {
	g := &d.goal
	switch {
	case !g.points || d.gone:
	case !g.note:
		d.pause(f.stop)
	case f.back.before(*g.to) && !g.to.before(f.at):
		g.noted = &f
	}
}

// breakpoint finds the breakpoint at the PC. Those that GDB took away to step
// a thread past them still hold for the others.
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

// arm makes the engine stop where the debugger has to look next.
func (d *debugger) arm() {
	at := uint64(math.MaxUint64)
	g := &d.goal
	if to := g.to; to != nil && to.step == d.step && to.n > int64(d.n) {
		at = uint64(to.n)
	}
	if g.stepping == d.task.ID() && !g.moved || d.watch.lifted {
		at = min(at, d.n+1)
	}
	if at == math.MaxUint64 {
		at = 0
	}
	d.m.CPU().HaltAt(at)
}

// setBreakpoints tells the engine where to stop.
func (d *debugger) setBreakpoints() {
	list := slices.Clone(d.recent)
	for _, p := range d.points {
		if p.Kind <= gdbserver.HardwareBreak {
			list = append(list, p.Addr)
		}
	}
	d.m.CPU().SetDebugBreakpoints(list)
}
