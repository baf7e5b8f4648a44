package solve

import (
	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/analyses/smt"
)

// Z3's steps in the first round of Either, how many times as many each further round
// has, and how many are as good as no limit.
const (
	firstSteps = 5_000_000
	moreSteps  = 4
	allSteps   = 1 << 40
)

// SolveAlternating asks Z3 with integers and with bit vectors for clocks in turn, with more and
// more steps, as either may be the faster one; the result is still a function of the system. It
// ends with Unknown at the limit of steps, or when stop, if set, returns true. A limit of time is
// for Solve: SolveAlternating cannot detect that it was reached.
func SolveAlternating(s *constraints.System, o Options, stop func() bool) (*Result, error) {
	most := o.Limits.Steps
	if most == 0 {
		most = allSteps
	}
	for steps := uint(firstSteps); ; steps *= moreSteps {
		steps = min(steps, most)
		for _, clocks := range []Clocks{Integers, Bits} {
			o.Clocks, o.Limits.Steps = clocks, steps
			r, err := Solve(s, o)
			if err != nil || r.Answer != smt.Unknown || stop != nil && stop() {
				return r, err
			}
		}
		if steps == most {
			return &Result{}, nil
		}
	}
}
