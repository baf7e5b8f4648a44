// Package smt asks Z3 about expressions: whether constraints are satisfiable, and for which
// values of their symbols. It translates the expressions of package symbolic; floating
// point becomes Z3's theory of it.
//
// A Solver keeps constraints on a stack; Check decides them and Model gives values.
//
// Invariants:
//
//  1. An answer is a function of the constraints in their order and the limit: Z3 runs in
//     one thread, its limit is its own count of steps and not time, and no term given to it
//     is freed while the solver is used, whenever Go's garbage collector runs.
//  2. The value of an expression in a model is the value that package symbolic computes.
package smt

// #cgo amd64 LDFLAGS: -Wl,--as-needed
import "C" // the flag precedes those of the binding, see package dynlib

import (
	"errors"
	"fmt"
	"math/big"
	"runtime"

	"github.com/aclements/go-z3/z3"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	_ "github.com/heddle-dmt/heddle/internal/dynlib" // the functions of Z3
)

// Answer is the result of Check.
type Answer uint8

// Answers.
const (
	// Unknown: the limit was reached.
	Unknown Answer = iota
	Satisfiable
	Unsatisfiable
)

func (a Answer) String() string { return [...]string{"unknown", "satisfiable", "unsatisfiable"}[a] }

// DefaultLimit is a limit on Z3's steps: seconds on today's processors.
const DefaultLimit = 50_000_000

// Solver is Z3 with constraints. It is for one goroutine.
type Solver struct {
	ctx          *z3.Context
	solver       *z3.Solver
	translations map[*symbolic.Expr]z3.BV
	floats       map[*symbolic.Expr]z3.Float
	symbols      map[string]z3.BV
	sizes        map[string]int
	// kept holds Go's references to Z3's terms, so that they are not freed.
	kept []any
	// single and double are the sorts of floating point.
	single, double z3.Sort
	interrupts     <-chan struct{}
}

// New makes a Solver without constraints that takes at most limit of Z3's steps for each
// Check; 0 is no limit. It takes some 30 milliseconds.
func New(limit uint) *Solver { return NewLimited(Limits{Steps: limit}) }

// Assert adds a constraint, an expression of one bit that must be 1.
func (s *Solver) Assert(e *symbolic.Expr) {
	s.addConstraint(s.bitVector(e).Eq(s.wordBits(1, 1)))
}

// AssertEqual adds that two expressions, perhaps of different pools, are equal.
func (s *Solver) AssertEqual(a, b *symbolic.Expr) { s.addConstraint(s.bitVector(a).Eq(s.bitVector(b))) }

// AssertDifferent adds that two expressions are not equal.
func (s *Solver) AssertDifferent(a, b *symbolic.Expr) {
	s.addConstraint(s.bitVector(a).NE(s.bitVector(b)))
}

func (s *Solver) addConstraint(c z3.Bool) {
	s.kept = append(s.kept, c)
	s.solver.Assert(c)
}

// Push saves the constraints on the stack.
func (s *Solver) Push() { s.solver.Push() }

// Pop restores the constraints that the last Push saved.
func (s *Solver) Pop() { s.solver.Pop() }

// Check decides whether the constraints are satisfiable.
func (s *Solver) Check() Answer {
	defer runtime.KeepAlive(s)
	var ok bool
	var err error
	s.runInterruptible(func() { ok, err = s.solver.Check() })
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

// Model returns the values of the symbols of all constraints so far, by name, after a Check
// that was Satisfiable.
func (s *Solver) Model() map[string]symbolic.Value {
	model := s.solver.Model()
	s.kept = append(s.kept, model)
	values := map[string]symbolic.Value{}
	for name, c := range s.symbols {
		values[name] = s.literalValue(model.Eval(c, true))
	}
	return values
}

// literalValue returns the number of a literal.
func (s *Solver) literalValue(v z3.Value) symbolic.Value {
	s.kept = append(s.kept, v)
	x, ok := v.(z3.BV).AsBigUnsigned()
	if !ok {
		panic(fmt.Sprintf("bug: Z3's model has %v", v))
	}
	low := new(big.Int).And(x, new(big.Int).SetUint64(^uint64(0)))
	return symbolic.Value{Lo: low.Uint64(), Hi: new(big.Int).Rsh(x, 64).Uint64()}
}

// Evaluate returns Z3's value of an expression, given values of its symbols and independent
// of the constraints; false: Z3 does not determine it.
func (s *Solver) Evaluate(e *symbolic.Expr, values map[string]symbolic.Value) (symbolic.Value, bool) {
	// The same context, with numbers for symbols.
	with := newSolver(s.ctx, nil)
	s.kept = append(s.kept, with)
	symbolic.Symbols(e, func(x *symbolic.Expr) {
		with.symbols[x.Name], with.sizes[x.Name] = with.constantBits(values[x.Name], x.Bits), x.Bits
	})
	v := s.ctx.Simplify(with.bitVector(e), nil)
	if _, ok := v.(z3.BV).AsBigUnsigned(); !ok {
		return symbolic.Value{}, false
	}
	return s.literalValue(v), true
}

// Valid decides whether an expression of one bit is 1 for all values of its symbols: then
// the answer is Unsatisfiable. If it is Satisfiable, the model is a counterexample.
func Valid(e *symbolic.Expr, limit uint) (Answer, map[string]symbolic.Value) {
	s := New(limit)
	s.addConstraint(s.bitVector(e).Eq(s.wordBits(0, 1)))
	a := s.Check()
	if a == Satisfiable {
		return a, s.Model()
	}
	return a, nil
}
