package machine

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/recorder"
)

// inStretch makes a recording now, or if a stretch of the run is recorded one that is made when that begins.
func (m *Machine) inStretch(begin func() (recorder.Recording, error)) (recorder.Recording, error) {
	if !m.config.Record.Stretch.IsWhole() {
		return recorder.NewLate(begin, func(err error) { m.host.KeepError(errRecording.Wrap(err)) }), nil
	}
	p, err := begin()
	if err != nil {
		return nil, errRecording.Wrap(err)
	}
	return p, nil
}

// limitRecording has the recordings follow a stretch of the run, if the configuration names one.
func (m *Machine) limitRecording() error {
	r := m.config.Record
	if r.Stretch.IsWhole() {
		return nil
	}
	if r.PT != nil || r.Memory != nil {
		if err := m.cpu.CountBranches(); err != nil {
			return errRecording.Wrap(err)
		}
	}
	s := &stretchHook{recorder: m.state.recording.rec, bounds: recorder.NewBounds(r.Stretch)}
	s.bounds.Attach(m.cpu, m.Instructions)
	s.recorder.Limit(s.bounds, func() bool { return len(m.state.interrupted) == 0 })
	m.with.hooks = append(m.with.hooks, s)
	m.bounded = s.bounds
	return nil
}

// stretchHook passes the starts and stops of the engine to the bounds of a stretch.
type stretchHook struct {
	NoHook
	recorder *recorder.Recorder
	bounds   *recorder.Bounds
}

// EngineStarts implements Hook.
func (h *stretchHook) EngineStarts(t *kernel.Task) Reaction {
	h.bounds.Arrive(h.recorder, t, 0)
	h.recorder.MoveOn(t)
	return Proceed
}

// EngineStopped implements Hook.
func (h *stretchHook) EngineStopped(t *kernel.Task, s arch.Stop) Reaction {
	if s.Reason == arch.StopBreakpoint {
		h.bounds.Arrive(h.recorder, t, s.Instructions)
		h.recorder.MoveOn(t)
	}
	return Proceed
}
