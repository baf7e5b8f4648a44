package heddle

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder"
)

// Watch adds a recording to those of a machine that has not run, and logs every
// instruction for it.
func (m *Machine) Watch(p recorder.Recording) error {
	m.state.recording.rec.Add(p)
	return m.cpu.LogInstructions()
}

// WatchMemory adds a recording to those of a machine that has not run, and logs
// every load and store for it.
func (m *Machine) WatchMemory(p recorder.Recording) error {
	m.state.recording.rec.Add(p)
	return m.cpu.LogMemory(emu.MemoryFilter{})
}

// Checkpoint takes one where the leading machine is.
func (r *Replicas) Checkpoint() *Snapshot { return r.m.Snapshot() }

// UsedPages is how many pages the states of the leading machine hold.
func (r *Replicas) UsedPages() uint64 { return r.m.ram.Used() }

// TakeOver puts a follower to where an epoch begins, to execute it.
func (f *Follower) TakeOver(at *Checkpoint, first *Replica) { f.goTo(at, first.level) }
