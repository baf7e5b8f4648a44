package slice

import (
	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/specialize"
)

// dropBranches drops the edges that contradict the schedule: the edges that a context never
// took, where every execution of the branch had to take the observed edge to reach the
// events.
func dropBranches(s *Slice, o Options) {
	type at struct{ context, block int }
	loose := map[at]bool{}
	scratch := *s
	scratch.Stats, scratch.kept, scratch.marks = Stats{}, make([][]blocktrace.Constraint, len(s.kept)), nil
	scratch.because = make([][]Reason, len(s.kept))
	w := newRunSlicer(&scratch, Options{Mode: Lower, Clone: o.Clone})
	w.outcome = func(c *specialize.Context, b *cfg.Block, _ int, kept bool) {
		if !kept {
			loose[at{c.Number, b.Index}] = true
		}
	}
	w.sides = newSideCache(s.Calls, nil, nil)
	w.sliceRun()
	for _, c := range s.Calls.Contexts {
		for _, b := range c.Function.Blocks {
			if c.Executed[b.Index] > 0 && len(b.Next) > 1 && !loose[at{c.Number, b.Index}] {
				c.Dropped[b.Index] = ^c.Taken[b.Index]
			}
		}
	}
}
