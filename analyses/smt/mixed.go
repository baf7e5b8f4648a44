package smt

import (
	"github.com/aclements/go-z3/z3"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Limits bound a Check. A limit of 0 is none.
type Limits struct {
	// Steps are Z3's own count: the same on every machine.
	Steps uint
	// Milliseconds are time of this machine: whether they suffice depends on it.
	Milliseconds uint
	// Interrupts, if set, end a Check that is under way with Unknown, each time that
	// one comes.
	Interrupts <-chan struct{}
}

// NewWithin is New with both limits.
func NewWithin(l Limits) *Solver {
	config := z3.NewContextConfig()
	if l.Steps > 0 {
		config.SetUint("rlimit", l.Steps)
	}
	if l.Milliseconds > 0 {
		config.SetUint("timeout", l.Milliseconds)
	}
	ctx := z3.NewContext(config)
	s := newSolver(ctx, z3.NewSolver(ctx))
	s.interrupts = l.Interrupts
	return s
}

// interruptible does something that takes long, and has Z3 end it when an interrupt
// comes.
func (s *Solver) interruptible(do func()) {
	if s.interrupts == nil {
		do()
		return
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			case <-s.interrupts:
				s.ctx.Interrupt()
			}
		}
	}()
	do()
}

func newSolver(ctx *z3.Context, solver *z3.Solver) *Solver {
	return &Solver{
		ctx: ctx, solver: solver, known: map[*symbolic.Expr]z3.BV{}, floats: map[*symbolic.Expr]z3.Float{},
		symbols: map[string]z3.BV{}, sizes: map[string]int{}, single: ctx.FloatSort(8, 24), double: ctx.FloatSort(11, 53),
	}
}

// Sibling is a Solver with the same constraints and symbols of its own, which
// shares what is costly to make: some 30 milliseconds. It is used before anything
// else is done with s, and then released. Its models depend on what s was asked.
func (s *Solver) Sibling() *Solver {
	s.Push()
	return newSolver(s.ctx, s.solver)
}

// Release ends the use of a Sibling.
func (s *Solver) Release() { s.Pop() }

// Context is for constraints that are about more than expressions. What is made in
// it must be kept as long as the Solver is used.
func (s *Solver) Context() *z3.Context { return s.ctx }

// Truth is an expression of one bit as a truth of Z3's.
func (s *Solver) Truth(e *symbolic.Expr) z3.Bool { return s.holds(e) }

// AssertTruth adds a truth of Z3's as a constraint.
func (s *Solver) AssertTruth(b z3.Bool) { s.assert(b) }

// Eval is the value in the model of the last Check, which was Satisfiable, of
// anything of the context.
func (s *Solver) Eval(of []z3.Value) []z3.Value {
	model := s.solver.Model()
	s.kept = append(s.kept, model)
	values := make([]z3.Value, len(of))
	for i, v := range of {
		values[i] = model.Eval(v, true)
	}
	return values
}

// Text is the constraints in SMT-LIB 2, without a command.
func (s *Solver) Text() string { return s.solver.String() }
