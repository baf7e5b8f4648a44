// Package smt asks Z3 about expressions: whether constraints can hold together,
// and for which values of their symbols. It translates package symbolic's
// expressions, floating point to Z3's theory of it.
//
// A Solver is a solver with constraints on a stack; Check decides and Model gives
// values.
//
// Invariants:
//
//  1. An answer is a function of the constraints in their order and the limit:
//     Z3 runs in one thread, is limited by its own count of steps and not by time,
//     and nothing that it was given is freed, at whatever time Go's garbage
//     collector runs, while the solver is used.
//  2. The value of an expression in a model is what symbolic's evaluation gives.
package smt

import (
	"errors"
	"fmt"
	"math/big"
	"runtime"

	"github.com/aclements/go-z3/z3"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Answer is what Check found out.
type Answer uint8

// Answers.
const (
	// Unknown: the limit was reached.
	Unknown Answer = iota
	Satisfiable
	Unsatisfiable
)

func (a Answer) String() string { return [...]string{"unknown", "satisfiable", "unsatisfiable"}[a] }

// DefaultLimit is a limit of Z3's steps: seconds on today's processors.
const DefaultLimit = 50_000_000

// Solver is Z3 with constraints. It is for one goroutine.
type Solver struct {
	ctx     *z3.Context
	solver  *z3.Solver
	known   map[*symbolic.Expr]z3.BV
	floats  map[*symbolic.Expr]z3.Float
	symbols map[string]z3.BV
	sizes   map[string]int
	// kept is what Z3 must not free.
	kept []any
	// single and double are the sorts of floating point.
	single, double z3.Sort
	interrupts     <-chan struct{}
}

// New makes a Solver without constraints, limited to so many of Z3's steps for
// each Check; 0 is no limit. It takes some 30 milliseconds.
func New(limit uint) *Solver {
	config := z3.NewContextConfig()
	if limit > 0 {
		config.SetUint("rlimit", limit)
	}
	ctx := z3.NewContext(config)
	return &Solver{
		ctx: ctx, solver: z3.NewSolver(ctx), known: map[*symbolic.Expr]z3.BV{}, floats: map[*symbolic.Expr]z3.Float{},
		symbols: map[string]z3.BV{}, sizes: map[string]int{}, single: ctx.FloatSort(8, 24), double: ctx.FloatSort(11, 53),
	}
}

// Assert adds a constraint, an expression of one bit that has to be 1.
func (s *Solver) Assert(e *symbolic.Expr) {
	s.assert(s.bits(e).Eq(s.number(1, 1)))
}

// AssertEqual adds that two expressions, perhaps of different pools, are equal,
// AssertDifferent that they are not.
func (s *Solver) AssertEqual(a, b *symbolic.Expr) { s.assert(s.bits(a).Eq(s.bits(b))) }

// AssertDifferent is AssertEqual's counterpart.
func (s *Solver) AssertDifferent(a, b *symbolic.Expr) { s.assert(s.bits(a).NE(s.bits(b))) }

func (s *Solver) assert(c z3.Bool) {
	s.kept = append(s.kept, c)
	s.solver.Assert(c)
}

// Push notes the constraints, Pop goes back to those noted last.
func (s *Solver) Push() { s.solver.Push() }

// Pop is Push's counterpart.
func (s *Solver) Pop() { s.solver.Pop() }

// Check decides whether the constraints can hold.
func (s *Solver) Check() Answer {
	defer runtime.KeepAlive(s)
	var ok bool
	var err error
	s.interruptible(func() { ok, err = s.solver.Check() })
	var unknown *z3.ErrSatUnknown
	switch {
	case errors.As(err, &unknown):
		return Unknown
	case err != nil:
		panic(fmt.Sprintf("bug: Z3 says %v", err))
	case ok:
		return Satisfiable
	}
	return Unsatisfiable
}

// Model is the values of the symbols of all constraints so far, by name, after a
// Check that was Satisfiable.
func (s *Solver) Model() map[string]symbolic.Value {
	model := s.solver.Model()
	s.kept = append(s.kept, model)
	values := map[string]symbolic.Value{}
	for name, c := range s.symbols {
		values[name] = s.literal(model.Eval(c, true))
	}
	return values
}

// literal is the number that Z3 gave.
func (s *Solver) literal(v z3.Value) symbolic.Value {
	s.kept = append(s.kept, v)
	x, ok := v.(z3.BV).AsBigUnsigned()
	if !ok {
		panic(fmt.Sprintf("bug: Z3's model has %v", v))
	}
	low := new(big.Int).And(x, new(big.Int).SetUint64(^uint64(0)))
	return symbolic.Value{Lo: low.Uint64(), Hi: new(big.Int).Rsh(x, 64).Uint64()}
}

// Evaluate is Z3's value of an expression, given those of its symbols, whatever
// the constraints; false: Z3 leaves it open.
func (s *Solver) Evaluate(e *symbolic.Expr, values map[string]symbolic.Value) (symbolic.Value, bool) {
	// The same Z3, with numbers for symbols.
	with := &Solver{
		ctx: s.ctx, known: map[*symbolic.Expr]z3.BV{}, floats: map[*symbolic.Expr]z3.Float{},
		symbols: map[string]z3.BV{}, sizes: map[string]int{}, single: s.single, double: s.double,
	}
	s.kept = append(s.kept, with)
	symbolic.Symbols(e, func(x *symbolic.Expr) {
		with.symbols[x.Name], with.sizes[x.Name] = with.constant(values[x.Name], x.Bits), x.Bits
	})
	v := s.ctx.Simplify(with.bits(e), nil)
	if _, ok := v.(z3.BV).AsBigUnsigned(); !ok {
		return symbolic.Value{}, false
	}
	return s.literal(v), true
}

// Valid tells whether an expression of one bit is 1 for all values of its
// symbols, and Satisfiable's model otherwise.
func Valid(e *symbolic.Expr, limit uint) (Answer, map[string]symbolic.Value) {
	s := New(limit)
	s.assert(s.bits(e).Eq(s.number(0, 1)))
	a := s.Check()
	if a == Satisfiable {
		return a, s.Model()
	}
	return a, nil
}
