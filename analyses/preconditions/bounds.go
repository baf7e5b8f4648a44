package preconditions

import (
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// simplifyToBounds replaces terms about one symbol by its least and greatest value, if all
// values between satisfy them. It returns nil if not, or if the terms are as simple
// already.
func (z *simplifier) simplifyToBounds(terms []*symbolic.Expr) []*symbolic.Expr {
	s := onlySymbol(terms)
	if s == nil || isSimple(terms, s) {
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
	signed := comparesSigned(terms, s)
	low, found := z.findExtreme(s, v.Lo, signed, false)
	if !found {
		return nil
	}
	high, found := z.findExtreme(s, v.Lo, signed, true)
	between := z.intervalTerms(s, low, high, signed)
	if !found || len(between) == 0 || !z.impliesAll(terms, between) {
		return nil
	}
	return between
}

// onlySymbol returns the one symbol of some terms, nil if there are several or it has more
// than 64 bits.
func onlySymbol(terms []*symbolic.Expr) *symbolic.Expr {
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

// isSimple reports whether there are at most two terms and each compares the symbol itself.
func isSimple(terms []*symbolic.Expr, s *symbolic.Expr) bool {
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

// comparesSigned reports whether a term compares the symbol as a signed number.
func comparesSigned(terms []*symbolic.Expr, s *symbolic.Expr) bool {
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

// unsignedOrder maps a number to one whose unsigned order is the order of the numbers.
func unsignedOrder(v uint64, bits int, signed bool) uint64 {
	if signed {
		v ^= 1 << (bits - 1)
	}
	return v
}

// findExtreme finds the least or the greatest value of a symbol that satisfies the solver's
// constraints, by bisection from the value v, which satisfies them. The result is in
// unsigned order. Found is false if the solver gives up.
func (z *simplifier) findExtreme(s *symbolic.Expr, v uint64, signed, greatest bool) (at uint64, found bool) {
	in := unsignedOrder(v, s.Bits, signed) // satisfies the constraints
	out := uint64(0)
	if greatest {
		out = ^uint64(0) >> (64 - s.Bits)
	}
	for in != out {
		var middle uint64 // between the two, nearer to out
		if greatest {
			middle = in + (out-in)/2 + (out-in)%2
		} else {
			middle = in - (in-out)/2 - (in-out)%2
		}
		switch answer := z.askBeyond(s, middle, signed, greatest); {
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

// askBeyond asks the solver whether the symbol may have a value or one further out.
func (z *simplifier) askBeyond(s *symbolic.Expr, at uint64, signed, greatest bool) smt.Answer {
	if !z.mayAsk() {
		return smt.Unknown
	}
	z.solver.Push()
	defer z.solver.Pop()
	limit := z.pool.Word(unsignedOrder(at, s.Bits, signed), s.Bits)
	if greatest {
		z.solver.Assert(z.makeAtMost(limit, s, signed))
	} else {
		z.solver.Assert(z.makeAtMost(s, limit, signed))
	}
	return z.solver.Check()
}

func (z *simplifier) makeAtMost(a, b *symbolic.Expr, signed bool) *symbolic.Expr {
	if signed {
		return z.pool.SLE(a, b)
	}
	return z.pool.ULE(a, b)
}

// intervalTerms returns the terms that the symbol is in an interval, given in unsigned
// order.
func (z *simplifier) intervalTerms(s *symbolic.Expr, low, high uint64, signed bool) []*symbolic.Expr {
	p := z.pool
	word := func(x uint64) *symbolic.Expr { return p.Word(unsignedOrder(x, s.Bits, signed), s.Bits) }
	if low == high {
		return []*symbolic.Expr{p.Eq(s, word(low))}
	}
	var terms []*symbolic.Expr
	if low > 0 {
		terms = append(terms, p.Not(z.makeAtMost(s, word(low-1), signed)))
	}
	if high < ^uint64(0)>>(64-s.Bits) {
		terms = append(terms, z.makeAtMost(s, word(high), signed))
	}
	return terms
}

// impliesAll reports whether other terms imply the terms that the solver already has: a
// fresh solver is asked about each of them.
func (z *simplifier) impliesAll(terms, others []*symbolic.Expr) bool {
	fresh := smt.New(z.limits.Steps)
	for _, t := range others {
		fresh.Assert(t)
	}
	for _, t := range terms {
		if !z.mayAsk() {
			return false
		}
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
