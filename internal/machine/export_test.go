package machine

import (
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/recorder"
)

// Watch adds a recording to those of a machine that has not run, and logs every
// instruction for it.
func (m *Machine) Watch(p recorder.Recording) error {
	m.AddRecording(p)
	return m.cpu.LogInstructions()
}

// WatchMemory adds a recording to those of a machine that has not run, and logs
// every load and store for it.
func (m *Machine) WatchMemory(p recorder.Recording) error {
	m.AddRecording(p)
	return m.cpu.LogMemory(memlog.Filter{})
}

// State is everything that a snapshot copies.
func (m *Machine) State() any { return m.state }
