package heddle

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/memmodel/buffers"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/replay"
	"github.com/heddle-dmt/heddle/sched"
)

var errPagesMemory = errs.Define("pages-engine-memory-log",
	"loads and stores cannot be recorded of a run whose stores are kept by {engine}",
	"The engine that keeps stores by pages cannot tell the recorder where they go.",
	"Record the run with heddle record --tso-engine exact, which recording loads and stores makes no slower.")

// separateViews sets up the engine that keeps stores by pages.
func (m *Machine) separateViews() (err error) {
	c := &m.config
	if c.Record != nil && c.Record.Memory != nil {
		return errPagesMemory.New(c.Memory.Engine)
	}
	m.state.pages = buffers.NewPages(c.Cores, c.Seed, c.Memory)
	if m.views, err = m.cpu.SeparateViews(); err != nil {
		return errBuffers.Wrap(err)
	}
	return nil
}

// commitPages is commit for that engine.
func (m *Machine) commitPages(slice sched.Slice) bool {
	s := m.state
	if n, recorded := s.cluster.Replaying(); recorded != nil {
		if !s.pages.Follow(recorded.Commits, m.views) {
			m.diverge(replay.Place(n, recorded) + ": a buffer that is drained in the recording has nothing in it now")
			return false
		}
		s.recording.commits(recorded.Commits)
	} else {
		m.decided = s.pages.Decide(s.cluster.Now(slice.Core), m.views, m.decided[:0])
		s.recording.commits(m.decided)
	}
	s.pages.Turn(slice.Core, slice.Thread, m.views)
	if t := s.kernel.Task(slice.Thread); t.KernelActs() {
		m.views.Drain(slice.Core)
	}
	return true
}

// executePages is execute for that engine.
func (m *Machine) executePages(slice sched.Slice, t *kernel.Task) emu.Stop {
	s := m.state
	m.views.Begin(slice.Core, slice.Thread)
	stop := m.executeShared(slice, t)
	s.pages.Ended(slice.Core, m.views.End(), m.views)
	switch stop.Reason {
	case emu.StopBudget, emu.StopPause, emu.StopSync:
		return stop
	}
	// The kernel is about to act for the thread.
	m.views.Drain(slice.Core)
	if stop.Reason == emu.StopSyscall && m.changesMappings(t) {
		s.pages.DrainAll(m.views)
	}
	return stop
}

// saveViews puts what waits in the engine into the state, for a snapshot.
func (m *Machine) saveViews() {
	if m.views != nil {
		m.state.views = m.views.Save()
	}
}

// dropViews takes it out of the state again.
func (m *Machine) dropViews() {
	if s := m.state; s.views != nil {
		s.views.Release()
		s.views = nil
	}
}

// loadViews puts what waited at a snapshot into the engine.
func (m *Machine) loadViews() {
	s := m.state
	if s.views == nil {
		return
	}
	s.views.Load(func(t event.ThreadID) *emu.Space { return s.kernel.Task(t).Space() })
	m.dropViews()
}
