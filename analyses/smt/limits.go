package smt

import (
	"github.com/aclements/go-z3/z3"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Limits bound a Check. 0 means no limit.
type Limits struct {
	// Steps are counted by Z3 itself: the same on every machine.
	Steps uint
	// Milliseconds are host time: the answer may depend on the host's speed.
	Milliseconds uint
	// Interrupts, if set, ends the current Check with Unknown whenever a value arrives.
	Interrupts <-chan struct{}
}

// NewLimited makes a Solver without constraints and with limits. It takes some 30
// milliseconds.
func NewLimited(l Limits) *Solver {
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

// runInterruptible calls a function during which an interrupt stops Z3.
func (s *Solver) runInterruptible(do func()) {
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
		ctx: ctx, solver: solver, translations: map[*symbolic.Expr]z3.BV{}, floats: map[*symbolic.Expr]z3.Float{},
		symbols: map[string]z3.BV{}, sizes: map[string]int{}, single: ctx.FloatSort(8, 24), double: ctx.FloatSort(11, 53),
	}
}
