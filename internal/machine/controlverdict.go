package machine

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/sched"
)

// handleStop lets the kernel act on the stop that ended a quantum, or keeps the stop until the
// thread is released.
func (m *Machine) handleStop(t *kernel.Task, stop arch.Stop) {
	c := m.state.control
	if stop.Reason == arch.StopBudget {
		return // the kernel has nothing to do
	}
	m.showScheduleTime(t.ID())
	if c == nil || stop.Reason != arch.StopSyscall {
		m.state.kernel.Handle(t, stop)
		return
	}
	if c.gate.Holds(t.ID()) {
		kept := stop
		c.thread(t.ID()).held = &kept
		return
	}
	m.takeTurn(t)
	if e, ok := c.gate.TakeEffect(t.ID(), sched.Deliver); ok {
		m.state.kernel.Deliver(t, e.Writes[0].Data)
	}
	if e, ok := c.gate.TakeEffect(t.ID(), sched.Answer); ok {
		m.state.kernel.CompleteCall(t, e.Result, e.Writes)
		return
	}
	m.state.kernel.Handle(t, stop)
}

// applyVerdict reports a thread's quantum, or a timer (NoThread), to the controller, and
// carries out its orders.
func (m *Machine) applyVerdict(t arch.ThreadID, core arch.CoreID, stop arch.Stop) {
	s, c := m.state, m.state.control
	if c == nil {
		return
	}
	c.reportWaitsAndExits()
	if x := c.threads.At(t); x != nil {
		x.ran += stop.Instructions
		x.retired += stop.Instructions
	}
	c.controller.Stepped(&c.gate, t, stop.Instructions, s.clock.now)
	if t != arch.NoThread {
		m.reportProgress(t, stop)
	}
	m.changeViews()
	m.applyEffects()
	before := s.clock.now
	released, charge := c.gate.Take()
	if core != arch.NoCore {
		s.cluster.Charge(core, charge)
		m.setTime(core)
	}
	for _, r := range released {
		if r.Thread == t {
			s.cluster.Block(t)
		}
		at := s.clock.now
		if r.Ago > 0 && stop.Instructions > 0 {
			at = before + r.Paid - min(stop.Cycles*arch.Cycles(r.Ago)/arch.Cycles(stop.Instructions), stop.Cycles, before)
		}
		// A thread that a signal has stopped continues after SIGCONT.
		if task := s.kernel.Task(r.Thread); task != nil && task.Runnable() {
			s.cluster.Ready(r.Thread, at+r.Delay)
		}
	}
	if c.gate.Holds(t) {
		s.cluster.Block(t)
	}
	m.endControl()
}

// reportWaitsAndExits reports the threads that wait in the kernel, or have ended, since the
// last quantum.
func (c *control) reportWaitsAndExits() {
	for _, t := range c.blocked {
		c.thread(t).waited = true
		c.controller.Blocked(&c.gate, t, c.recognizer.InOperation(t))
	}
	for _, t := range c.exited {
		c.gate.Forget(t)
		c.threads.Delete(t)
		if c.views != nil {
			c.views.Discard(t)
		}
		c.controller.Exited(&c.gate, t)
	}
	c.blocked, c.exited = c.blocked[:0], c.exited[:0]
}

// reportProgress reports how far a thread has run in its quantum to a controller that stops
// threads, and asks about one that has reached its stop: it is loaded still.
func (m *Machine) reportProgress(t arch.ThreadID, stop arch.Stop) {
	c := m.state.control
	if !c.needs.Stops || c.recorder.Thread() != t {
		return
	}
	at := c.recorder.Retired()
	c.controller.Observe(&c.gate, sched.ThreadEvent{Kind: sched.QuantumEnded, Thread: t, Instructions: at})
	if stop.Reason != arch.StopBudget || stop.Instructions == 0 && stop.Inside == 0 || c.gate.Holds(t) {
		return
	}
	pc, done := m.position(m.state.kernel.Task(t))
	if _, exactly, accesses := c.controller.StopDistance(t, at); exactly == 0 && accesses <= done {
		c.thread(t).atomic = false
		c.shouldResume(sched.SyncPoint{Kind: sched.AtInstruction, PC: pc, Accesses: done})
	}
}

// applyEffects carries out the effects that the controller has on threads besides releasing
// them.
func (m *Machine) applyEffects() {
	k := m.state.kernel
	for {
		e, ok := m.state.control.gate.TakeEffect(arch.NoThread, sched.Leave, sched.Expire, sched.Rouse, sched.Detach, sched.Interrupt, sched.Deliver, sched.Overwrite, sched.ShowTime)
		if !ok {
			return
		}
		task := k.Task(e.Thread)
		switch {
		case task == nil:
		case e.Kind == sched.Leave:
			k.ReturnFromFunction(task, e.Result)
		case e.Kind == sched.Expire:
			k.ExpireWait(task)
		case e.Kind == sched.Detach:
			k.DetachWait(task)
		case e.Kind == sched.Interrupt:
			k.InterruptWait(task)
		case e.Kind == sched.Deliver:
			k.Deliver(task, e.Writes[0].Data)
		case e.Kind == sched.ShowTime:
			m.state.control.thread(e.Thread).shown = int64(e.Result)
		case e.Kind == sched.Overwrite:
			task.Process().Overwrite(e.Writes)
		default:
			k.EndWait(task)
		}
	}
}

// maxTimers is how many timers may fire in succession, with no runnable thread in between,
// until the run counts as stalled.
const maxTimers = 1000

// resolveStall is applyVerdict, after which it calls the controller's Stuck if no thread can
// run because some are held.
func (m *Machine) resolveStall(t arch.ThreadID, core arch.CoreID, stop arch.Stop) {
	s, c := m.state, m.state.control
	if c == nil {
		return
	}
	m.applyVerdict(t, core, stop)
	if s.cluster.Runnable() > 0 {
		c.timers = 0
		return
	}
	c.timers++
	if _, has := s.kernel.NextTimer(); has && c.timers < maxTimers || c.gate.Waiting() == 0 || s.kernel.Done() {
		return
	}
	c.timers = 0
	c.controller.Stuck(&c.gate)
	m.applyVerdict(arch.NoThread, arch.NoCore, arch.Stop{})
}

// endControl ends the run, or lets it continue on its own, when the controller has finished.
func (m *Machine) endControl() {
	c := m.state.control
	switch v := c.gate.Verdict(); {
	case v == sched.Controlling || c.ended:
		return
	case v == sched.Ended && !m.done && !m.state.kernel.Done():
		m.end(OutcomeDiverged)
	case v == sched.Spinning:
		m.endSpinning(c.gate.Stalled())
	}
	c.ended = true
	m.state.override.IgnoreFutexTimeouts(m.state.kernel, false)
	m.state.override.HoldAllSignals(m.state.kernel, false)
}
