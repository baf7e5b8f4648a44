package solve

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/reproduce/constraints"
	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/reproduce/schedule"
	"github.com/heddle-dmt/heddle/analyses/smt"
)

// Lazy is what came of Lazily: the system with the constraints that were needed, and
// how often Z3 was asked.
type Lazy struct {
	Result
	System *constraints.System
	Rounds int
}

// Lazily is Solve for an encoding whose constraints are too many: Z3 gets those of a
// read only when it has a solution in which that reads something else than under the
// solution's order. What Z3 has is part of the whole system; so that it has no solution
// is the whole system's answer, and a schedule that runs is one of the whole system. Limit
// is as in constraints.New, for the constraints that are needed. Stop, if set, ends it
// with Unknown when it says so.
func Lazily(t *model.Trace, m model.Memory, e constraints.Encoding, o Options, limit int, stop func() bool) (*Lazy, error) {
	p, err := constraints.NewPartial(t, m, e, limit)
	if err != nil {
		return nil, err
	}
	out := &Lazy{System: p.System}
	f := translate(p.System, o, constraints.Families())
	defer f.release()
	for stop == nil || !stop() {
		out.Rounds++
		out.Answer = f.solver.Check()
		if out.Answer != smt.Satisfiable {
			return out, nil
		}
		out.Schedule = schedule.FromClocks(t, m, f.clockValues(len(t.Events)))
		var wrong error
		out.Values, wrong = schedule.Run(t, m, out.Schedule)
		if wrong == nil {
			return out, nil
		}
		needed, err := f.refine(p, out)
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

// refine adds the constraints of the first read of each thread whose value in Z3's
// model is not what it reads under the model's order. There is one: the first of all,
// as what it reads is computed of what was read before.
func (f *formula) refine(p *constraints.Partial, out *Lazy) (needed bool, err error) {
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
			f.solver.AssertTruth(f.truth(part))
		}
		needed = needed || len(parts) > 0
		done[e.Thread] = len(parts) > 0
	}
	return needed, nil
}
