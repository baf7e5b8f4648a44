package concolicrun_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	sym "github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Functions that search strings: an input that satisfies the constraints has, natively, the
// recorded answers; some of these inputs differ from the recorded one; and hardly any input
// with the same answers violates the constraints, as long as its strings are no longer.
func TestBoundedSummaries(t *testing.T) {
	bin := gcctest.File(t, "testdata/strings.c", "-fno-builtin")
	r := rand.New(rand.NewPCG(31, 32))
	stdin := func(e *event.Input) bool { return e.Source == event.InputStdin }
	for function := range 11 {
		t.Run(fmt.Sprint(function), func(t *testing.T) {
			satisfied, same := 0, 0
			for range 3 {
				recorded := drawText(r)
				f := run(t, stdin, func(c *machine.Config) { c.Stdin = bytes.NewReader(recorded) }, bin, fmt.Sprint(function))
				if want := native(t, bin, function, recorded); f.output != want {
					t.Fatalf("%q: %q, natively %q", recorded, f.output, want)
				}
				s := f.Executor.Stats
				if s.Constraints[sym.Fixed]+s.Constraints[sym.Target]+s.Constraints[sym.Address] > 0 {
					t.Errorf("%q: %v, fixed %v", recorded, s.Constraints, s.Fixed)
				}
				for range 25 {
					input := drawText(r)
					took := f.satisfiedBy(t, input)
					equal := native(t, bin, function, input) == f.output
					if took && !equal {
						t.Errorf("recorded %q, %q: %q satisfies\n%q", recorded, f.output, input, texts(f.constraints))
					}
					if took {
						satisfied++
					}
					if equal {
						same++
					}
				}
			}
			t.Logf("%d inputs have the recorded answer, %d satisfy the constraints", same, satisfied)
			if fixed := function == lengthFixed; satisfied < 2 || satisfied*4 < same && !fixed {
				t.Errorf("%d inputs have the recorded answer, %d satisfy the constraints", same, satisfied)
			}
		})
	}
}

// satisfiedBy reports whether a standard input satisfies all constraints.
func (f *symbolicRun) satisfiedBy(t *testing.T, input []byte) bool {
	t.Helper()
	values := map[string]symbolic.Value{}
	for i, b := range input {
		values[fmt.Sprintf("stdin[%d]", i)] = symbolic.Value{Lo: uint64(b)}
	}
	for name, d := range f.Executor.Derived() {
		argument, _, _ := bytes.Cut(input, []byte{0})
		values[name] = d.Value(argument)
	}
	return f.holdsFor(t, values)
}

// lengthFixed is the function that looks for one input in another: the length of the wanted
// string is fixed.
const lengthFixed = 10

// drawText draws two strings of few letters.
func drawText(r *rand.Rand) []byte {
	b := make([]byte, 8)
	for i := range b {
		b[i] = []byte{'a', 'a', 'b', 'b', 0}[r.IntN(5)]
	}
	return b
}

func native(t *testing.T, bin string, function int, input []byte) string {
	t.Helper()
	c := exec.Command(bin, fmt.Sprint(function))
	c.Stdin = bytes.NewReader(input)
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// A user's file can give summaries to the program's own functions.
func TestSummaryOfTheProgram(t *testing.T) {
	bin := gcctest.File(t, "testdata/strings.c", "-fno-builtin", "-fno-inline")
	own, err := sym.ReadSummaries(strings.NewReader("- {function: position, result: none}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]sym.Summary{sym.DefaultSummaries(), append(own, sym.DefaultSummaries()...)} {
		f := runWith(t, func(r *concolicrun.Recording) {}, func(e *event.Input) bool { return e.Source == event.InputStdin },
			func(c *machine.Config) { c.Stdin = strings.NewReader("aabbbaba") }, list, bin, "3")
		branches := f.Executor.Stats.Constraints[sym.Branch]
		if want := len(list) == len(sym.DefaultSummaries()); branches > 0 != want {
			t.Errorf("%q", texts(f.constraints))
		}
	}
}
