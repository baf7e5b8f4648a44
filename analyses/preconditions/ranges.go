package preconditions

import (
	"math/big"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// span is the unsigned numbers from low to high, both included.
type span struct{ low, high *big.Int }

// spanAnalysis computes the span of an expression's values over all values of its symbols.
// It knows bounds of remainders and of sums of them, such as random numbers below a limit,
// which Z3 does not decide if they contain products.
type spanAnalysis map[*symbolic.Expr]span

// contingentTerms returns the terms that do not hold for all values of their symbols, as
// far as spans show.
func contingentTerms(terms []*symbolic.Expr) []*symbolic.Expr {
	r := spanAnalysis{}
	var out []*symbolic.Expr
	for _, t := range terms {
		if !r.alwaysHolds(t) {
			out = append(out, t)
		}
	}
	return out
}

// alwaysHolds and neverHolds report whether a truth is known to hold for all values and for
// none.
func (r spanAnalysis) alwaysHolds(t *symbolic.Expr) bool {
	switch t.Op {
	case symbolic.Not:
		return r.neverHolds(t.A)
	case symbolic.And:
		return r.alwaysHolds(t.A) && r.alwaysHolds(t.B)
	case symbolic.ULT, symbolic.SLT:
		a, b := r.comparedSpans(t)
		return a.high != nil && a.high.Cmp(b.low) < 0
	case symbolic.ULE, symbolic.SLE:
		a, b := r.comparedSpans(t)
		return a.high != nil && a.high.Cmp(b.low) <= 0
	}
	return false
}

func (r spanAnalysis) neverHolds(t *symbolic.Expr) bool {
	switch t.Op {
	case symbolic.Not:
		return r.alwaysHolds(t.A)
	case symbolic.Eq:
		a, b := r.spanOf(t.A), r.spanOf(t.B)
		return a.high.Cmp(b.low) < 0 || b.high.Cmp(a.low) < 0
	case symbolic.ULT, symbolic.SLT:
		a, b := r.comparedSpans(t)
		return a.high != nil && b.high.Cmp(a.low) <= 0
	case symbolic.ULE, symbolic.SLE:
		a, b := r.comparedSpans(t)
		return a.high != nil && b.high.Cmp(a.low) < 0
	}
	return false
}

// comparedSpans returns the spans of the two sides of a comparison; empty ones if the
// comparison is signed and a side may be negative.
func (r spanAnalysis) comparedSpans(t *symbolic.Expr) (a, b span) {
	a, b = r.spanOf(t.A), r.spanOf(t.B)
	if t.Op == symbolic.ULT || t.Op == symbolic.ULE {
		return a, b
	}
	if limit := powerOfTwo(t.A.Bits - 1); a.high.Cmp(limit) >= 0 || b.high.Cmp(limit) >= 0 {
		return span{}, span{}
	}
	return a, b
}

var one = big.NewInt(1)

// powerOfTwo is 2 to the n, and fullSpan all numbers of a size.
func powerOfTwo(n int) *big.Int { return new(big.Int).Lsh(one, uint(n)) }

func fullSpan(bits int) span { return span{new(big.Int), new(big.Int).Sub(powerOfTwo(bits), one)} }

// spanOf returns the span of an expression.
func (r spanAnalysis) spanOf(e *symbolic.Expr) span {
	if s, known := r[e]; known {
		return s
	}
	s := r.computeSpan(e)
	if s.low == nil || s.low.Sign() < 0 || s.high.Cmp(powerOfTwo(e.Bits)) >= 0 {
		s = fullSpan(e.Bits) // the operation may wrap
	}
	r[e] = s
	return s
}

func (r spanAnalysis) computeSpan(e *symbolic.Expr) span {
	switch e.Op {
	case symbolic.Const:
		v := new(big.Int).SetUint64(e.Value.Hi)
		v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(e.Value.Lo))
		return span{v, v}
	case symbolic.Add:
		return r.spanOfSum(e)
	case symbolic.Sub:
		return r.spanOfDifference(e)
	case symbolic.URem:
		if b := r.spanOf(e.B); b.low.Sign() > 0 {
			return span{new(big.Int), new(big.Int).Sub(b.high, one)}
		}
	case symbolic.ZeroExt:
		return r.spanOf(e.A)
	case symbolic.Extract:
		if a := r.spanOf(e.A); e.Low == 0 && a.high.Cmp(powerOfTwo(e.Bits)) < 0 {
			return a
		}
	case symbolic.Ite:
		b, c := r.spanOf(e.B), r.spanOf(e.C)
		return span{minBigInt(b.low, c.low), maxBigInt(b.high, c.high)}
	}
	return span{}
}

