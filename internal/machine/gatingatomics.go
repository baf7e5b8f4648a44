package machine

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/syncops"
	"github.com/heddle-dmt/heddle/sched"
)

// asksAtomics reports whether a run's controllers are sched.AtomicControllers.
func (m *Machine) asksAtomics() bool { return m.with.atomics }

// admitAtomic tells the engine whether the atomic instruction that a thread may be
// before was asked about: it is not to stop there again.
func (m *Machine) admitAtomic(t *kernel.Task) {
	if m.asksAtomics() {
		m.cpu.AdmitAtomic(m.state.gating.thread(t.ID()).atomic)
	}
}

// atomic asks about a thread that the engine has stopped before an atomic
// instruction. Those of the dynamic linker have no place in any order: which thread
// is the first to call a function is nothing that a program can tell.
func (m *Machine) atomic(t *kernel.Task, stop arch.Stop) {
	g := m.state.gating
	if !m.asksAtomics() || stop.Reason != arch.StopBreakpoint || !m.cpu.AtAtomic() || g.gate.Holds(t.ID()) {
		return
	}
	var r arch.Regs
	m.cpu.Regs(&r)
	library, linker := g.syncs.Library(t.ID(), arch.Addr(r.RIP))
	m.cpu.AdmitAtomic(true)
	s := g.thread(t.ID())
	if linker || g.syncs.InOperation(t.ID()) {
		s.atomic = false
		return
	}
	s.atomic = true
	at, compares, sets := m.cpu.NextAtomic()
	block := arch.Addr(r.FSBase)
	inBlock := at >= block && at < block+syncops.ThreadDescriptorSize
	g.ask(sched.SyncPoint{Kind: sched.AtAtomic, Private: library && !(inBlock && compares), MayExit: inBlock && sets})
}

// didAtomic tells the controller of an atomic instruction that is done.
func (g *gating) didAtomic(e *event.Sync) {
	s := g.thread(e.Thread)
	if !s.atomic {
		return
	}
	s.atomic = false
	if c, ok := g.controller.(sched.AtomicController); ok {
		c.Atomic(&g.gate, e)
	}
}
