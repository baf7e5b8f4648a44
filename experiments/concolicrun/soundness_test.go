package concolicrun_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder/event"
)

func bubble(t *testing.T, bin string, input []byte) *symbolicRun {
	t.Helper()
	stdin := func(e *event.Input) bool { return e.Source == event.InputStdin }
	return run(t, stdin, func(c *machine.Config) { c.Stdin = bytes.NewReader(input) }, bin)
}

// satisfied reports whether an input satisfies all constraints.
func (f *symbolicRun) satisfied(t *testing.T, input []byte) bool {
	t.Helper()
	values := map[string]symbolic.Value{}
	for i, name := range f.Executor.Symbols() {
		values[name] = symbolic.Value{Lo: uint64(input[i])}
	}
	return f.holdsFor(t, values)
}

// holdsFor reports whether all constraints hold for values of the symbols.
func (f *symbolicRun) holdsFor(t *testing.T, values map[string]symbolic.Value) bool {
	t.Helper()
	e := symbolic.NewEvaluator(func(name string) (symbolic.Value, bool) { v, ok := values[name]; return v, ok })
	for _, c := range f.constraints {
		v, err := e.Value(c.Expr)
		if err != nil {
			t.Fatal(err)
		}
		if v.Lo == 0 {
			return false
		}
	}
	return true
}

// path describes where the input decided, how often, and the output.
func (f *symbolicRun) path() string {
	var text []string
	for _, c := range f.constraints {
		text = append(text, fmt.Sprintf("%x %s", c.PC, c.Expr))
	}
	return fmt.Sprint(f.Executor.Stats.Instructions, f.result.ExitCode, f.output, text)
}

// Exactly the inputs that satisfy the constraints take the recorded path: random ones,
// recorded ones with a byte changed, and models of Z3.
func TestConstraintsTellPathsApart(t *testing.T) {
	testsize.SkipQuick(t)
	plain := gcctest.File(t, "testdata/bubble.c")
	float := gcctest.File(t, "testdata/bubble.c", "-DFLOAT")
	r := rand.New(rand.NewPCG(21, 22))
	same, different := 0, 0
	for _, bin := range []string{plain, float} {
		recorded := []byte{byte(r.Uint32()), byte(r.Uint32()), 90, byte(r.Uint32()), 7, byte(r.Uint32()), 200, byte(r.Uint32())}
		f := bubble(t, bin, recorded)
		if len(f.Executor.Symbols()) != 8 || len(f.Executor.Stats.Fixed) > 0 {
			t.Fatalf("%v, %v", f.Executor.Symbols(), f.Executor.Stats.Fixed)
		}
		inputs := neighbours(r, recorded, 16)
		if bin == plain { // Z3 takes minutes for floating point
			inputs = append(inputs, models(t, f, 6)...)
		}
		for _, input := range inputs {
			want := f.satisfied(t, input)
			if got := bubble(t, bin, input).path() == f.path(); got != want {
				t.Errorf("recorded %v: %v satisfies the constraints: %v, and takes the path: %v", recorded, input, want, got)
			}
			if want {
				same++
			} else {
				different++
			}
		}
	}
	t.Logf("%d on the path, %d not", same, different)
	if same < 10 || different < 8 {
		t.Errorf("%d inputs on the path, %d not", same, different)
	}
}

// neighbours are inputs with one byte changed a little.
func neighbours(r *rand.Rand, input []byte, n int) [][]byte {
	var all [][]byte
	for range n {
		b := slices.Clone(input)
		b[r.IntN(len(b))] += byte(r.IntN(41)) - 20
		all = append(all, b)
	}
	return all
}

// models are different inputs on the path.
func models(t *testing.T, f *symbolicRun, n int) [][]byte {
	t.Helper()
	p := f.Executor.Pool
	s := smt.New(3_000_000)
	for _, c := range f.constraints {
		s.Assert(c.Expr)
	}
	var all [][]byte
	for range n {
		if a := s.Check(); a != smt.Satisfiable {
			t.Logf("after %d models: %v", len(all), a)
			break
		}
		m := s.Model()
		var input []byte
		differs := p.Bool(false)
		for _, name := range f.Executor.Symbols() {
			input = append(input, byte(m[name].Lo))
			differs = p.Or(differs, p.Not(p.Eq(p.Symbol(name, 8), p.Word(m[name].Lo, 8))))
		}
		s.Assert(differs)
		all = append(all, input)
	}
	return all
}