// spanOfSum is the span of a sum; a constant with the highest bit set is negative.
func (r spanAnalysis) spanOfSum(e *symbolic.Expr) span {
	a, b := r.spanOf(e.A), r.spanOf(e.B)
	if e.A.IsConst() {
		a, b = b, a
	}
	if limit := powerOfTwo(e.Bits - 1); b.low == b.high && b.low.Cmp(limit) >= 0 {
		minus := new(big.Int).Sub(b.low, powerOfTwo(e.Bits))
		b = span{minus, minus}
	}
	return span{new(big.Int).Add(a.low, b.low), new(big.Int).Add(a.high, b.high)}
}

func minBigInt(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func maxBigInt(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

// spanOfDifference is the span of a difference: that of a remainder if the difference is a
// compiler's computation of one.
func (r spanAnalysis) spanOfDifference(e *symbolic.Expr) span {
	if q, factor := matchMultiple(e.B); q != nil {
		if x, d := matchQuotient(q); x == e.A && d.Cmp(factor) == 0 {
			return span{new(big.Int), new(big.Int).Sub(d, one)}
		}
	}
	a, b := r.spanOf(e.A), r.spanOf(e.B)
	return span{new(big.Int).Sub(a.low, b.high), new(big.Int).Sub(a.high, b.low)}
}

// matchMultiple matches a sum of one zero-extended number shifted by several distances, and
// returns the number and the factor.
func matchMultiple(e *symbolic.Expr) (q *symbolic.Expr, factor *big.Int) {
	switch {
	case e.Op == symbolic.ZeroExt:
		return e.A, one
	case e.Op == symbolic.Concat && e.B.IsConst() && e.B.Value == symbolic.Value{}:
		q, factor = matchMultiple(e.A)
		if q == nil {
			q, factor = e.A, one
		}
		return q, new(big.Int).Lsh(factor, uint(e.B.Bits))
	case e.Op == symbolic.Add:
		a, n := matchMultiple(e.A)
		b, m := matchMultiple(e.B)
		if a == nil || a != b {
			return nil, nil
		}
		return a, new(big.Int).Add(n, m)
	}
	return nil, nil
}

// matchQuotient matches a quotient by a constant that is computed as the upper part of a
// product: x * m >> s is x / d for all x of n bits if m*d lies between 2^s and 2^s +
// 2^(s-n) (Granlund and Montgomery, Division by invariant integers using multiplication,
// 1994, theorem 4.2). x is nil if it does not match.
func matchQuotient(q *symbolic.Expr) (x *symbolic.Expr, d *big.Int) {
	if q.Op != symbolic.Extract || q.A.Op != symbolic.Mul {
		return nil, nil
	}
	product, s := q.A, q.Low
	a, m := product.A, product.B
	if a.IsConst() {
		a, m = m, a
	}
	if a.Op != symbolic.ZeroExt || !m.IsConst() || s+q.Bits != product.Bits || s < a.A.Bits {
		return nil, nil
	}
	by := spanAnalysis{}.spanOf(m).low
	if by.Sign() == 0 || by.Cmp(powerOfTwo(product.Bits-a.A.Bits)) > 0 {
		return nil, nil
	}
	d = new(big.Int).Add(powerOfTwo(s), new(big.Int).Sub(by, one))
	d.Div(d, by) // 2^s / m, rounded up
	over := new(big.Int).Sub(new(big.Int).Mul(by, d), powerOfTwo(s))
	if over.Cmp(powerOfTwo(s-a.A.Bits)) > 0 {
		return nil, nil
	}
	return a.A, d
}
