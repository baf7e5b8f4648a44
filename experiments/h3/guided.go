package h3

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/sched/guided"
	"github.com/heddle-dmt/heddle/sched/minimize"
)

// guidedConfig is the configuration of a recorded run, to be run under a schedule that was
// computed, with the options that the machine needs for it. Of the recording it takes the
// program and its inputs alone, and the decisions before the checkpoint at which the schedule
// begins, if it begins at one. Model is the memory model, empty for the recorded one.
func guidedConfig(r *machine.Replay, g *guided.Guide, model string) (machine.Config, []machine.Option, error) {
	c, err := r.Config()
	if err != nil {
		return c, nil, err
	}
	c.Replay = nil
	if g.PriorDecisions() > 0 {
		if err := r.CheckDecisions(); err != nil {
			return c, nil, err
		}
	}
	if model != "" {
		c.Memory.Model = model
	}
	c.Memory.Engine = storebuffer.Exact
	hook := &guideHook{guide: g, cores: c.Cores}
	return c, []machine.Option{
		machine.Isolated(), machine.WithPolicy(g), machine.WithRecordedStart(r, g.PriorDecisions()),
		machine.WithStoresKept(func(t arch.ThreadID, at arch.Addr) int {
			return g.Held(minimize.Store{Thread: t, Addr: at})
		}, func() (list []storebuffer.Waiting) {
			g.Place(hook.newestStore)
			for _, h := range g.First() {
				list = append(list, storebuffer.Waiting{Thread: h.Thread, Addr: h.Addr, Newest: h.Newest})
			}
			return list
		}),
		machine.WithHook(hook),
	}, nil
}

// guideHook reports to a guide how each quantum ends.
type guideHook struct {
	machine.NoHook
	m     *machine.Machine
	guide *guided.Guide
	cores int
}

// Prepare implements machine.Hook.
func (h *guideHook) Prepare(m *machine.Machine) error {
	h.m = m
	return nil
}

// newestStore returns the address of a thread's newest store that waits, if one does.
func (h *guideHook) newestStore(t arch.ThreadID) (at arch.Addr, waits bool) {
	buffer, ok := h.m.StoreBuffer().(*storebuffer.ByStore)
	for k := arch.CoreID(0); ok && int(k) < h.cores; k++ {
		for _, x := range buffer.Stores(k) {
			if buffer.Thread(k) == t && x.Size > 0 {
				at, waits = x.Addr, true
			}
		}
	}
	return at, waits
}

// AfterQuantum implements machine.Hook.
func (h *guideHook) AfterQuantum(_ *kernel.Task, s arch.Stop) {
	pc := h.m.CPU().PC()
	if in, ok := h.m.CPU().Interrupted(); ok && s.Inside > 0 {
		pc = in.PC
	}
	h.guide.Ended(pc, s.Instructions, s.Inside)
}
