package preconditions

import (
	"math/big"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// span is the numbers without a sign from low to high, with both ends.
type span struct{ low, high *big.Int }

// ranges finds in which span the values of expressions lie, whatever those of their
// symbols are. It knows what bounds remainders and sums of them, such as random numbers
// below something are; Z3 does not decide that where products are below.
type ranges map[*symbolic.Expr]span

// contingent are the terms that do not hold for all values of their symbols, as far as
// spans tell.
func contingent(terms []*symbolic.Expr) []*symbolic.Expr {
	r := ranges{}
	var out []*symbolic.Expr
	for _, t := range terms {
		if !r.always(t) {
			out = append(out, t)
		}
	}
	return out
}

// always tells whether a truth holds for all values, and never whether it does for none.
func (r ranges) always(t *symbolic.Expr) bool {
	switch t.Op {
	case symbolic.Not:
		return r.never(t.A)
	case symbolic.And:
		return r.always(t.A) && r.always(t.B)
	case symbolic.ULT, symbolic.SLT:
		a, b := r.compared(t)
		return a.high != nil && a.high.Cmp(b.low) < 0
	case symbolic.ULE, symbolic.SLE:
		a, b := r.compared(t)
		return a.high != nil && a.high.Cmp(b.low) <= 0
	}
	return false
}

func (r ranges) never(t *symbolic.Expr) bool {
	switch t.Op {
	case symbolic.Not:
		return r.always(t.A)
	case symbolic.Eq:
		a, b := r.of(t.A), r.of(t.B)
		return a.high.Cmp(b.low) < 0 || b.high.Cmp(a.low) < 0
	case symbolic.ULT, symbolic.SLT:
		a, b := r.compared(t)
		return a.high != nil && b.high.Cmp(a.low) <= 0
	case symbolic.ULE, symbolic.SLE:
		a, b := r.compared(t)
		return a.high != nil && b.high.Cmp(a.low) < 0
	}
	return false
}

// compared are the spans of what is compared; nothing if it is with a sign, and a number
// may have one.
func (r ranges) compared(t *symbolic.Expr) (a, b span) {
	a, b = r.of(t.A), r.of(t.B)
	if t.Op == symbolic.ULT || t.Op == symbolic.ULE {
		return a, b
	}
	if limit := power(t.A.Bits - 1); a.high.Cmp(limit) >= 0 || b.high.Cmp(limit) >= 0 {
		return span{}, span{}
	}
	return a, b
}

var one = big.NewInt(1)

// power is a power of two, and every what numbers of some bits may be.
func power(n int) *big.Int { return new(big.Int).Lsh(one, uint(n)) }

func every(bits int) span { return span{new(big.Int), new(big.Int).Sub(power(bits), one)} }

// of is the span of an expression.
func (r ranges) of(e *symbolic.Expr) span {
	if s, known := r[e]; known {
		return s
	}
	s := r.compute(e)
	if s.low == nil || s.low.Sign() < 0 || s.high.Cmp(power(e.Bits)) >= 0 {
		s = every(e.Bits) // it may wrap
	}
	r[e] = s
	return s
}

func (r ranges) compute(e *symbolic.Expr) span {
	switch e.Op {
	case symbolic.Const:
		v := new(big.Int).SetUint64(e.Value.Hi)
		v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(e.Value.Lo))
		return span{v, v}
	case symbolic.Add:
		return r.sum(e)
	case symbolic.Sub:
		return r.difference(e)
	case symbolic.URem:
		if b := r.of(e.B); b.low.Sign() > 0 {
			return span{new(big.Int), new(big.Int).Sub(b.high, one)}
		}
	case symbolic.ZeroExt:
		return r.of(e.A)
	case symbolic.Extract:
		if a := r.of(e.A); e.Low == 0 && a.high.Cmp(power(e.Bits)) < 0 {
			return a
		}
	case symbolic.Ite:
		b, c := r.of(e.B), r.of(e.C)
		return span{least(b.low, c.low), greatest(b.high, c.high)}
	}
	return span{}
}

// sum is the span of a sum, of which one part may be a constant below zero.
func (r ranges) sum(e *symbolic.Expr) span {
	a, b := r.of(e.A), r.of(e.B)
	if e.A.IsConst() {
		a, b = b, a
	}
	if limit := power(e.Bits - 1); b.low == b.high && b.low.Cmp(limit) >= 0 {
		minus := new(big.Int).Sub(b.low, power(e.Bits))
		b = span{minus, minus}
	}
	return span{new(big.Int).Add(a.low, b.low), new(big.Int).Add(a.high, b.high)}
}

func least(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func greatest(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

// difference is the span of a difference: that of a remainder if it is how compilers
// compute one.
func (r ranges) difference(e *symbolic.Expr) span {
	if q, factor := multiple(e.B); q != nil {
		if x, d := quotient(q); x == e.A && d.Cmp(factor) == 0 {
			return span{new(big.Int), new(big.Int).Sub(d, one)}
		}
	}
	a, b := r.of(e.A), r.of(e.B)
	return span{new(big.Int).Sub(a.low, b.high), new(big.Int).Sub(a.high, b.low)}
}

// multiple takes apart a sum of one number, of which the bits above are zeros, shifted by
// several distances: the number and how many times it is.
func multiple(e *symbolic.Expr) (q *symbolic.Expr, factor *big.Int) {
	switch {
	case e.Op == symbolic.ZeroExt:
		return e.A, one
	case e.Op == symbolic.Concat && e.B.IsConst() && e.B.Value == symbolic.Value{}:
		q, factor = multiple(e.A)
		if q == nil {
			q, factor = e.A, one
		}
		return q, new(big.Int).Lsh(factor, uint(e.B.Bits))
	case e.Op == symbolic.Add:
		a, n := multiple(e.A)
		b, m := multiple(e.B)
		if a == nil || a != b {
			return nil, nil
		}
		return a, new(big.Int).Add(n, m)
	}
	return nil, nil
}

// quotient takes apart a quotient by a constant that is computed as the upper part of a
// product: x * m >> s is x / d for all x of n bits if m*d lies between 2^s and
// 2^s + 2^(s-n) (Granlund and Montgomery, Division by invariant integers using
// multiplication, 1994, theorem 4.2). Nil: it is none.
func quotient(q *symbolic.Expr) (x *symbolic.Expr, d *big.Int) {
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
	by := ranges{}.of(m).low
	if by.Sign() == 0 || by.Cmp(power(product.Bits-a.A.Bits)) > 0 {
		return nil, nil
	}
	d = new(big.Int).Add(power(s), new(big.Int).Sub(by, one))
	d.Div(d, by) // 2^s / m, rounded up
	over := new(big.Int).Sub(new(big.Int).Mul(by, d), power(s))
	if over.Cmp(power(s-a.A.Bits)) > 0 {
		return nil, nil
	}
	return a.A, d
}
