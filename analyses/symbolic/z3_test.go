package symbolic_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// checkZ3Value fails the test unless Z3 computes want for e under an assignment.
func checkZ3Value(t *testing.T, s *smt.Solver, e *symbolic.Expr, values map[string]symbolic.Value, want symbolic.Value) {
	t.Helper()
	got, ok := s.Evaluate(e, values)
	if !ok || got != want {
		t.Fatalf("%v with %v is %#x, Z3 says %#x, %v", e, values, want, got, ok)
	}
}

func drawValues(r *rand.Rand, e *symbolic.Expr) map[string]symbolic.Value {
	values := map[string]symbolic.Value{}
	symbolic.Symbols(e, func(x *symbolic.Expr) { values[x.Name] = symbolic.DrawValue(r, x.Bits) })
	return values
}

func evaluate(t *testing.T, e *symbolic.Expr, values map[string]symbolic.Value) symbolic.Value {
	t.Helper()
	v, err := symbolic.NewEvaluator(func(name string) (symbolic.Value, bool) { v, ok := values[name]; return v, ok }).Value(e)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Values of expressions, simplified and not, are Z3's.
func TestValuesAgreeWithZ3(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	sizes := []int{1, 3, 8, 16, 32, 33, 64, 128}
	s := smt.New(0)
	for range 400 {
		simple, plain := symbolic.Twins(r, sizes[r.IntN(len(sizes))], 4)
		values := drawValues(r, plain)
		want := evaluate(t, plain, values)
		checkZ3Value(t, s, plain, values, want)
		checkZ3Value(t, s, simple, values, want)
	}
}

// Z3 proves that small expressions, simplified and not, are equal for all values.
func TestSimplificationIsValid(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	proved, unknown := 0, 0
	s := smt.New(2_000_000)
	for range 120 {
		simple, plain := symbolic.Twins(r, []int{1, 3, 8, 16}[r.IntN(4)], 1+r.IntN(3))
		if simple.IsConst() && plain.IsConst() {
			continue
		}
		s.Push()
		s.AssertDifferent(simple, plain)
		switch s.Check() {
		case smt.Satisfiable:
			t.Fatalf("%v is not %v with %v", simple, plain, s.Model())
		case smt.Unknown:
			unknown++
		default:
			proved++
		}
		s.Pop()
	}
	t.Logf("%d proved, %d not decided", proved, unknown)
	if proved < 3*unknown {
		t.Errorf("%d of %d are not decided", unknown, proved+unknown)
	}
}

// drawFloat returns the bits of a random floating-point number; special ones are frequent.
func drawFloat(r *rand.Rand, bits int) symbolic.Value {
	special := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, math.Inf(1), math.Inf(-1), 1e-310, 3e-45, 1e300, 2147483647.5, -9.3e18, 1.5, -2.5}
	x := special[r.IntN(len(special))]
	if r.IntN(2) == 0 {
		x = r.NormFloat64() * math.Ldexp(1, r.IntN(60)-30)
	}
	w := math.Float64bits(x)
	if r.IntN(8) == 0 {
		w = 0x7ff0000000000000 | r.Uint64()
	}
	if bits == 64 {
		return symbolic.Value{Lo: w}
	}
	if w>>52&0x7ff == 0x7ff && w<<12 != 0 {
		return symbolic.Value{Lo: uint64(0x7f800000 | r.Uint32())}
	}
	return symbolic.Value{Lo: uint64(math.Float32bits(float32(x)))}
}

// Floating point agrees with Z3's theory and x86's rules for NaN.
func TestFloatsAgreeWithZ3(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	s, p := smt.New(0), symbolic.NewPool()
	for round := range 160 {
		bits := []int{64, 32}[round%2]
		a, b := p.Symbol("a", bits), p.Symbol("b", bits)
		values := map[string]symbolic.Value{"a": drawFloat(r, bits), "b": drawFloat(r, bits)}
		mode := symbolic.Mode(0)
		if bits == 64 {
			mode = symbolic.Mode(r.IntN(4))
		}
		for _, e := range []*symbolic.Expr{
			p.Float(symbolic.FAdd, mode, bits, a, b), p.Float(symbolic.FSub, mode, bits, a, b),
			p.Float(symbolic.FMul, mode, bits, a, b), p.Float(symbolic.FDiv, symbolic.Nearest, bits, a, b),
			p.Float(symbolic.FSqrt, symbolic.Nearest, bits, a, nil), p.Float(symbolic.FRound, mode, bits, a, nil),
			p.Float(symbolic.FEq, 0, 1, a, b), p.Float(symbolic.FLT, 0, 1, a, b), p.Float(symbolic.FLE, 0, 1, a, b),
			p.Float(symbolic.FUnordered, 0, 1, a, b), p.Float(symbolic.FToF, mode, 96-bits, a, nil),
		} {
			checkZ3Value(t, s, e, values, evaluate(t, e, values))
		}
		if bits == 64 {
			i := p.Symbol("i", 64)
			values["i"] = symbolic.DrawValue(r, 64)
			for _, e := range []*symbolic.Expr{
				p.Float(symbolic.FToInt, mode, 32, a, nil), p.Float(symbolic.FToInt, mode, 64, a, nil), p.Float(symbolic.IntToF, mode, 64, i, nil),
			} {
				checkZ3Value(t, s, e, values, evaluate(t, e, values))
			}
		}
	}
}
