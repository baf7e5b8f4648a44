package machine

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched"
)

// settle does what the controller wants done, at the end of a slice of a thread
// or behind a timer (NoThread).
func (m *Machine) settle(t arch.ThreadID, core arch.CoreID, stop arch.Stop) {
	s, g := m.state, m.state.gating
	if g == nil {
		return
	}
	for _, b := range g.blocked {
		g.thread(b).waited = true
		g.controller.Blocked(&g.gate, b, g.syncs.InOperation(b))
	}
	for _, x := range g.gone {
		g.gate.Forget(x)
		g.threads.Delete(x)
		g.controller.Exited(&g.gate, x)
	}
	g.blocked, g.gone = g.blocked[:0], g.gone[:0]
	if x := g.threads.At(t); x != nil {
		x.ran += stop.Instructions
		x.cycles += stop.Cycles
	}
	g.controller.Stepped(&g.gate, t, stop.Instructions, s.clock.now)
	if t != arch.NoThread {
		m.settlePoints(t, stop)
	}
	m.affect()
	began := s.clock.now
	released, charge := g.gate.Take()
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
			at = began + r.Paid - min(stop.Cycles*arch.Cycles(r.Ago)/arch.Cycles(stop.Instructions), stop.Cycles, began)
		}
		// One that a signal has stopped goes on when it is continued.
		if task := s.kernel.Task(r.Thread); task != nil && task.Runnable() {
			s.cluster.Ready(r.Thread, at+r.Delay)
		}
	}
	if g.gate.Holds(t) {
		s.cluster.Block(t)
	}
	m.obey()
}

// settlePoints tells a Stopper how far a thread has come in its slice, and asks about
// one that has come to where it is to stop: it is loaded still.
func (m *Machine) settlePoints(t arch.ThreadID, stop arch.Stop) {
	g := m.state.gating
	stopper := g.as.stopper
	if stopper == nil || g.recorder.Thread() != t {
		return
	}
	at := g.recorder.Retired()
	stopper.Reached(&g.gate, t, at)
	if stop.Reason != arch.StopBudget || stop.Instructions == 0 && stop.Inside == 0 || g.gate.Holds(t) {
		return
	}
	pc, done := m.position(m.state.kernel.Task(t))
	if _, exactly, accesses := stopper.Left(t, at); exactly == 0 && accesses <= done {
		g.thread(t).atomic = false
		g.ask(sched.SyncPoint{Kind: sched.AtInstruction, PC: pc, Accesses: done})
	}
}

// affect carries out what becomes of threads besides going on.
func (m *Machine) affect() {
	k := m.state.kernel
	for {
		e, ok := m.state.gating.gate.TakeEffect(arch.NoThread, sched.Leave, sched.Expire, sched.Rouse, sched.Deliver, sched.Overwrite)
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
		case e.Kind == sched.Deliver:
			k.Deliver(task, e.Writes[0].Data)
		case e.Kind == sched.Overwrite:
			task.Process().Overwrite(e.Writes)
		default:
			k.EndWait(task)
		}
	}
}

// maxTimers is how many timers may fire one after the other, with no thread
// that can run in between, until nothing is expected of them any more.
const maxTimers = 1000

// settleStuck is settle, and then tells the controller if no thread can run
// because some are held.
func (m *Machine) settleStuck(t arch.ThreadID, core arch.CoreID, stop arch.Stop) {
	s, g := m.state, m.state.gating
	if g == nil {
		return
	}
	m.settle(t, core, stop)
	if s.cluster.Runnable() > 0 {
		g.timers = 0
		return
	}
	g.timers++
	if _, has := s.kernel.NextTimer(); has && g.timers < maxTimers || g.gate.Waiting() == 0 || s.kernel.Done() {
		return
	}
	g.timers = 0
	g.controller.Stuck(&g.gate)
	m.settle(arch.NoThread, arch.NoCore, arch.Stop{})
}
