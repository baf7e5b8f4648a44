package preconditions

import (
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// bounds says terms about one symbol by its least and its greatest value, if all
// between satisfy them: nil if not, or if the terms are as simple as that already.
func (z *simplifier) bounds(terms []*symbolic.Expr) []*symbolic.Expr {
	s := only(terms)
	if s == nil || simple(terms, s) {
		return nil
	}
	v, err := z.evaluator.Value(s)
	if err != nil {
		return nil
	}
	z.solver.Push()
	defer z.solver.Pop()
	for _, t := range terms {
		z.solver.Assert(t)
	}
	signed := signed(terms, s)
	low, found := z.edge(s, v.Lo, signed, false)
	if !found {
		return nil
	}
	high, found := z.edge(s, v.Lo, signed, true)
	between := z.between(s, low, high, signed)
	if !found || len(between) == 0 || !z.admitted(terms, between) {
		return nil
	}
	return between
}

// only is the symbol that all terms are about, if there is one and it is a number of
// up to 64 bits.
func only(terms []*symbolic.Expr) *symbolic.Expr {
	var one *symbolic.Expr
	several := false
	for _, t := range terms {
		symbolic.Symbols(t, func(s *symbolic.Expr) {
			several = several || one != nil && one != s
			one = s
		})
	}
	if several || one == nil || one.Bits > 64 {
		return nil
	}
	return one
}

// simple tells whether terms compare the symbol itself, and are at most two.
func simple(terms []*symbolic.Expr, s *symbolic.Expr) bool {
	for _, t := range terms {
		if t.Op == symbolic.Not {
			t = t.A
		}
		if t.A != s && t.B != s {
			return false
		}
	}
	return len(terms) <= 2
}

// signed tells whether some term compares the symbol with its sign.
func signed(terms []*symbolic.Expr, s *symbolic.Expr) bool {
	found := false
	var visit func(e *symbolic.Expr)
	seen := map[*symbolic.Expr]bool{}
	visit = func(e *symbolic.Expr) {
		if e == nil || seen[e] {
			return
		}
		seen[e] = true
		found = found || (e.Op == symbolic.SLT || e.Op == symbolic.SLE) && (e.A == s || e.B == s)
		visit(e.A)
		visit(e.B)
		visit(e.C)
	}
	for _, t := range terms {
		visit(t)
	}
	return found
}

// order is the order of numbers of some bits, as if they had no sign.
func order(v uint64, bits int, signed bool) uint64 {
	if signed {
		v ^= 1 << (bits - 1)
	}
	return v
}

// edge is the least or the greatest value that the solver allows a symbol, which may
// have the value v; as an order. It is not found if the solver does not answer.
func (z *simplifier) edge(s *symbolic.Expr, v uint64, signed, greatest bool) (at uint64, found bool) {
	in := order(v, s.Bits, signed) // allowed
	out := uint64(0)
	if greatest {
		out = ^uint64(0) >> (64 - s.Bits)
	}
	for in != out {
		var middle uint64 // between, nearer to out
		if greatest {
			middle = in + (out-in)/2 + (out-in)%2
		} else {
			middle = in - (in-out)/2 - (in-out)%2
		}
		switch answer := z.reaches(s, middle, signed, greatest); {
		case answer == smt.Unknown:
			return 0, false
		case answer == smt.Satisfiable:
			in = middle
		case greatest:
			out = middle - 1
		default:
			out = middle + 1
		}
	}
	return in, true
}

// reaches tells whether the symbol may be as far out as a value, or further.
func (z *simplifier) reaches(s *symbolic.Expr, at uint64, signed, greatest bool) smt.Answer {
	z.solver.Push()
	defer z.solver.Pop()
	limit := z.pool.Word(order(at, s.Bits, signed), s.Bits)
	if greatest {
		z.solver.Assert(z.atMost(limit, s, signed))
	} else {
		z.solver.Assert(z.atMost(s, limit, signed))
	}
	return z.solver.Check()
}

func (z *simplifier) atMost(a, b *symbolic.Expr, signed bool) *symbolic.Expr {
	if signed {
		return z.pool.SLE(a, b)
	}
	return z.pool.ULE(a, b)
}

// between are the terms that the symbol is in an interval, of orders.
func (z *simplifier) between(s *symbolic.Expr, low, high uint64, signed bool) []*symbolic.Expr {
	p := z.pool
	word := func(x uint64) *symbolic.Expr { return p.Word(order(x, s.Bits, signed), s.Bits) }
	if low == high {
		return []*symbolic.Expr{p.Eq(s, word(low))}
	}
	var terms []*symbolic.Expr
	if low > 0 {
		terms = append(terms, p.Not(z.atMost(s, word(low-1), signed)))
	}
	if high < ^uint64(0)>>(64-s.Bits) {
		terms = append(terms, z.atMost(s, word(high), signed))
	}
	return terms
}

// admitted tells whether other terms imply terms, which the solver has already: it is
// asked about each of them anew.
func (z *simplifier) admitted(terms, others []*symbolic.Expr) bool {
	fresh := smt.New(z.limit)
	for _, t := range others {
		fresh.Assert(t)
	}
	for _, t := range terms {
		fresh.Push()
		fresh.Assert(z.pool.Not(t))
		answer := fresh.Check()
		fresh.Pop()
		if answer != smt.Unsatisfiable {
			return false
		}
	}
	return true
}
