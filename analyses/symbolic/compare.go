package symbolic

import "slices"

// Eq tells whether a and b are equal.
func (p *Pool) Eq(a, b *Expr) *Expr {
	sameSize(Eq, a, b)
	a, b = ordered(a, b)
	e := Expr{Op: Eq, Bits: 1, A: a, B: b}
	switch {
	case p.plain || a.Op == Const:
		return p.op2(e)
	case a == b:
		return p.Bool(true)
	case a.Bits == 1 && b.is(1):
		return a
	case a.Bits == 1 && b.is(0):
		return p.Not(a)
	case b.Op == Const:
		return p.equals(e)
	case a.Op == ZeroExt && b.Op == ZeroExt && a.A.Bits == b.A.Bits, a.Op == SignExt && b.Op == SignExt && a.A.Bits == b.A.Bits:
		return p.Eq(a.A, b.A)
	case a.Op == Add && b.Op == Add && a.B == b.B:
		return p.Eq(a.A, b.A)
	case a.Op == Add && b.Op == Add:
		if x, y, some := p.cancel(a, b); some {
			return p.Eq(x, y)
		}
	case a.Op == SignExt || b.Op == SignExt:
		if n := max(signedBits(a), signedBits(b)); n < a.Bits {
			return p.Eq(p.Extract(a, 0, n), p.Extract(b, 0, n))
		}
	}
	return p.op2(e)
}

// cancel takes out of two sums what is added in both, if something is.
func (p *Pool) cancel(a, b *Expr) (x, y *Expr, some bool) {
	left, right := addends(a, nil), addends(b, nil)
	for i := 0; i < len(left); {
		k := slices.Index(right, left[i])
		if k < 0 {
			i++
			continue
		}
		left, right, some = slices.Delete(left, i, i+1), slices.Delete(right, k, k+1), true
	}
	if !some {
		return a, b, false
	}
	return p.added(left, a.Bits), p.added(right, a.Bits), true
}

// mostAddends is how many are looked for in a sum.
const mostAddends = 16

// addends adds what a sum is of to a list.
func addends(e *Expr, list []*Expr) []*Expr {
	if e.Op != Add || len(list) >= mostAddends {
		return append(list, e)
	}
	return addends(e.B, addends(e.A, list))
}

// added is the sum of some expressions.
func (p *Pool) added(list []*Expr, bits int) *Expr {
	sum := p.Word(0, bits)
	for _, e := range list {
		sum = p.Add(sum, e)
	}
	return sum
}

// equals compares with a constant.
func (p *Pool) equals(e Expr) *Expr {
	a, b, v, n := e.A, e.B, e.B.Value, e.A.Bits
	switch a.Op {
	case ZeroExt, SignExt:
		inner := p.Const(v, a.A.Bits)
		if wide := p.rebuild(a, inner, nil, nil); wide != b {
			return p.Bool(false)
		}
		return p.Eq(a.A, inner)
	case Add:
		if a.B.Op == Const {
			return p.Eq(a.A, p.Const(sub(v, a.B.Value, n), n))
		}
	case Sub:
		if isZero(v) {
			return p.Eq(a.A, a.B)
		}
		if a.A.Op == Const {
			return p.Eq(a.B, p.Const(sub(a.A.Value, v, n), n))
		}
	case Xor:
		if a.B.Op == Const {
			return p.Eq(a.A, p.Const(xor(a.B.Value, v), n))
		}
		if isZero(v) {
			return p.Eq(a.A, a.B)
		}
	case Not:
		return p.Eq(a.A, p.Const(not(v, n), n))
	case Concat:
		low := a.B.Bits
		return p.And(p.Eq(a.A, p.Const(shiftRight(v, low), n-low)), p.Eq(a.B, p.Const(v, low)))
	case Ite:
		if (a.B.Op == Const || a.C.Op == Const) && a.Size() <= small {
			return p.Ite(a.A, p.Eq(a.B, b), p.Eq(a.C, b))
		}
	}
	return p.op2(e)
}

// ULT tells whether a is less than b without a sign.
func (p *Pool) ULT(a, b *Expr) *Expr {
	sameSize(ULT, a, b)
	switch {
	case p.plain:
	case a == b || b.is(0):
		return p.Bool(false)
	case b.is(1):
		return p.Eq(a, p.Word(0, a.Bits))
	case a.is(0):
		return p.Not(p.Eq(b, a))
	case b.isOnes():
		return p.Not(p.Eq(a, b))
	case a.isOnes():
		return p.Bool(false)
	default:
		if x, y, verdict := p.narrow(a, b); x != nil {
			return p.ULT(x, y)
		} else if verdict != nil {
			return verdict
		}
	}
	return p.op2(Expr{Op: ULT, Bits: 1, A: a, B: b})
}

