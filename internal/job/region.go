package job

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/region"
)

// WatchRegion makes the watcher of the region of interest, nil if there is none.
func (o Options) WatchRegion() *region.Watcher {
	spec, ok := region.Parse(o.Region)
	if !ok {
		return nil
	}
	return region.Watch(spec)
}

// WithRegion has a machine observe a region of interest.
func WithRegion(w *region.Watcher) machine.Option { return machine.WithHook(&regionHook{watcher: w}) }

// regionHook passes the starts and stops of the engine to a watcher.
type regionHook struct {
	machine.NoHook
	watcher *region.Watcher
}

// Prepare implements machine.Hook.
func (h *regionHook) Prepare(m *machine.Machine) error {
	h.watcher.Attach(m.CPU(), m.Instructions)
	m.AddRecording(h.watcher)
	return nil
}

// EngineStarts implements machine.Hook.
func (h *regionHook) EngineStarts(t *kernel.Task) machine.Reaction {
	h.watcher.Arrive(t, 0)
	return machine.Proceed
}

// EngineStopped implements machine.Hook.
func (h *regionHook) EngineStopped(t *kernel.Task, s arch.Stop) machine.Reaction {
	if s.Reason == arch.StopBreakpoint {
		h.watcher.Arrive(t, s.Instructions)
	}
	return machine.Proceed
}
