package symbolic

import "testing"

// Expressions as code computes them, in their printed form.
func TestSimplifiedAndPrinted(t *testing.T) {
	p := NewPool()
	x, y, b := p.Symbol("x", 32), p.Symbol("y", 32), p.Symbol("b", 8)
	word := func(n uint64) *Expr { return p.Word(n, 32) }
	wide := func(e *Expr) *Expr { return p.ZeroExt(e, 64) }
	for _, c := range []struct {
		e    *Expr
		want string
	}{
		{p.Sub(p.Add(x, word(5)), word(7)), "x - 2"},
		{p.Add(word(3), p.Add(x, word(4))), "x + 7"},
		{p.Xor(x, x), "0"},
		{p.And(x, word(0xff)), "zext32(x[7:0])"},
		{p.And(wide(x), p.Word(0xffffffff, 64)), "zext64(x)"},
		{p.Extract(p.Add(wide(x), wide(y)), 0, 32), "x + y"},
		{p.Concat(p.Extract(x, 8, 8), p.Extract(x, 0, 8)), "x[15:0]"},
		{p.Or(p.Shl(p.ZeroExt(b, 16), p.Word(8, 16)), p.ZeroExt(b, 16)), "b ∘ b"},
		{p.Eq(p.ZeroExt(b, 32), word(300)), "0"},
		{p.Eq(p.Add(p.ZeroExt(b, 32), word(^uint64(47))), word(2)), "b = 50"},
		{p.Not(p.Eq(b, p.Word(45, 8))), "b ≠ 45"},
		{p.ULT(p.Add(p.ZeroExt(b, 32), word(^uint64(47))), word(10)), "zext32(b) - 48 <u 10"},
		{p.Not(p.SLT(x, y)), "y ≤ x"},
		{p.And(p.Eq(x, word(2)), p.SLE(x, y)), "x = 2 ∧ x ≤ y"},
		{p.Or(p.And(p.Eq(x, y), p.Eq(b, p.Word(1, 8))), p.ULT(y, x)), "x = y ∧ b = 1 ∨ y <u x"},
		{p.Eq(p.Ite(p.Eq(x, y), word(1), word(0)), word(1)), "x = y"},
		{p.Mul(x, word(8)), "x[28:0] ∘ 0"},
		{p.Mul(p.Add(x, y), word(10)), "(x + y) * 10"},
		{p.SLT(p.SignExt(x, 64), p.SignExt(y, 64)), "x < y"},
		{p.AShr(p.Concat(x, word(0)), p.Word(32, 64)), "sext64(x)"},
		{p.Float(FLT, Nearest, 1, p.Symbol("f", 64), p.Float(FAdd, TowardsZero, 64, p.Symbol("f", 64), p.Symbol("g", 64))), "f <f f +f₀ g"},
		{p.Extract(p.Div(SDiv, p.SignExt(x, 64), p.SignExt(y, 64)), 0, 32), "x / y"},
		{p.Extract(p.Div(URem, wide(x), p.Word(10, 64)), 0, 32), "x %u 10"},
		{p.Sub(x, p.Sub(y, x)), "x - (y - x)"},
	} {
		if got := c.e.String(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	square := p.Mul(p.Add(p.Mul(x, y), p.UDivBy(x, y)), p.Add(p.Mul(x, y), p.UDivBy(x, y)))
	if got, want := square.String(), "let t1 = x * y + x /u y in t1 * t1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// UDivBy is an unsigned division.
func (p *Pool) UDivBy(a, b *Expr) *Expr { return p.Div(UDiv, a, b) }

// Invariant 1: equal expressions are the same pointer.
func TestEqualExpressionsAreIdentical(t *testing.T) {
	p := NewPool()
	make := func() *Expr {
		return p.Ite(p.ULT(p.Symbol("x", 8), p.Symbol("y", 8)), p.Add(p.Symbol("x", 8), p.Word(3, 8)), p.Symbol("y", 8))
	}
	n := 0
	a := make()
	if n = p.Len(); make() != a || p.Len() != n {
		t.Errorf("%d expressions, then %d", n, p.Len())
	}
}