// ULE tells whether a is less than b or equal, without a sign.
func (p *Pool) ULE(a, b *Expr) *Expr {
	sameSize(ULE, a, b)
	switch {
	case p.plain:
	case a == b || a.is(0) || b.isOnes():
		return p.Bool(true)
	case b.is(0):
		return p.Eq(a, b)
	case a.isOnes():
		return p.Eq(b, a)
	case a.Op == Const && b.Op == Const:
	case b.Op == Const:
		return p.ULT(a, p.Const(add(b.Value, word(1), b.Bits), b.Bits))
	case a.Op == Const:
		return p.ULT(p.Const(sub(a.Value, word(1), a.Bits), a.Bits), b)
	default:
		if x, y, _ := p.narrow(a, b); x != nil {
			return p.ULE(x, y)
		}
	}
	return p.op2(Expr{Op: ULE, Bits: 1, A: a, B: b})
}

// narrow takes zeros off the tops of the two sides of a comparison without a
// sign. The verdict is the comparison's, if one side is a constant that the other
// cannot reach.
func (p *Pool) narrow(a, b *Expr) (x, y, verdict *Expr) {
	zeros := min(zerosAbove(a), zerosAbove(b))
	switch {
	case a.Op == ZeroExt && b.Op == Const && zerosAbove(b) < a.Bits-a.A.Bits:
		return nil, nil, p.Bool(true)
	case b.Op == ZeroExt && a.Op == Const && zerosAbove(a) < b.Bits-b.A.Bits:
		return nil, nil, p.Bool(false)
	case zeros > 0 && zeros < a.Bits && (a.Op != Const || b.Op != Const):
		n := a.Bits - zeros
		return p.Extract(a, 0, n), p.Extract(b, 0, n), nil
	}
	return nil, nil, nil
}

// SLT tells whether a is less than b with a sign.
func (p *Pool) SLT(a, b *Expr) *Expr {
	sameSize(SLT, a, b)
	switch {
	case p.plain || a.Op == Const && b.Op == Const:
	case a == b:
		return p.Bool(false)
	default:
		if x, y, same := p.narrowSigned(a, b); x != nil {
			if same {
				return p.SLT(x, y)
			}
			return p.ULT(x, y)
		}
	}
	return p.op2(Expr{Op: SLT, Bits: 1, A: a, B: b})
}

// SLE tells whether a is less than b or equal, with a sign.
func (p *Pool) SLE(a, b *Expr) *Expr {
	sameSize(SLE, a, b)
	n := a.Bits
	switch {
	case p.plain || a.Op == Const && b.Op == Const:
	case a == b:
		return p.Bool(true)
	case b.Op == Const && b.Value == shiftRight(ones(n), 1), a.Op == Const && a.Value == shiftLeft(word(1), n-1, n):
		return p.Bool(true)
	case b.Op == Const:
		return p.SLT(a, p.Const(add(b.Value, word(1), n), n))
	case a.Op == Const:
		return p.SLT(p.Const(sub(a.Value, word(1), n), n), b)
	default:
		if x, y, same := p.narrowSigned(a, b); x != nil {
			if same {
				return p.SLE(x, y)
			}
			return p.ULE(x, y)
		}
	}
	return p.op2(Expr{Op: SLE, Bits: 1, A: a, B: b})
}

// narrowSigned takes off what both sides of a comparison were widened by. Same
// tells that it remains one with a sign; otherwise neither side is negative.
func (p *Pool) narrowSigned(a, b *Expr) (x, y *Expr, same bool) {
	if zerosAbove(a) > 0 && zerosAbove(b) > 0 {
		n := a.Bits - min(zerosAbove(a), zerosAbove(b))
		if n > 0 {
			return p.Extract(a, 0, n), p.Extract(b, 0, n), false
		}
	}
	n := max(signedBits(a), signedBits(b))
	if n < a.Bits && (a.Op == SignExt || b.Op == SignExt) {
		return p.Extract(a, 0, n), p.Extract(b, 0, n), true
	}
	return nil, nil, false
}

// signedBits is a number of bits in which an expression can be written with its
// sign.
func signedBits(e *Expr) int {
	switch e.Op {
	case SignExt:
		return e.A.Bits
	case ZeroExt:
		return e.A.Bits + 1
	case Concat:
		return signedBits(e.A) + e.B.Bits
	case SDiv:
		// Only by -1 a quotient can be longer than what is divided.
		if e.B.Op == Const && !bit(e.B.Value, e.Bits-1) && !isZero(e.B.Value) {
			return signedBits(e.A)
		}
		return min(signedBits(e.A)+1, e.Bits)
	case Const:
		n := e.Bits
		for n > 1 && bit(e.Value, n-1) == bit(e.Value, n-2) {
			n--
		}
		return n
	}
	return e.Bits
}
