package solve

// #cgo amd64 LDFLAGS: -Wl,--as-needed
import "C" // the flag precedes those of the binding, see package dynlib

import (
	"fmt"

	"github.com/aclements/go-z3/z3"

	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/analyses/h3/schedule"
	"github.com/heddle-dmt/heddle/analyses/smt"
	_ "github.com/heddle-dmt/heddle/internal/dynlib" // the functions of Z3
)

// Clocks is the theory in which Z3 orders events.
type Clocks uint8

// Clocks.
const (
	// Integers are in Z3's theory of linear arithmetic, where orders are differences.
	Integers Clocks = iota
	// Bits are bit vectors that are just long enough.
	Bits
)

// Options of Solve. The zero value has no limits.
type Options struct {
	Clocks Clocks
	Limits smt.Limits
	// Within is a Solver to be used for the time, without constraints of its own; nil makes one.
	// The schedule then depends on the earlier questions to it.
	Within *smt.Solver
}

// Result is the result for a system.
type Result struct {
	Answer smt.Answer
	// Schedule, of a system that is satisfiable, and the values that are read under it.
	Schedule schedule.Schedule
	Values   schedule.Values
}

// Solve looks for a schedule. An error is a defect of this program: a solution that does not run.
func Solve(s *constraints.System, o Options) (*Result, error) {
	f := translateSystem(s, o, constraints.Families())
	defer f.releaseSolver()
	r := &Result{Answer: f.solver.Check()}
	if r.Answer != smt.Satisfiable {
		return r, nil
	}
	r.Schedule = schedule.FromClocks(s.Trace, s.Model, f.modelClocks(len(s.Trace.Events)))
	values, err := schedule.Run(s.Trace, s.Model, r.Schedule)
	if err != nil {
		return nil, fmt.Errorf("the %s encoding's schedule under %v does not run: %w", s.Encoding, s.Model, err)
	}
	r.Values = values
	return r, nil
}

// Conflict finds families of an unsatisfiable system that contradict each other: if
// one of them is left out, the rest is satisfiable, or not decided.
func Conflict(s *constraints.System, o Options) []constraints.Family {
	kept := constraints.Families()
	for _, f := range constraints.Families() {
		var rest []constraints.Family
		for _, k := range kept {
			if k != f {
				rest = append(rest, k)
			}
		}
		part := translateSystem(s, o, rest)
		if part.solver.Check() == smt.Unsatisfiable {
			kept = rest
		}
		part.releaseSolver()
	}
	return kept
}

// SMTLIB is the formula in SMT-LIB 2.
func SMTLIB(s *constraints.System, o Options) string {
	f := translateSystem(s, o, constraints.Families())
	defer f.releaseSolver()
	return f.solver.Text() + "(check-sat)\n(get-model)\n"
}

// formula is a system in Z3's words.
type formula struct {
	solver *smt.Solver
	ctx    *z3.Context
	clocks []z3.Value
	start  z3.Value
	kind   Clocks
	// kept holds values that Z3 must not free.
	kept   []any
	within bool
	// shared are the parts that were translated, as several may have them.
	shared map[*constraints.Formula]z3.Bool
}

func (f *formula) releaseSolver() {
	if f.within {
		f.solver.Release()
	}
}

func translateSystem(s *constraints.System, o Options, families []constraints.Family) *formula {
	f := &formula{kind: o.Clocks, within: o.Within != nil, shared: map[*constraints.Formula]z3.Bool{}}
	if o.Within != nil {
		f.solver = o.Within.Sibling()
	} else {
		f.solver = smt.NewLimited(o.Limits)
	}
	f.ctx = f.solver.Context()
	f.declareClocks(s)
	for _, family := range families {
		for _, p := range s.Parts[family] {
			f.solver.AssertTruth(f.translatePart(p))
		}
	}
	return f
}

// declareClocks makes the clocks: those of events are after the start.
func (f *formula) declareClocks(s *constraints.System) {
	bits := 1
	for 1<<bits < len(s.Trace.Events)+2 {
		bits++
	}
	if f.kind == Integers {
		f.start = f.ctx.FromInt(0, f.ctx.IntSort())
	} else {
		f.start = f.ctx.FromInt(0, f.ctx.BVSort(bits))
	}
	for i := range s.Clocks {
		name := fmt.Sprintf("O%d", i)
		var c z3.Value
		if f.kind == Integers {
			c = f.ctx.IntConst(name)
		} else {
			c = f.ctx.BVConst(name, bits)
		}
		f.clocks = append(f.clocks, c)
		if i < len(s.Trace.Events) {
			f.solver.AssertTruth(f.clockLess(f.start, c))
		}
	}
}

func (f *formula) clockLess(a, b z3.Value) z3.Bool {
	if f.kind == Integers {
		return f.keepAlive(a.(z3.Int).LT(b.(z3.Int)))
	}
	return f.keepAlive(a.(z3.BV).ULT(b.(z3.BV)))
}

func (f *formula) clockEqual(a, b z3.Value) z3.Bool {
	if f.kind == Integers {
		return f.keepAlive(a.(z3.Int).Eq(b.(z3.Int)))
	}
	return f.keepAlive(a.(z3.BV).Eq(b.(z3.BV)))
}

func (f *formula) keepAlive(b z3.Bool) z3.Bool {
	f.kept = append(f.kept, b)
	return b
}

func (f *formula) clockValue(c constraints.Clock) z3.Value {
	if c == constraints.Start {
		return f.start
	}
	return f.clocks[c]
}

// translatePart translates a part.
func (f *formula) translatePart(p *constraints.Formula) z3.Bool {
	switch p.Op {
	case constraints.True, constraints.False:
		return f.keepAlive(f.ctx.FromBool(p.Op == constraints.True))
	case constraints.Less:
		return f.clockLess(f.clockValue(p.A), f.clockValue(p.B))
	case constraints.Same:
		return f.clockEqual(f.clockValue(p.A), f.clockValue(p.B))
	case constraints.Holds:
		return f.solver.Truth(p.Expr)
	}
	if b, ok := f.shared[p]; ok {
		return b
	}
	args := make([]z3.Bool, len(p.Args))
	for i, a := range p.Args {
		args[i] = f.translatePart(a)
	}
	if p.Op == constraints.And {
		f.shared[p] = f.keepAlive(args[0].And(args[1:]...))
	} else {
		f.shared[p] = f.keepAlive(args[0].Or(args[1:]...))
	}
	return f.shared[p]
}

// modelClocks are the places of the first n clocks in Z3's model.
func (f *formula) modelClocks(n int) []int64 {
	values := make([]int64, n)
	for i, v := range f.solver.Eval(f.clocks[:n]) {
		var ok bool
		if f.kind == Integers {
			values[i], _, ok = v.(z3.Int).AsInt64()
		} else {
			var x uint64
			x, _, ok = v.(z3.BV).AsUint64()
			values[i] = int64(x)
		}
		if !ok {
			panic(fmt.Sprintf("bug: Z3's model has the clock %v", v))
		}
	}
	return values
}
