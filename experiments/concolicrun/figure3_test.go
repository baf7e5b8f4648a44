package concolicrun_test

import (
	"fmt"
	"slices"
	"testing"

	sym "github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched"
)

// inProgram returns the branches of the program's own code, which is below the address
// given when it is linked without PIE.
func (f *symbolicRun) inProgram(thread arch.ThreadID) []sym.Constraint {
	var own []sym.Constraint
	for _, c := range f.constraints {
		if c.Kind == sym.Branch && c.PC < 0x500000 && c.Thread == thread {
			own = append(own, c)
		}
	}
	return own
}

func texts(constraints []sym.Constraint) []string {
	var all []string
	for _, c := range constraints {
		all = append(all, c.Expr.String())
	}
	return all
}

// figure3 runs the program under a schedule.
func figure3(t *testing.T, seed uint64, bin string, args ...string) *symbolicRun {
	t.Helper()
	return run(t, arguments, func(c *machine.Config) {
		c.Seed, c.Sched = seed, sched.Options{Policy: sched.PCT}
	}, append([]string{bin}, args...)...)
}

// The conditions of PEREGRINE's figure 4, thread by thread: L3 (both halves of the
// assertion), L4 once for each iteration, L12 before and after its one iteration, and L7.
func TestFigure3(t *testing.T) {
	bin := gcctest.File(t, "testdata/divide.c", "-fno-inline", "-no-pie")
	// As in the figure, the second thread adds its sum before the first prints.
	var f *symbolicRun
	for seed := uint64(1); f == nil || seed < 20 && len(f.inProgram(1001)) < 2; seed++ {
		f = figure3(t, seed, bin, "2", "2", "0")
	}
	const threads, size, add = "atoi(argv[1])", "atoi(argv[2])", "atoi(argv[3])"
	share := size + " / " + threads
	work := []string{"0 < " + share, share + " = 1"}
	want := map[arch.ThreadID][]string{
		1000: slices.Concat([]string{
			threads + " ≤ " + size, "0 < " + threads, "1 < " + threads, threads + " < 3",
		}, work, []string{add + " ≠ 1"}),
		1001: work,
	}
	for thread, list := range want {
		got := texts(f.inProgram(thread))
		if !slices.Equal(got, list) {
			t.Errorf("thread %d: %q, want %q", thread, got, list)
		}
	}
	if len(f.Executor.Stats.Fixed) > 0 {
		t.Errorf("fixed: %v", f.Executor.Stats.Fixed)
	}
}

// Z3 finds the constraints satisfied by the recorded input. Its models of the path up to a
// branch, with that branch negated, are inputs with which the program takes the other
// direction.
func TestFigure3TheOtherWay(t *testing.T) {
	bin := gcctest.File(t, "testdata/divide.c", "-fno-inline", "-no-pie")
	f := figure3(t, 1, bin, "2", "2", "0")
	p := f.Executor.Pool
	recorded := smt.New(smt.DefaultLimit)
	for _, name := range f.Executor.Symbols() {
		v, _ := f.Executor.Recorded(name)
		bits := 8
		if d := f.Executor.Derived()[name]; d != nil {
			bits = d.Bits
		}
		recorded.Assert(p.Eq(p.Symbol(name, bits), p.Const(v, bits)))
	}
	for _, c := range f.constraints {
		recorded.Assert(c.Expr)
	}
	if a := recorded.Check(); a != smt.Satisfiable {
		t.Fatalf("the recorded input: %v", a)
	}
	own := f.inProgram(1000)
	turned := 0
	for k, c := range own {
		s := smt.New(smt.DefaultLimit)
		for _, before := range own[:k] {
			s.Assert(before.Expr)
		}
		other := p.Not(c.Expr)
		s.Assert(other)
		// Larger numbers would take long to run.
		for _, name := range []string{"atoi(argv[1])", "atoi(argv[2])", "atoi(argv[3])"} {
			s.Assert(p.SLT(p.Symbol(name, 32), p.Word(9, 32)))
		}
		if s.Check() != smt.Satisfiable {
			continue
		}
		var args []string
		model := s.Model()
		for i := 1; i <= 3; i++ {
			args = append(args, fmt.Sprint(int32(model[fmt.Sprintf("atoi(argv[%d])", i)].Lo)))
		}
		again := figure3(t, 1, bin, args...).inProgram(1000)
		if len(again) <= k || again[k].PC != c.PC || again[k].Expr.String() != other.String() {
			t.Errorf("with %q branch %d is %v, want %v", args, k, texts(again), other)
			continue
		}
		turned++
	}
	if turned < 5 {
		t.Errorf("%d of %d branches were turned", turned, len(own))
	}
}
