package h3

import (
	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/analyses/h3/schedule"
	"github.com/heddle-dmt/heddle/analyses/h3/solve"
	"github.com/heddle-dmt/heddle/analyses/smt"
)

// maxWholeFormula is how many read-write constraints are given to Z3 at once; of more it gets
// the needed ones.
const maxWholeFormula = 2_000_000

// solveLazily asks the solver alone, with the constraints that are needed.
func (out *Outcome) solveLazily(e constraints.Encoding, l *limiter, limits smt.Limits) error {
	found, err := solve.SolveLazily(out.Trace.Trace, out.Model, e, solve.Options{Limits: limits}, 0, l.isReached)
	if err != nil {
		return err
	}
	out.System, out.Rounds = found.System, found.Rounds
	return out.takeAnswer(&found.Result, limits)
}

// solveWhole asks the solver alone.
func (out *Outcome) solveWhole(limits smt.Limits) error {
	found, err := solve.Solve(out.System, solve.Options{Limits: limits})
	if err != nil {
		return err
	}
	return out.takeAnswer(found, limits)
}

// takeAnswer takes the solver's answer over.
func (out *Outcome) takeAnswer(found *solve.Result, limits smt.Limits) error {
	out.Answer = found.Answer
	switch found.Answer {
	case smt.Satisfiable:
		t := out.Trace.Trace
		out.Schedule = schedule.Shorten(t, out.Model, found.Schedule)
		values, err := schedule.Run(t, out.Model, out.Schedule)
		if err != nil {
			return err
		}
		out.Plan = newPlan(out.Trace, out.Schedule, values, out.Model, out.decisions)
	case smt.Unsatisfiable:
		out.Conflict = solve.Conflict(out.System, solve.Options{Limits: limits})
	}
	return nil
}
