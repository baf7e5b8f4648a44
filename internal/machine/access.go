package machine

import (
	"context"
	"errors"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/machine/publish"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/sched"
	schedreplay "github.com/heddle-dmt/heddle/sched/replay"
)

// The methods of this file are for programs that drive a machine step by step, and for hooks.

// Kernel is the guest's Linux in the machine's present state; Restore replaces it.
func (m *Machine) Kernel() *kernel.Kernel { return m.state.kernel }

// Cluster is the scheduler in the machine's present state; Restore replaces it.
func (m *Machine) Cluster() *sched.Cluster { return m.state.cluster }

// Clients are the clients outside of the guest in the machine's present state, nil if no ports are published.
func (m *Machine) Clients() *publish.Clients { return m.state.clients }

// CPU is the engine.
func (m *Machine) CPU() emu.CPU { return m.cpu }

// Memory is the guest's physical memory.
func (m *Machine) Memory() *mem.RAM { return m.ram }

// Instructions is how many instructions all threads have retired in quanta that are over.
func (m *Machine) Instructions() uint64 { return m.state.digest.instructions }

// Outcome is how the run ended; it is empty before.
func (m *Machine) Outcome() Outcome { return m.result.Outcome }

// InterruptedInstruction is the instruction that a thread is inside, between two of its
// accesses to memory, while other threads run.
func (m *Machine) InterruptedInstruction(t arch.ThreadID) (in *arch.Interrupted, inside bool) {
	if i := m.state.interrupted.indexOf(t); i >= 0 {
		return &m.state.interrupted[i].in, true
	}
	return nil, false
}

// CarriedOut is how many decisions of the recorded run are carried out in a replay.
func (m *Machine) CarriedOut() uint64 {
	n, _ := schedreplay.Current(m.state.cluster)
	return n + 1
}

// PassTo lets idle time pass, up to a time, while no thread can run.
func (m *Machine) PassTo(to arch.Cycles) {
	m.state.cluster.PassTo(to)
	m.state.clock.now = max(m.state.clock.now, to)
	m.state.kernel.SetNow(m.toNS(to))
}

// IsControlled reports whether a controller decides when threads pass their synchronization
// operations.
func (m *Machine) IsControlled() bool { return m.state.control != nil }

// InOperation reports whether a thread is in a synchronization operation, in a run in which
// operations are recognized.
func (m *Machine) InOperation(t arch.ThreadID) bool {
	return m.state.recording.syncs.recognizer.InOperation(t)
}

// OperationArguments are the arguments of the synchronization operation that a thread is in,
// if it is in one, in a run in which operations are recognized.
func (m *Machine) OperationArguments(t arch.ThreadID) (arguments [3]uint64, inside bool) {
	return m.state.recording.syncs.recognizer.Arguments(t)
}

// StoresAreVisible reports whether it is known that no store waits in a store buffer.
func (m *Machine) StoresAreVisible() bool { return m.state.stores.IsEmpty() }

// StoreBuffer is the machine's in its present state; Restore replaces it.
func (m *Machine) StoreBuffer() memmodel.StoreBuffer { return m.state.stores }

// VisitWaitingStores calls visit for each store that waits in the store buffers of the other
// cores, core by core and the oldest first, with whether the memory model lets it leave the
// buffer, and how many stores to the same address wait from that one on.
func (m *Machine) VisitWaitingStores(core arch.CoreID, visit func(t arch.ThreadID, at arch.Addr, free bool, newest int)) {
	if b, byStore := m.state.stores.(*storebuffer.ByStore); byStore {
		b.Withheld(core, visit)
	}
}

// StopAtPauses has the engine stop at each PAUSE, also where it does not end the quantum.
func (m *Machine) StopAtPauses() { m.seesPauses = true }

// AddBreakpoints has the engine stop before instructions. It is for Hook.Prepare.
func (m *Machine) AddBreakpoints(at []arch.Addr) {
	m.breakpoints = append(m.breakpoints, at...)
}

// AddRecording has a recording follow the run. Recordings from Hook.Prepare precede the
// machine's own; later only a machine that has recordings takes another one.
func (m *Machine) AddRecording(p recorder.Recording) {
	if m.state.recording.rec == nil {
		m.watching = append(m.watching, p)
		return
	}
	m.state.recording.rec.Add(p)
}

// WriteOutputOnce has the guest's output written once, though the run returns to snapshots
// and produces it again.
func (m *Machine) WriteOutputOnce() { m.host.Once = true }

// End ends the run with an outcome.
func (m *Machine) End(outcome Outcome) { m.end(outcome) }

// EndByContext ends the run as Run does when the context is done.
func (m *Machine) EndByContext(ctx context.Context) { m.endFromOutside(ctx) }

// Finish completes the result of a run that is over. Changes to writable mounts are written
// to the host, unless the run is isolated or a replay.
func (m *Machine) Finish() (*Result, error) {
	err := m.complete()
	return &m.result, err
}

// GiveUp ends a run whose result is not needed, and completes its trace.
func (m *Machine) GiveUp() error {
	m.end(OutcomeInterrupted)
	return errors.Join(m.finishRecording(), m.CloseTrace())
}

// Config is the configuration that the machine was built with.
func (m *Machine) Config() Config { return m.config }
