package symbolic

import "testing"

// A bound that is found holds for every value of a byte. The bounds of racey's array indices are
// found: those of remainders, also of a signed number that is not negative, and of parts of a named
// expression.
func TestBelow(t *testing.T) {
	p := NewPool()
	x := p.Symbol("x", 8)
	word := func(v uint64) *Expr { return p.Word(v, 16) }
	wide, signed := p.ZeroExt(x, 16), p.SignExt(x, 16)
	divided := p.Concat(p.Div(URem, wide, word(10)), p.Div(UDiv, wide, word(10)))
	named := map[string]*Expr{"n": divided}
	n := p.Symbol("n", 32)
	for _, c := range []struct {
		name  string
		e     *Expr
		is    *Expr  // without names
		bound uint64 // the least that is found; 0: none up to 100
	}{
		{"unsigned", p.Div(URem, wide, word(10)), nil, 10},
		{"not negative", p.Div(SRem, wide, word(10)), nil, 10},
		{"perhaps negative", p.Div(SRem, signed, word(10)), nil, 0},
		{"by a negative number", p.Div(SRem, wide, word(0xfff6)), nil, 0},
		{"by what is read", p.Div(URem, word(7), wide), nil, 0},
		{"masked", p.And(signed, word(5)), nil, 6},
		{"extended", p.ZeroExt(p.Extract(p.Div(URem, wide, word(10)), 0, 8), 64), nil, 10},
		{"remainder with a name", p.Extract(n, 16, 16), p.Extract(divided, 16, 16), 10},
		{"quotient with a name", p.Extract(n, 0, 16), p.Extract(divided, 0, 16), 0},
		{"a number", word(41), nil, 42},
	} {
		if c.is == nil {
			c.is = c.e
		}
		least := uint64(0)
		for bound := uint64(100); bound > 0 && p.IsBelow(c.e, bound, named); bound-- {
			least = bound
		}
		if least != c.bound {
			t.Errorf("%s: below %d, expected %d", c.name, least, c.bound)
		}
		for v := range uint64(256) {
			got, err := NewEvaluator(func(string) (Value, bool) { return Value{Lo: v}, true }).Value(c.is)
			if err != nil {
				t.Fatal(err)
			}
			if least > 0 && got.Lo >= least {
				t.Errorf("%s: %d of %d is not below %d", c.name, got.Lo, v, least)
			}
		}
	}
}
