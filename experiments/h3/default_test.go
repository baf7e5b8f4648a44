package h3

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched"
)

// dynamic are programs of the suite that are also tried with shared libraries.
var dynamic = []string{"bounded-buffer", "deadlock", "racey", "frost-figure-1a", "mysql-644", "dekker", "h3-figure-2"}

// Programs that are linked by default look up functions at their first calls, in a thread that the
// schedule determines. Layouts of their stubs differ.
func TestFunctionsThatAreLookedUpAtTheirFirstCall(t *testing.T) {
	b := &bug{class: machine.FailureAssertion, sched: fine}
	marked := gcctest.C(t, stack, "-O2", "-fcf-protection", "-Wl,-z,lazy,-z,ibtplt")
	reproduceSeeds(t, b, marked)
	for i := range bugs {
		if b := &bugs[i]; testsize.Long() || slices.Contains(dynamic, b.program) {
			t.Run(b.program, func(t *testing.T) { reproduceSeeds(t, b, buildVariant(t, b.program, false)) })
		}
	}
}

// Exceptions are thrown and caught, or end the program; strings compare addresses of what was
// allocated with those of literals.
func TestProgramsInCPlusPlus(t *testing.T) {
	bin := gcctest.File(t, filepath.Join("testdata", "stock.cpp"), "-O2", "-lstdc++")
	for _, b := range []*bug{
		{class: machine.FailureAssertion, sched: sched.Options{Policy: sched.Random, Quantum: 100}},
		{class: machine.FailureAssertion, args: "strict", sched: sched.Options{Policy: sched.Random, Quantum: 50}},
	} {
		t.Run(b.args, func(t *testing.T) { reproduceSeeds(t, b, bin) })
	}
}
