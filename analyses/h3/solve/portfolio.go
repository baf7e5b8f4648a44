package solve

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/schedule"
	"github.com/heddle-dmt/heddle/analyses/h3/search"
	"github.com/heddle-dmt/heddle/analyses/smt"
)

// Portfolio is heddle's way to a schedule: a search that executes the trace, and the pruned
// constraints where the search reaches its limit, with integers and bit vectors for clocks in turn.
type Portfolio struct {
	// FreeCores takes no order from the cores.
	FreeCores bool
	// States bounds the search, as search.Options does.
	States int
	// Stop, if set, ends the search, or the second way, when it says so.
	Stop func() bool
	// Constraints are the options of the second way; its Clocks and limit of time do
	// not matter if there is a Stop.
	Constraints Options
}

// Outcome is the result of a Portfolio.
type Outcome struct {
	Result
	// States is how many the search has looked at. System is nil if it has decided.
	States int
	System *constraints.System
	// Alternatives are as in search.Result, if the search has decided.
	Alternatives []search.Alternative
}

// Find looks for a schedule of a trace that Check accepts, and makes it short.
func (p Portfolio) Find(t *model.Trace, m model.MemoryModel) (*Outcome, error) {
	found := search.Search(t, m, search.Options{FreeCores: p.FreeCores, States: p.States, Stop: p.Stop})
	out := &Outcome{States: found.States}
	switch found.Answer {
	case search.None:
		out.Answer, out.Alternatives = smt.Unsatisfiable, found.Alternatives
		return out, nil
	case search.Found:
		out.Answer, out.Schedule = smt.Satisfiable, found.Schedule
	default:
		if p.Stop != nil && p.Stop() {
			return out, nil
		}
		system, err := constraints.New(t, m, constraints.Pruned{FreeCores: p.FreeCores}, 0)
		if err != nil {
			return nil, err
		}
		r, err := p.solveConstraints(system)
		if err != nil {
			return nil, err
		}
		out.Result, out.System = *r, system
	}
	if out.Answer != smt.Satisfiable {
		return out, nil
	}
	out.Schedule = schedule.Shorten(t, m, out.Schedule)
	values, err := schedule.Run(t, m, out.Schedule)
	if err != nil {
		return nil, fmt.Errorf("the schedule that was found under %v does not run: %w", m, err)
	}
	out.Values = values
	return out, nil
}

// solveConstraints asks Z3.
func (p Portfolio) solveConstraints(s *constraints.System) (*Result, error) {
	if p.Constraints.Within != nil || p.Stop == nil && p.Constraints.Limits.Milliseconds > 0 {
		return Solve(s, p.Constraints)
	}
	return SolveAlternating(s, p.Constraints, p.Stop)
}
