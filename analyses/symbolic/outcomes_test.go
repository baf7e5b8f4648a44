package symbolic_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// comparison is a truth about two numbers, as an expression and in Go.
type comparison struct {
	e     *symbolic.Expr
	holds func(x, y float64) bool
}

func drawTruth(r *rand.Rand, p *symbolic.Pool, x, y *symbolic.Expr, depth int) comparison {
	if depth == 0 {
		basic := []comparison{
			{p.Float(symbolic.FEq, 0, 1, x, y), func(x, y float64) bool { return x == y }},
			{p.Float(symbolic.FLT, 0, 1, x, y), func(x, y float64) bool { return x < y }},
			{p.Float(symbolic.FLT, 0, 1, y, x), func(x, y float64) bool { return y < x }},
			{p.Float(symbolic.FLE, 0, 1, x, y), func(x, y float64) bool { return x <= y }},
			{p.Float(symbolic.FLE, 0, 1, y, x), func(x, y float64) bool { return y <= x }},
			{p.Float(symbolic.FUnordered, 0, 1, y, x), func(x, y float64) bool { return x != x || y != y }},
		}
		return basic[r.IntN(len(basic))]
	}
	a, b := drawTruth(r, p, x, y, depth-1), drawTruth(r, p, x, y, r.IntN(depth))
	switch r.IntN(4) {
	case 0:
		return comparison{p.Not(a.e), func(x, y float64) bool { return !a.holds(x, y) }}
	case 1:
		return comparison{p.And(a.e, b.e), func(x, y float64) bool { return a.holds(x, y) && b.holds(x, y) }}
	case 2:
		return comparison{p.Or(a.e, b.e), func(x, y float64) bool { return a.holds(x, y) || b.holds(x, y) }}
	default:
		return comparison{p.Ite(a.e, p.Bool(false), b.e), func(x, y float64) bool { return !a.holds(x, y) && b.holds(x, y) }}
	}
}

// Truths about the comparison of two floating-point numbers hold where Go's do, and stay
// short.
func TestFloatComparisons(t *testing.T) {
	p := symbolic.NewPool()
	x, y := p.Symbol("x", 64), p.Symbol("y", 64)
	numbers := []float64{0, math.Copysign(0, -1), 1, 2.5, math.Inf(1), math.Inf(-1), math.NaN()}
	r := rand.New(rand.NewPCG(51, 52))
	for range 3000 {
		c := drawTruth(r, p, x, y, 1+r.IntN(4))
		if c.e.Size() > 8 {
			t.Errorf("%v", c.e)
		}
		for _, u := range numbers {
			for _, v := range numbers {
				value, err := symbolic.NewEvaluator(func(name string) (symbolic.Value, bool) {
					if name == "x" {
						return symbolic.Value{Lo: math.Float64bits(u)}, true
					}
					return symbolic.Value{Lo: math.Float64bits(v)}, true
				}).Value(c.e)
				if err != nil || value.Lo != 0 != c.holds(u, v) {
					t.Fatalf("%v of %v and %v is %v, %v", c.e, u, v, value, err)
				}
			}
		}
	}
}
