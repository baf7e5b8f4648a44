package slice

import (
	"sort"

	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/specialize"
)

// makeGraph makes the program's graph and its calls. The model of a function that locks only if it is configured to does not
// hold if the run shows that it is: then its code is analysed.
func makeGraph(in *Input, o specialize.Options) *specialize.CallTrace {
	models := in.Models
	for {
		graph := cfg.Build(in.Image, models, specialize.Observe(in.Trace, in.Image))
		calls := specialize.TraceCalls(in.Trace, graph, in.Events, o)
		locking := findLocking(calls)
		if len(locking) == 0 {
			return calls
		}
		models = models.Without(locking)
	}
}

// findLocking finds the functions whose model says that they may be configured to lock, and that were, or called, events.
func findLocking(r *specialize.CallTrace) map[string]bool {
	found := map[string]bool{}
	for _, t := range r.Threads {
		for _, e := range r.Events.OfThread(t.Thread) {
			for i := frameAt(t, t.StepAt(e.From)); i >= 0; i = t.Frames[i].Parent {
				f := &t.Frames[i]
				if f.Context != nil && f.Context.Function.Model != nil && f.Context.Function.Model.Configured {
					found[f.Context.Function.Name] = true
				} else if f.Context == nil && f.Site != nil && r.Graph.Models.Of(f.Site.Import).Configured {
					found[f.Site.Import] = true
				}
			}
		}
	}
	return found
}

// frameAt returns the index of the frame of a step, or -1.
func frameAt(t *specialize.Thread, step int) int {
	n := sort.Search(len(t.FrameChanges), func(i int) bool { return t.FrameChanges[i].Step > step }) - 1
	if n < 0 {
		return -1
	}
	return t.FrameChanges[n].Frame
}
