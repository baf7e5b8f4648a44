package solve

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/schedule"
	"github.com/heddle-dmt/heddle/analyses/smt"
)

// LazyResult is the result of SolveLazily: the system with the constraints that were needed, and
// how often Z3 was asked.
type LazyResult struct {
	Result
	System *constraints.System
	Rounds int
}

// SolveLazily is Solve for an encoding with too many constraints: Z3 gets those of a read only when
// it has a solution in which the read has another value than under the solution's order. Z3 always
// has a part of the whole system: if that part has no solution, the whole system has none, and a
// schedule that runs is a solution of the whole system. Limit is as in constraints.New, for the
// constraints that are needed. Stop, if set, ends it with Unknown when it returns true.
func SolveLazily(t *model.Trace, m model.MemoryModel, e constraints.Encoding, o Options, limit int, stop func() bool) (*LazyResult, error) {
	p, err := constraints.NewPartial(t, m, e, limit)
	if err != nil {
		return nil, err
	}
	out := &LazyResult{System: p.System}
	f := translateSystem(p.System, o, constraints.Families())
	defer f.releaseSolver()
	for stop == nil || !stop() {
		out.Rounds++
		out.Answer = f.solver.Check()
		if out.Answer != smt.Satisfiable {
			return out, nil
		}
		out.Schedule = schedule.FromClocks(t, m, f.modelClocks(len(t.Events)))
		var wrong error
		out.Values, wrong = schedule.Run(t, m, out.Schedule)
		if wrong == nil {
			return out, nil
		}
		needed, err := f.addNeededReads(p, out)
		if err != nil {
			return nil, err
		}
		if !needed {
			return nil, fmt.Errorf("the %s encoding's schedule under %v does not run: %w", e.Name(), m, wrong)
		}
	}
	out.Answer = smt.Unknown
	return out, nil
}

// addNeededReads adds the constraints of the first read of each thread whose value in Z3's model
// differs from the value that it reads under the model's order. There is at least one: the first
// such read of all, as its value is computed from earlier reads.
func (f *formula) addNeededReads(p *constraints.Partial, out *LazyResult) (needed bool, err error) {
	found := f.solver.Model()
	done := make([]bool, len(p.Trace.Threads))
	for _, step := range out.Schedule {
		e := &p.Trace.Events[step.Event]
		if step.Commit || !e.Kind.Reads() || done[e.Thread] {
			continue
		}
		v, known := found[e.Symbol.Name]
		if !known || v == out.Values[e.Symbol.Name] {
			continue
		}
		parts, err := p.Add(step.Event)
		if err != nil {
			return false, err
		}
		for _, part := range parts {
			f.solver.AssertTruth(f.translatePart(part))
		}
		needed = needed || len(parts) > 0
		done[e.Thread] = len(parts) > 0
	}
	return needed, nil
}
