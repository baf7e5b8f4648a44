package heddle

import (
	"github.com/heddle-dmt/heddle/memmodel/buffers"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched/guide"
	"github.com/heddle-dmt/heddle/sched/minimize"
)

// Guided is the configuration of the recorded run, to be run under a schedule that
// was computed, instead of the recorded one. Of the recording it takes the program
// and its inputs alone, and the decisions before the checkpoint at which the schedule
// begins, if it begins at one. Model is the memory model, empty for the recorded one.
func (r *Replay) Guided(g *guide.Guide, model string) (Config, error) {
	if in := r.stdin; in != nil {
		r.stdin = nil
		_ = in.Close() // it was read only
	}
	c, err := r.Config()
	c.Replay, c.rehearsal = nil, &rehearsal{Tracker: minimize.NewTracker(nil), guide: g}
	if g.Behind() > 0 {
		if !r.trace.Has(trace.Decisions) {
			return c, r.lacks("decisions", nil)
		}
		c.rehearsal.before = r.log
	}
	if model != "" {
		c.Memory.Model = model
	}
	c.Memory.Engine = buffers.Exact
	return c, err
}

// Recorded is how the recorded run ended, nil if the recording was cut.
func (r *Replay) Recorded() *Result {
	if r.summary == nil {
		return nil
	}
	return &r.summary.Result
}
