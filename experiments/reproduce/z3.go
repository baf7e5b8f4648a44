package reproduce

import (
	"github.com/heddle-dmt/heddle/analyses/reproduce/constraints"
	"github.com/heddle-dmt/heddle/analyses/reproduce/schedule"
	"github.com/heddle-dmt/heddle/analyses/reproduce/solve"
	"github.com/heddle-dmt/heddle/analyses/smt"
)

// mostWhole is how many read-write constraints are given to Z3 at once; of more it gets
// those that are needed.
const mostWhole = 2_000_000

// lazily asks the solver alone, with the constraints that are needed.
func (out *Outcome) lazily(e constraints.Encoding, l *limiter, limits smt.Limits) error {
	found, err := solve.Lazily(out.Trace.Trace, out.Model, e, solve.Options{Limits: limits}, 0, l.stop)
	if err != nil {
		return err
	}
	out.System, out.Rounds = found.System, found.Rounds
	return out.solved(&found.Result, limits)
}

// byZ3 asks the solver alone.
func (out *Outcome) byZ3(limits smt.Limits) error {
	found, err := solve.Solve(out.System, solve.Options{Limits: limits})
	if err != nil {
		return err
	}
	return out.solved(found, limits)
}

// solved takes the solver's answer over.
func (out *Outcome) solved(found *solve.Result, limits smt.Limits) error {
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
