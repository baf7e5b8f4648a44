package symbolic

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// twins builds the same expression simplified and not.
type twins struct {
	simple, plain *Pool
}

type twin struct{ simple, plain *Expr }

func newTwins() *twins {
	t := &twins{NewPool(), NewPool()}
	t.plain.unsimplified = true
	return t
}

// drawSize is a size that programs use, or an odd one.
func drawSize(r *rand.Rand) int { return []int{1, 3, 8, 16, 32, 33, 64, 128}[r.IntN(8)] }

func drawValue(r *rand.Rand, n int) Value {
	switch r.IntN(5) {
	case 0:
		return truncate(wordValue(uint64(r.IntN(4))), n)
	case 1:
		return subtractWrapping(Value{}, wordValue(uint64(r.IntN(4))), n)
	case 2:
		return shiftLeft(allOnes(1+r.IntN(n)), r.IntN(n), n)
	default:
		return truncate(Value{Lo: r.Uint64(), Hi: r.Uint64()}, n)
	}
}

// buildBoth makes an operation in both pools.
func (t *twins) buildBoth(e Expr, args ...twin) twin {
	var s, p [3]*Expr
	for i, a := range args {
		s[i], p[i] = a.simple, a.plain
	}
	return twin{t.simple.rebuildWith(&e, s[0], s[1], s[2]), t.plain.rebuildWith(&e, p[0], p[1], p[2])}
}

// drawExpr makes a random expression of n bits.
func (t *twins) drawExpr(r *rand.Rand, n, depth int) twin {
	if depth == 0 || r.IntN(8) == 0 {
		if r.IntN(3) == 0 {
			v := drawValue(r, n)
			return twin{t.simple.Const(v, n), t.plain.Const(v, n)}
		}
		name := fmt.Sprintf("x%d_%d", n, r.IntN(3))
		return twin{t.simple.Symbol(name, n), t.plain.Symbol(name, n)}
	}
	same := func() twin { return t.drawExpr(r, n, depth-1) }
	switch k := r.IntN(14); {
	case k == 0:
		return t.buildBoth(Expr{Op: Not}, same())
	case k == 1 && n > 1:
		inner := 1 + r.IntN(n-1)
		return t.buildBoth(Expr{Op: []Op{ZeroExt, SignExt}[r.IntN(2)], Bits: n}, t.drawExpr(r, inner, depth-1))
	case k == 2 && n > 1:
		low := 1 + r.IntN(n-1)
		return t.buildBoth(Expr{Op: Concat}, t.drawExpr(r, n-low, depth-1), t.drawExpr(r, low, depth-1))
	case k == 3 && n < 128:
		wide := n + 1 + r.IntN(128-n)
		return t.buildBoth(Expr{Op: Extract, Bits: n, Low: r.IntN(wide - n + 1)}, t.drawExpr(r, wide, depth-1))
	case k <= 5:
		m := drawSize(r)
		op := []Op{Eq, Eq, ULT, ULE, SLT, SLE}[r.IntN(6)]
		c := t.buildBoth(Expr{Op: op}, t.drawExpr(r, m, depth-1), t.drawExpr(r, m, depth-1))
		if n == 1 {
			return c
		}
		return t.buildBoth(Expr{Op: Ite}, c, same(), same())
	case k == 6:
		return t.buildBoth(Expr{Op: []Op{Shl, LShr, AShr}[r.IntN(3)]}, same(), same())
	case k == 7 && n <= 64 && r.IntN(2) == 0:
		// A division as processors do it.
		ext := []Op{ZeroExt, SignExt}[r.IntN(2)]
		op := []Op{UDiv, URem, SDiv, SRem}[r.IntN(4)]
		widened := func() twin { return t.buildBoth(Expr{Op: ext, Bits: 2 * n}, same()) }
		return t.buildBoth(Expr{Op: Extract, Bits: n}, t.buildBoth(Expr{Op: op}, widened(), widened()))
	case k == 7:
		return t.buildBoth(Expr{Op: []Op{UDiv, URem, SDiv, SRem, Clz, Ctz}[r.IntN(4)]}, same(), same())
	default:
		return t.buildBoth(Expr{Op: []Op{And, Or, Xor, Add, Sub, Mul}[r.IntN(6)]}, same(), same())
	}
}

// Invariant 1: simplified and not, an expression has the same value.
func TestSimplificationKeepsValues(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 5_000
	}
	r := rand.New(rand.NewPCG(1, 2))
	smaller, total := 0, 0
	tw := newTwins()
	for i := range rounds {
		if i%1000 == 0 {
			tw = newTwins()
		}
		e := tw.drawExpr(r, drawSize(r), 1+r.IntN(5))
		if e.simple.Bits != e.plain.Bits {
			t.Fatalf("%v has %d bits, %v has %d", e.simple, e.simple.Bits, e.plain, e.plain.Bits)
		}
		smaller += e.simple.Size()
		total += e.plain.Size()
		for range 4 {
			values := map[string]Value{}
			assignment := func(name string) (Value, bool) {
				if _, ok := values[name]; !ok {
					var n, k int
					_, _ = fmt.Sscanf(name, "x%d_%d", &n, &k)
					values[name] = drawValue(r, n)
				}
				return values[name], true
			}
			x, _ := NewEvaluator(assignment).Value(e.plain)
			y, _ := NewEvaluator(assignment).Value(e.simple)
			if x != y {
				t.Fatalf("%v\nis %#x, simplified\n%v\nis %#x with %v", e.plain, x, e.simple, y, values)
			}
		}
	}
	t.Logf("simplified expressions have %d of %d nodes", smaller, total)
}

// Substituting constants for symbols is evaluation.
func TestSubstitutionIsEvaluation(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		tw := newTwins()
		e := tw.drawExpr(r, drawSize(r), 4)
		values := map[string]Value{}
		Symbols(e.plain, func(s *Expr) { values[s.Name] = drawValue(r, s.Bits) })
		x, err := NewEvaluator(func(name string) (Value, bool) { v, ok := values[name]; return v, ok }).Value(e.plain)
		if err != nil {
			t.Fatal(err)
		}
		p := tw.simple
		y := p.Substitute(e.simple, func(name string) *Expr {
			var n, k int
			_, _ = fmt.Sscanf(name, "x%d_%d", &n, &k)
			return p.Const(values[name], n)
		})
		if y.Op != Const || y.Value != x {
			t.Fatalf("%v gives %v, not %#x", e.simple, y, x)
		}
	}
}

// The minimum of a number and a limit is simplified when the case of one value below the
// limit is split off, and subtracting twice from a number cancels.
func TestMinimumCase(t *testing.T) {
	for k := range uint64(8) {
		for limit := range uint64(8) {
			build := func(p *Pool) *Expr {
				x, least := p.Symbol("x", 3), p.Word(limit, 3)
				lesser := p.Ite(p.Eq(x, p.Word(k, 3)), p.Word(k, 3), p.Ite(p.ULT(x, least), x, least))
				return p.Sub(least, p.Sub(least, lesser))
			}
			both := newTwins()
			simple, plain := build(both.simple), build(both.plain)
			for v := range uint64(8) {
				at := func(string) (Value, bool) { return wordValue(v), true }
				a, _ := NewEvaluator(at).Value(simple)
				if b, _ := NewEvaluator(at).Value(plain); a != b {
					t.Errorf("%v is %v for %d, %v is %v", simple, a, v, plain, b)
				}
			}
			if 1 < limit && limit < 7 && k < limit && simple.Op == Ite && simple.A.Op == Eq {
				t.Errorf("%v is not the lesser", simple)
			}
		}
	}
}
