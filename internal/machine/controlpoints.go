package machine

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/syncops"
	"github.com/heddle-dmt/heddle/sched"
)

// The methods of this file ask the controller about the thread of a quantum. A result of type
// bool is whether the thread may run; without a controller it may.

// runPendingSyscall carries out the system call before which a thread was held, if it is at
// one. It returns whether it is.
func (m *Machine) runPendingSyscall(t *kernel.Task) bool {
	c := m.state.control
	if c == nil || c.gate.Holds(t.ID()) {
		return false
	}
	s := c.thread(t.ID())
	if s.held == nil {
		return false
	}
	stop := *s.held
	s.held = nil
	t.Load()
	m.handleStop(t, stop)
	return true
}

// askOnWake asks about a thread that was woken, if the controller orders threads before they
// check again whether their wait is over.
func (m *Machine) askOnWake(t *kernel.Task) bool {
	c := m.state.control
	if c == nil || c.gate.Holds(t.ID()) {
		return true
	}
	s := c.thread(t.ID())
	if !s.waited || !c.needs.Creations && !(c.needs.CallWakes && !t.HasSignal() && !c.recognizer.InOperation(t.ID())) {
		return true
	}
	s.waited = false
	resumes := c.shouldResume(sched.SyncPoint{Kind: sched.AtWake})
	if resumes {
		m.takeTurn(t)
	}
	return resumes
}

// askOnResume asks about a thread that is about to run.
func (m *Machine) askOnResume(t *kernel.Task) bool {
	c := m.state.control
	if c == nil {
		return true
	}
	s := c.thread(t.ID())
	switch {
	case c.gate.Holds(t.ID()):
		return false // a signal woke it
	case !s.started:
		s.started = true
		return c.shouldResume(sched.SyncPoint{Kind: sched.AtStart})
	case s.waited:
		s.waited = false
		if !c.shouldResume(sched.SyncPoint{Kind: sched.AtWake}) {
			return false
		}
	}
	if c.needs.MayRun && !c.controller.MayRun(t.ID(), c.recorder.Retired()) {
		c.gate.Hold(t.ID())
		return false
	}
	if most := c.controller.Budget(t.ID()); most > 0 && s.ran >= most {
		s.ran = 0
		return c.shouldResume(sched.SyncPoint{Kind: sched.AtBudget})
	}
	return m.askAtStops(t)
}

// askAtStops asks about a thread that is where the controller wants it to stop, until it is
// not there any more.
func (m *Machine) askAtStops(t *kernel.Task) bool {
	c := m.state.control
	if !c.needs.Stops {
		return true
	}
	for {
		c.asked = c.gate.Counts().Asked
		c.soon, c.exactly, c.accesses = c.controller.StopDistance(t.ID(), c.recorder.Retired())
		pc, done := m.position(t)
		if c.soon > 0 && (c.exactly > 0 || c.accesses > done) {
			return m.askAtAddress(t)
		}
		c.thread(t.ID()).atomic = false // it reaches the instruction again
		if !c.shouldResume(sched.SyncPoint{Kind: sched.AtInstruction, PC: pc, Accesses: done}) {
			return false
		}
	}
}

// askAtAddress asks about a thread that is loaded, if it is at one of the controller's
// addresses.
func (m *Machine) askAtAddress(t *kernel.Task) bool {
	c := m.state.control
	if len(c.needs.Addresses) == 0 || c.gate.Holds(t.ID()) {
		return true
	}
	pc := m.cpu.PC()
	if _, found := slices.BinarySearch(c.needs.Addresses, pc); !found {
		return true
	}
	return c.shouldResume(sched.SyncPoint{Kind: sched.AtAddress, PC: pc})
}

// askAtBreakpoint is askAtAddress for a thread that the engine has stopped within its quantum.
func (m *Machine) askAtBreakpoint(t *kernel.Task, stop arch.Stop) {
	if c := m.state.control; c != nil && stop.Reason == arch.StopBreakpoint && !c.gate.Holds(t.ID()) {
		m.askAtAddress(t)
	}
}

// askAfterOperation asks again about a thread whose last quantum ended where an operation ends:
// only now is it at that instruction, after the operation.
func (m *Machine) askAfterOperation(t *kernel.Task) {
	if c := m.state.control; c != nil && !c.endsQuantum(t.ID()) {
		m.askAtAddress(t)
	}
}

// asksAtAtomics reports whether the engine stops before atomic instructions, so that the
// controller is asked about them.
func (m *Machine) asksAtAtomics() bool { return m.with.atomics || m.hasViews() }

// admitAtomic has the engine not stop again before the atomic instruction that a thread may be
// before, if the controller was asked about it.
func (m *Machine) admitAtomic(t *kernel.Task) {
	if m.asksAtAtomics() {
		m.cpu.AdmitAtomic(m.state.control.thread(t.ID()).atomic)
	}
}

// askAtAtomic asks about a thread that the engine has stopped before an atomic instruction.
// Those of the dynamic linker have no position in any order: no program can observe which
// thread is the first to call a function. With views they have one, as all atomic instructions: the
// stores around them are to be seen.
func (m *Machine) askAtAtomic(t *kernel.Task, stop arch.Stop) {
	c := m.state.control
	if !m.asksAtAtomics() || stop.Reason != arch.StopBreakpoint || !m.cpu.AtAtomic() || c.gate.Holds(t.ID()) {
		return
	}
	var r arch.Regs
	m.cpu.Regs(&r)
	library, linker := c.recognizer.Library(t.ID(), arch.Addr(r.RIP))
	m.cpu.AdmitAtomic(true)
	s := c.thread(t.ID())
	if linker && !m.hasViews() || c.recognizer.InOperation(t.ID()) {
		s.atomic = false
		return
	}
	at, compares, sets := m.cpu.NextAtomic()
	s.atomic, s.compares = true, compares
	block := arch.Addr(r.FSBase)
	inBlock := at >= block && at < block+syncops.ThreadDescriptorSize
	c.shouldResume(sched.SyncPoint{Kind: sched.AtAtomic, Private: library && !(inBlock && compares), MayExit: inBlock && sets})
}

// noteComparison notes whether the CMPXCHG that a thread may have executed has stored: the zero flag says so.
func (m *Machine) noteComparison(t *kernel.Task) {
	c := m.state.control
	if !m.asksAtAtomics() || !c.thread(t.ID()).atomic {
		return
	}
	var r arch.Regs
	m.cpu.Regs(&r)
	s := c.thread(t.ID())
	s.failed = s.compares && r.RFLAGS&zeroFlag == 0
}

const zeroFlag = 1 << 6

// reportAtomic reports an atomic instruction that is done to the controller.
func (c *control) reportAtomic(e *event.Sync) {
	s := c.thread(e.Thread)
	if !s.atomic {
		return
	}
	s.atomic = false
	if c.needs.Atomics {
		c.controller.Observe(&c.gate, sched.ThreadEvent{
			Kind: sched.AtomicExecuted, Thread: e.Thread, Instructions: e.Instructions, Sync: e, Failed: s.failed && c.recorder.Retired()-e.Instructions <= 1,
		})
	}
}
