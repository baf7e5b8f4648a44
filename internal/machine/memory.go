package machine

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder/replay"
	"github.com/heddle-dmt/heddle/sched"
	schedreplay "github.com/heddle-dmt/heddle/sched/replay"
)

var errBuffers = errs.Define("store-buffers-cannot-begin",
	"the machine cannot be set up for the memory model",
	"The engine does not watch stores; the rest of the sentence is its own.",
	"Report the sentence, and run under --model sc until it is mended.")

var errPagesMemory = errs.Define("pages-engine-memory-log",
	"loads and stores cannot be recorded of a run whose stores are kept by {engine}",
	"The engine that keeps stores by pages does not record the addresses of stores.",
	"Record the run with heddle record --tso-engine exact, which recording loads and stores makes no slower.")

// bufferStores sets up the memory model.
func (m *Machine) bufferStores() error {
	c := &m.config
	m.state.stores = storebuffer.None{}
	if m.hasViews() {
		return m.useViews()
	}
	if c.Memory.MemoryModel() == memmodel.SC {
		return nil
	}
	if c.Memory.Engine == storebuffer.Pages {
		if c.Record != nil && c.Record.Memory != nil {
			return errPagesMemory.New(c.Memory.Engine)
		}
		stores, err := storebuffer.NewByPage(m.cpu, c.Cores, c.Seed, c.Memory)
		if err != nil {
			return errBuffers.Wrap(err)
		}
		m.state.stores = stores
		return nil
	}
	stores, err := storebuffer.NewByStore(m.cpu, c.Cores, c.Seed, c.Memory, sharedMemory{m.state})
	if err != nil {
		return errBuffers.Wrap(err)
	}
	if m.with.keepStore != nil {
		stores.KeepStores(m.with.keepStore, m.with.firstStores)
	}
	m.state.stores = stores
	return nil
}

// sharedMemory is the memory that all cores see, by thread.
type sharedMemory struct{ state *state }

// Commit implements storebuffer.Memory. A store to a page that does not exist any more, or
// that may not be written, has no effect.
func (s sharedMemory) Commit(t arch.ThreadID, at arch.Addr, data []byte) {
	if task := s.state.kernel.Task(t); task != nil {
		_, _ = task.Space().CommitAt(data, at)
	}
}

// commitStores commits the stores that are due before a quantum, by decisions or by the commits
// of a recorded run, and the stores that cannot wait any longer. It returns false when a recorded
// commit is impossible, which ends the run.
func (m *Machine) commitStores(q sched.Quantum) bool {
	s := m.state
	now := s.cluster.Now(q.Core)
	if n, recorded := schedreplay.Current(s.cluster); recorded != nil {
		if problem := s.stores.Follow(recorded.Commits); problem != "" {
			m.diverge(replay.Place(n, recorded) + ": " + problem)
			return false
		}
		m.decided = append(m.decided[:0], recorded.Commits...)
	} else {
		m.decided = s.stores.Decide(q.Core, now, m.decided[:0])
	}
	s.recording.noteCommits(m.decided)
	m.recordDelays(now, true)
	s.stores.Switch(q.Core, q.Thread)
	m.beforeQuantum(q, m.decided)
	if t := s.kernel.Task(q.Thread); t.HasKernelWork() {
		s.stores.Drain(q.Core)
		if m.hasViews() && !s.control.gate.Holds(q.Thread) {
			m.leaveView(t)
		}
	}
	m.recordDelays(now, false)
	s.recording.delays.NoteRun(q.Core)
	return true
}

// execute runs the thread, which is loaded, to the end of a quantum.
func (m *Machine) execute(q sched.Quantum, t *kernel.Task) (arch.Stop, Reaction) {
	s := m.state
	faults := uint64(0)
	if m.hasViews() {
		m.enterView(t)
		faults = s.control.views.Counts().Faults
	}
	s.stores.Begin(q.Core, q.Thread)
	stop, reaction := m.runEngine(q, t)
	s.stores.End(q.Core, q.Thread)
	if m.hasViews() {
		m.chargeFaults(faults, &stop)
	}
	if reaction == AbandonQuantum {
		return stop, reaction
	}
	m.drainForKernel(q.Core, t, stop)
	m.recordDelays(s.cluster.Now(q.Core)+stop.Cycles, false)
	m.afterQuantum(t, stop)
	return stop, reaction
}

// drainForKernel commits the stores that the kernel has to see, if it is about to act for the
// thread.
func (m *Machine) drainForKernel(core arch.CoreID, t *kernel.Task, stop arch.Stop) {
	switch stop.Reason {
	case arch.StopBudget, arch.StopPause, arch.StopSync:
		return
	}
	if m.hasViews() {
		if stop.Reason == arch.StopFault || stop.Reason == arch.StopException {
			m.leaveView(t)
		}
		return
	}
	stores := m.state.stores
	if stores.IsEmpty() {
		return
	}
	stores.Drain(core)
	if stop.Reason == arch.StopSyscall && m.changesMappings(t) {
		stores.DrainAll()
	}
}

// changesMemory reports whether the kernel is about to do something for the loaded thread after
// which memory may be gone that another thread stores to.
func (m *Machine) changesMemory(t *kernel.Task, stop arch.Stop) bool {
	switch stop.Reason {
	case arch.StopBudget, arch.StopPause, arch.StopSync, arch.StopBreakpoint, arch.StopLog:
		return false
	case arch.StopSyscall:
		return len(m.state.interrupted) > 0 && m.changesMappings(t)
	}
	return true
}

// changesMappings reports whether the system call that the loaded thread is about to make may
// remove pages, or reads or writes memory by a file.
func (m *Machine) changesMappings(t *kernel.Task) bool {
	var r arch.Regs
	m.cpu.Regs(&r)
	return t.ReachesMemory(&r) || t.MayRemovePages(&r)
}

// drainAtEnd commits all stores, at the end of the run.
func (m *Machine) drainAtEnd() {
	m.completeAllStores()
	m.state.stores.DrainAll()
	m.recordDelays(m.state.cluster.Makespan(), false)
}

// recordDelays records the stores that were committed since the last call, at a time of the
// core that runs.
func (m *Machine) recordDelays(now arch.Cycles, decided bool) {
	s := m.state
	if s.recording.delays == nil {
		return
	}
	at := s.recording.rec.At()
	at.Time = now
	s.recording.delays.Committed(s.stores.(*storebuffer.ByStore).Cores, at, decided)
}
