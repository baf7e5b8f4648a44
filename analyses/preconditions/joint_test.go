package preconditions_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// A thousand terms about the quotient of two digits reduce to the digits' values if the
// last term leaves one pair, and otherwise to terms that hold for the same digits.
func TestTwoDigits(t *testing.T) {
	p := symbolic.NewPool()
	a, b := p.Symbol("argv[1][0]", 8), p.Symbol("argv[1][1]", 8)
	number := func(digit *symbolic.Expr) *symbolic.Expr { return p.ZeroExt(p.Sub(digit, p.Word('0', 8)), 64) }
	digits := []*symbolic.Expr{
		p.ULT(p.Sub(a, p.Word('1', 8)), p.Word(9, 8)), p.ULT(p.Sub(b, p.Word('0', 8)), p.Word(10, 8)),
	}
	count := p.Sub(p.Div(symbolic.UDiv, p.Word(1000, 64), number(a)), number(b))
	for _, x := range []struct {
		last *symbolic.Expr
		want string // or empty: terms that hold for the same digits
	}{
		{p.Eq(count, p.Word(998, 64)), `argv[1][0:2] = "12"`},
		{p.ULE(p.Word(330, 64), count), ""},
	} {
		terms := slices.Clone(digits)
		for i := range uint64(300) {
			terms = append(terms, p.Not(p.Eq(count, p.Word(i, 64))))
		}
		terms = append(terms, x.last)
		kept := preconditions.Simplify(p, terms, recorded(map[string]uint64{a.Name: '1', b.Name: '2'}), preconditions.Limits{Steps: preconditions.DefaultLimit})
		if set := (&preconditions.Set{Terms: kept}).String(); x.want != "" && set != x.want || len(kept) > 5 {
			t.Errorf("%s, want %s", set, x.want)
		}
		if before, after := satisfying(t, terms), satisfying(t, kept); !slices.Equal(before, after) {
			t.Errorf("%d pairs of digits satisfy %v, %d the terms", len(after), kept, len(before))
		}
	}
}

// Terms about two or three small symbols hold for the same values after simplification.
func TestSmallSymbolsStay(t *testing.T) {
	r := rand.New(rand.NewPCG(45, 46))
	for range 12 {
		p := symbolic.NewPool()
		values, terms := map[string]uint64{}, []*symbolic.Expr{}
		var all []*symbolic.Expr
		for _, name := range []string{"size(stdin)", "size(argv[1])", "argv[1][0]"} {
			x := p.Symbol(name, 64)
			if name == "argv[1][0]" {
				x = p.Symbol(name, 8)
			}
			values[name] = 1 + r.Uint64N(9)
			terms = append(terms, p.ULT(p.Word(0, x.Bits), x), p.ULT(x, p.Word(12, x.Bits)))
			all = append(all, p.ZeroExt(x, 64))
		}
		by := func(op symbolic.Op) func(a, b *symbolic.Expr) *symbolic.Expr {
			return func(a, b *symbolic.Expr) *symbolic.Expr { return p.Div(op, a, b) }
		}
		e := symbolic.NewEvaluator(recorded(values))
		for range 1 + r.IntN(20) {
			x, y := all[r.IntN(3)], all[r.IntN(3)]
			if r.IntN(4) == 0 {
				y = p.Add(y, all[r.IntN(3)])
			}
			f := []func(a, b *symbolic.Expr) *symbolic.Expr{by(symbolic.UDiv), by(symbolic.URem), p.Mul, p.Add}[r.IntN(4)](x, y)
			term := []func(a, b *symbolic.Expr) *symbolic.Expr{p.Eq, p.ULT, p.SLE}[r.IntN(3)](f, p.Word(r.Uint64N(20), 64))
			if v, _ := e.Value(term); v.Lo == 0 {
				term = p.Not(term)
			}
			terms = append(terms, term)
		}
		kept := preconditions.Simplify(p, terms, recorded(values), preconditions.Limits{Steps: preconditions.DefaultLimit})
		for i := range uint64(14 * 14 * 14) {
			x := recorded(map[string]uint64{"size(stdin)": i % 14, "size(argv[1])": i / 14 % 14, "argv[1][0]": i / 196})
			if a, b := holds(terms, x), holds(kept, x); a != b {
				t.Fatalf("%v is %v for %d, simplified %v is %v", terms, a, i, kept, b)
			}
		}
	}
}

// The bounds of a number decide parts of terms, such as the minimum of it and another; the
// result holds for the same numbers at and around all constants, signed and unsigned.
func TestBoundsInside(t *testing.T) {
	r := rand.New(rand.NewPCG(47, 48))
	edges := []uint64{0, 1, 99, 100, 4095, 65536, 1 << 40, 1 << 63, 1<<64 - 100}
	var near []uint64
	for _, e := range edges {
		near = append(near, e-1, e, e+1)
	}
	simpler := 0
	for range 25 {
		p := symbolic.NewPool()
		n, m := p.Symbol("size(stdin)", 64), p.Symbol("size(argv[1])", 64)
		edge := func() *symbolic.Expr { return p.Word(edges[r.IntN(len(edges))], 64) }
		compare := func(a, b *symbolic.Expr) *symbolic.Expr {
			return []func(a, b *symbolic.Expr) *symbolic.Expr{p.ULT, p.ULE, p.SLT, p.SLE}[r.IntN(4)](a, b)
		}
		values := map[string]uint64{n.Name: near[r.IntN(len(near))], m.Name: near[r.IntN(len(near))]}
		e := symbolic.NewEvaluator(recorded(values))
		var terms []*symbolic.Expr
		add := func(term *symbolic.Expr) {
			if v, _ := e.Value(term); v.Lo == 0 {
				term = p.Not(term)
			}
			terms = append(terms, term)
		}
		for range 1 + r.IntN(3) {
			add(compare(n, edge()))
			add(compare(edge(), m))
			lesser := p.Ite(compare(n, edge()), n, edge())
			add(compare(lesser, p.Ite(compare(edge(), m), edge(), m)))
		}
		kept := preconditions.Simplify(p, terms, recorded(values), preconditions.Limits{Steps: preconditions.DefaultLimit})
		if symbolic.Compile(kept).Len() < symbolic.Compile(terms).Len() {
			simpler++
		}
		for _, x := range near {
			for _, y := range near {
				v := recorded(map[string]uint64{n.Name: x, m.Name: y})
				if a, b := holds(terms, v), holds(kept, v); a != b {
					t.Fatalf("%v is %v for %d and %d, simplified %v is %v", terms, a, x, y, kept, b)
				}
			}
		}
	}
	if simpler < 10 {
		t.Errorf("%d of 25 became simpler", simpler)
	}
}
