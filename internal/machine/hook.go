package machine

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// Hook watches the loop of a machine: a debugger, a search over schedules, an analysis that
// looks for places. Its methods are called in the order in which they are listed, Prepare
// once and the others for each quantum. A Hook must have no effect that the guest can observe.
// Hooks embed NoHook and have the methods that concern them.
//
// A Hook observes threads, system calls and signals as a recorder.Recording
// (Machine.AddRecording).
type Hook interface {
	// Prepare is called once, while the machine is built: nothing has run, and there is no
	// guest yet. Recordings that it adds precede those of the machine.
	Prepare(m *Machine) error
	// BeforeDecision is called before the next decision is taken. A Hook that holds back what
	// the guest gets from outside gives it here: that is its effect on the guest.
	BeforeDecision()
	// BeforeQuantum is called after the stores that are due before a quantum were
	// committed, by decisions, which it gets. The thread may turn out to be unable to run:
	// then nothing else is called for the quantum.
	BeforeQuantum(q sched.Quantum, decided []event.Commit)
	// EngineStarts is called when a thread is loaded and about to run.
	EngineStarts(t *kernel.Task) Reaction
	// EngineStopped is called each time that the engine stops within the quantum or at its
	// end, before anything else acts on the stop. The thread is loaded.
	EngineStopped(t *kernel.Task, stop arch.Stop) Reaction
	// EngineFinished is called once, when the engine has stopped for the last time in the
	// quantum: neither the store buffers nor the kernel have acted on the stop.
	EngineFinished(t *kernel.Task, stop arch.Stop) Reaction
	// AfterQuantum is called when the store buffers have acted on the last stop and the
	// kernel has not. The thread is loaded.
	AfterQuantum(t *kernel.Task, stop arch.Stop)
}

// Reaction is the answer of a Hook to a start or a stop of the engine.
type Reaction uint8

const (
	// Proceed has the machine continue as without the Hook.
	Proceed Reaction = iota
	// ResumeEngine has the engine continue after a stop that concerns the Hook alone.
	ResumeEngine
	// AbandonQuantum has the machine leave the quantum at once, since it is about to
	// return to a snapshot: nothing of the quantum counts.
	AbandonQuantum
	// EndQuantum ends the quantum where the engine has stopped, as if its budget ended there.
	EndQuantum
)

// NoHook is a Hook that does nothing, for embedding.
type NoHook struct{}

// Prepare implements Hook, and so do the other methods.
func (NoHook) Prepare(*Machine) error                          { return nil }
func (NoHook) BeforeDecision()                                 {}
func (NoHook) BeforeQuantum(sched.Quantum, []event.Commit)     {}
func (NoHook) EngineStarts(*kernel.Task) Reaction              { return Proceed }
func (NoHook) EngineStopped(*kernel.Task, arch.Stop) Reaction  { return Proceed }
func (NoHook) EngineFinished(*kernel.Task, arch.Stop) Reaction { return Proceed }
func (NoHook) AfterQuantum(*kernel.Task, arch.Stop)            {}

// AddHook adds a Hook to a machine that is between two decisions, without preparing it.
func (m *Machine) AddHook(h Hook) { m.with.hooks = append(m.with.hooks, h) }

// RemoveHook removes a Hook.
func (m *Machine) RemoveHook(h Hook) {
	for i, have := range m.with.hooks {
		if have == h {
			m.with.hooks = append(m.with.hooks[:i:i], m.with.hooks[i+1:]...)
			return
		}
	}
}

func (m *Machine) beforeDecision() {
	for _, h := range m.with.hooks {
		h.BeforeDecision()
	}
}

func (m *Machine) beforeQuantum(q sched.Quantum, decided []event.Commit) {
	for _, h := range m.with.hooks {
		h.BeforeQuantum(q, decided)
	}
}

func (m *Machine) engineStarts(t *kernel.Task) Reaction {
	for _, h := range m.with.hooks {
		if r := h.EngineStarts(t); r != Proceed {
			return r
		}
	}
	return Proceed
}

func (m *Machine) engineStopped(t *kernel.Task, stop arch.Stop) Reaction {
	for _, h := range m.with.hooks {
		if r := h.EngineStopped(t, stop); r != Proceed {
			return r
		}
	}
	return Proceed
}

func (m *Machine) engineFinished(t *kernel.Task, stop arch.Stop) Reaction {
	for _, h := range m.with.hooks {
		if r := h.EngineFinished(t, stop); r != Proceed {
			return r
		}
	}
	return Proceed
}

func (m *Machine) afterQuantum(t *kernel.Task, stop arch.Stop) {
	for _, h := range m.with.hooks {
		h.AfterQuantum(t, stop)
	}
}
