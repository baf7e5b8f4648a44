package slice

import (
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/path"
	"github.com/heddle-dmt/heddle/analyses/simplify"
)

// drop drops the branches that contradict the schedule: those that a context never
// took, where each time that it came there what it took is needed to come to the events.
func drop(s *Slice, o Options) {
	type at struct{ context, block int }
	loose := map[at]bool{}
	scratch := *s
	scratch.Stats, scratch.kept, scratch.marks = Stats{}, make([][]path.Constraint, len(s.kept)), nil
	scratch.because = make([][]Reason, len(s.kept))
	w := newWalk(&scratch, Options{Mode: Lower, Clone: o.Clone})
	w.outcome = func(c *simplify.Context, b *cfg.Block, _ int, kept bool) {
		if !kept {
			loose[at{c.Number, b.Index}] = true
		}
	}
	w.sides = newSides(s.Run, nil)
	w.back()
	for _, c := range s.Run.Contexts {
		for _, b := range c.Function.Blocks {
			if c.Executed[b.Index] > 0 && len(b.Next) > 1 && !loose[at{c.Number, b.Index}] {
				c.Dropped[b.Index] = ^c.Taken[b.Index]
			}
		}
	}
}
