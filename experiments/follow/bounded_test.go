package follow_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	sym "github.com/heddle-dmt/heddle/analyses/symbolic/exec"
	"github.com/heddle-dmt/heddle/experiments/follow"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Functions that look for something in strings: an input that satisfies the
// constraints has, natively, the recorded answers; some do that differ from the
// recorded one; and hardly an input has the answers and satisfies them not, as long as
// its strings are no longer.
func TestBoundedSummaries(t *testing.T) {
	bin := gcctest.File(t, "testdata/strings.c", "-fno-builtin")
	r := rand.New(rand.NewPCG(31, 32))
	stdin := func(e *event.Input) bool { return e.Source == event.InputStdin }
	for function := range 11 {
		t.Run(fmt.Sprint(function), func(t *testing.T) {
			satisfied, same := 0, 0
			for range 3 {
				recorded := drawText(r)
				f := run(t, stdin, func(c *heddle.Config) { c.Stdin = bytes.NewReader(recorded) }, bin, fmt.Sprint(function))
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

// satisfiedBy tells whether a standard input satisfies all constraints.
func (f *followed) satisfiedBy(t *testing.T, input []byte) bool {
	t.Helper()
	values := map[string]symbolic.Value{}
	for i, b := range input {
		values[fmt.Sprintf("stdin[%d]", i)] = symbolic.Value{Lo: uint64(b)}
	}
	for name, d := range f.Executor.Derived() {
		argument, _, _ := bytes.Cut(input, []byte{0})
		values[name] = d.Value(argument)
	}
	return f.hold(t, values)
}

// lengthFixed is the function that looks for an input in another: the length of what
// it looks for is fixed.
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

// A program's own functions can have summaries, from a file of its user's.
func TestSummaryOfTheProgram(t *testing.T) {
	bin := gcctest.File(t, "testdata/strings.c", "-fno-builtin", "-fno-inline")
	own, err := sym.ReadSummaries(strings.NewReader("- {function: position, result: none}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]sym.Summary{sym.DefaultSummaries(), append(own, sym.DefaultSummaries()...)} {
		f := runWith(t, func(r *follow.Recording) {}, func(e *event.Input) bool { return e.Source == event.InputStdin },
			func(c *heddle.Config) { c.Stdin = strings.NewReader("aabbbaba") }, list, bin, "3")
		branches := f.Executor.Stats.Constraints[sym.Branch]
		if want := len(list) == len(sym.DefaultSummaries()); branches > 0 != want {
			t.Errorf("%q", texts(f.constraints))
		}
	}
}
