package machine

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
)

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
