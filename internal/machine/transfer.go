package machine

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
	"github.com/heddle-dmt/heddle/internal/machine/publish"
	"github.com/heddle-dmt/heddle/sched"
)

// States can move between machines of equal configurations whose memories were made together
// (mem.NewRAMs): one machine runs ahead, and others execute parts of the run again.

// AcceptStates prepares a machine of which nothing has run to take over states of others.
func (m *Machine) AcceptStates() {
	m.bound = deepcopy.Bounds(m.state)
	m.files = m.state.fs
}

// Kernel is the guest's Linux at the snapshot.
func (s *Snapshot) Kernel() *kernel.Kernel { return s.state.kernel }

// Clients are the clients outside of the guest at the snapshot, nil if no ports are published.
func (s *Snapshot) Clients() *publish.Clients { return s.state.clients }

// DropState gives up the state that the machine is in, which must get another one before it
// is used.
func (m *Machine) DropState() {
	if m.state != nil {
		deepcopy.Release(m.state)
		m.state = nil
	}
}

// TakeOver puts the machine to a snapshot of another one, whose memory it reads where it is:
// the snapshot must be kept until the states that the machine has later are released. The
// level is how full the other machine's memory was.
func (m *Machine) TakeOver(s *Snapshot, level mem.Level) {
	m.DropState()
	m.ram.Import(s.generation, level)
	m.state = deepcopy.Copy(deepcopy.For(m.bound...), s.state)
	m.state.recording.syncs.recognizer.Rearm()
	m.done, m.endedFromOutside = false, false
	m.result = Result{}
}

// HandOver is Snapshot without a copy: the machine has no state afterwards.
func (m *Machine) HandOver() *Snapshot {
	m.cpu.Unload()
	s := &Snapshot{m.state, m.ram.Generation()}
	m.state = nil
	return s
}

// Adopt makes a snapshot of a machine that has taken over a state of this one a snapshot of
// this one: it copies the pages that the other machine has changed, as long as there is
// memory for them (mem.RAM.Adopted).
func (m *Machine) Adopt(s *Snapshot) *Snapshot {
	m.ram.Adopt(s.generation)
	return &Snapshot{deepcopy.Copy(deepcopy.For(m.bound...), s.state), m.ram.Generation()}
}

// SetController replaces the controller of a run that has one.
func (m *Machine) SetController(c sched.Controller) { m.state.control.setController(c) }

// Gate is where the controller of the run holds threads.
func (m *Machine) Gate() *sched.Gate { return &m.state.control.gate }

// SetControlAddresses replaces the addresses at which the controller is asked (sched.Needs.Addresses).
func (m *Machine) SetControlAddresses(list []arch.Addr) {
	m.state.control.needs.Addresses = list
	m.state.control.recognizer.StopAlso(slices.Concat(m.breakpoints, list))
}

// ExpectOneThread says that the run has one thread: operations that only order are recognized again from when it has two.
func (m *Machine) ExpectOneThread() { m.state.recording.syncs.recognizer.ExpectOneThread() }

// ApplyVerdict carries out the decisions of the controller outside of a quantum.
func (m *Machine) ApplyVerdict() { m.applyVerdict(arch.NoThread, arch.NoCore, arch.Stop{}) }

// SetTimeToMakespan sets the kernel's time to that of the core whose clock is the furthest.
func (m *Machine) SetTimeToMakespan() { m.state.clock.now = m.state.cluster.Makespan() }

// LeaveInstructions takes all threads out of their instructions: an instruction that has stored
// nothing is executed anew, others are completed.
func (m *Machine) LeaveInstructions() { m.endInstructions() }

// EventNumber is the number of the latest event of a recorded run.
func (m *Machine) EventNumber() uint64 { return m.state.recording.rec.At().Seq }

// IgnoreTimeouts says whether waits, but for sleeps, have no deadline: only the controller ends
// them.
func (m *Machine) IgnoreTimeouts(on bool) { m.state.override.IgnoreTimeouts(m.state.kernel, on) }

// HoldPresentSignals says whether the signals of the threads that there are now wait.
func (m *Machine) HoldPresentSignals(on bool) { m.state.override.HoldPresent(m.state.kernel, on) }
