package concolicrun_test

import (
	"math"
	"os/exec"
	"strconv"
	"testing"

	sym "github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// Branches on floating point: no instruction is fixed, and numbers that Z3's theory finds
// for the path up to a branch, with that branch negated, make the program, natively, print
// another result.
func TestRealsTheOtherWay(t *testing.T) {
	testsize.SkipQuick(t)
	bin := gcctest.File(t, "testdata/reals.c", "-no-pie", "-fno-builtin-fputs", "-lm")
	f := run(t, arguments, nil, bin, "2.25", "4")
	own := f.inProgram(1000)
	if len(f.Executor.Stats.Fixed) > 0 || len(own) < 7 {
		t.Fatalf("%q, fixed %v", texts(own), f.Executor.Stats.Fixed)
	}
	turned := 0
	for k, c := range own {
		s := smt.New(smt.DefaultLimit)
		for _, before := range own[:k] {
			s.Assert(before.Expr)
		}
		s.Assert(f.Executor.Pool.Not(c.Expr))
		if s.Check() != smt.Satisfiable {
			t.Logf("%v is not turned", c.Expr)
			continue
		}
		model := s.Model()
		var args []string
		for _, name := range []string{"strtod(argv[1])", "strtod(argv[2])"} {
			args = append(args, strconv.FormatFloat(math.Float64frombits(model[name].Lo), 'g', -1, 64))
		}
		out, err := exec.Command(bin, args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		again := run(t, arguments, nil, append([]string{bin}, args...)...)
		if again.output != string(out) || string(out) == f.output {
			t.Errorf("%v: with %q %q, natively %q", c.Expr, args, again.output, out)
		}
		if there := again.inProgram(1000); len(there) <= k || there[k].PC != c.PC || there[k].Expr.String() == c.Expr.String() {
			t.Errorf("%v: with %q %q", c.Expr, args, texts(there))
		}
		turned++
	}
	if turned < 6 {
		t.Errorf("%d of %d branches were turned", turned, len(own))
	}
	if f.Executor.Stats.Constraints[sym.Bound] > 0 {
		t.Errorf("%v", f.Executor.Stats.Constraints)
	}
}
