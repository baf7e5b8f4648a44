package smt

import (
	"github.com/aclements/go-z3/z3"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Sibling is a Solver that starts with the same constraints, has symbols of its own, and
// shares the costly Z3 context, which takes some 30 milliseconds to make. Nothing else may
// be done with s until Release. The models of a sibling depend on the earlier queries of s.
func (s *Solver) Sibling() *Solver {
	s.Push()
	return newSolver(s.ctx, s.solver)
}

// Release ends the use of a Sibling.
func (s *Solver) Release() { s.Pop() }

// Context is Z3's own, for constraints that symbolic expressions cannot express. Values
// made in it must be kept alive as long as the Solver is used.
func (s *Solver) Context() *z3.Context { return s.ctx }

// Truth is an expression of one bit as a Boolean of Z3.
func (s *Solver) Truth(e *symbolic.Expr) z3.Bool { return s.bitToTruth(e) }

// AssertTruth adds a Boolean of Z3 as a constraint.
func (s *Solver) AssertTruth(b z3.Bool) { s.addConstraint(b) }

// Eval returns the values of Boolean or numeric terms of the context in the model of the
// last Check, which was Satisfiable.
func (s *Solver) Eval(of []z3.Value) []z3.Value {
	model := s.solver.Model()
	s.kept = append(s.kept, model)
	values := make([]z3.Value, len(of))
	for i, v := range of {
		values[i] = model.Eval(v, true)
	}
	return values
}

// Text is the constraints in SMT-LIB 2, without commands.
func (s *Solver) Text() string { return s.solver.String() }
