package symbolic

import "slices"

// Eq is the truth that a and b are equal.
func (p *Pool) Eq(a, b *Expr) *Expr {
	checkSameSize(Eq, a, b)
	a, b = orderOperands(a, b)
	e := Expr{Op: Eq, Bits: 1, A: a, B: b}
	switch {
	case p.unsimplified || a.Op == Const:
		return p.makeBinary(e)
	case a == b:
		return p.Bool(true)
	case a.Bits == 1 && b.isWord(1):
		return a
	case a.Bits == 1 && b.isWord(0):
		return p.Not(a)
	case b.Op == Const:
		return p.equalsConstant(e)
	case a.Op == ZeroExt && b.Op == ZeroExt && a.A.Bits == b.A.Bits, a.Op == SignExt && b.Op == SignExt && a.A.Bits == b.A.Bits:
		return p.Eq(a.A, b.A)
	case a.Op == Add && b.Op == Add && a.B == b.B:
		return p.Eq(a.A, b.A)
	case a.Op == Add && b.Op == Add:
		if x, y, some := p.cancelAddends(a, b); some {
			return p.Eq(x, y)
		}
	case a.Op == SignExt || b.Op == SignExt:
		if n := max(signedBits(a), signedBits(b)); n < a.Bits {
			return p.Eq(p.Extract(a, 0, n), p.Extract(b, 0, n))
		}
	}
	return p.makeBinary(e)
}

// cancelAddends removes the common addends of two sums; some is false if they have none.
func (p *Pool) cancelAddends(a, b *Expr) (x, y *Expr, some bool) {
	left, right := collectAddends(a, nil), collectAddends(b, nil)
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
	return p.sumOfAddends(left, a.Bits), p.sumOfAddends(right, a.Bits), true
}

// maxAddends is the most addends of a sum that are compared.
const maxAddends = 16

// collectAddends appends the addends of a sum to a list.
func collectAddends(e *Expr, list []*Expr) []*Expr {
	if e.Op != Add || len(list) >= maxAddends {
		return append(list, e)
	}
	return collectAddends(e.B, collectAddends(e.A, list))
}

// sumOfAddends is the sum of a list of expressions.
func (p *Pool) sumOfAddends(list []*Expr, bits int) *Expr {
	sum := p.Word(0, bits)
	for _, e := range list {
		sum = p.Add(sum, e)
	}
	return sum
}

// equalsConstant simplifies an equality with a constant.
func (p *Pool) equalsConstant(e Expr) *Expr {
	a, b, v, n := e.A, e.B, e.B.Value, e.A.Bits
	switch a.Op {
	case ZeroExt, SignExt:
		inner := p.Const(v, a.A.Bits)
		if wide := p.rebuildWith(a, inner, nil, nil); wide != b {
			return p.Bool(false)
		}
		return p.Eq(a.A, inner)
	case Add:
		if a.B.Op == Const {
			return p.Eq(a.A, p.Const(subtractWrapping(v, a.B.Value, n), n))
		}
	case Sub:
		if isZero(v) {
			return p.Eq(a.A, a.B)
		}
		if a.A.Op == Const {
			return p.Eq(a.B, p.Const(subtractWrapping(a.A.Value, v, n), n))
		}
	case Xor:
		if a.B.Op == Const {
			return p.Eq(a.A, p.Const(bitwiseXor(a.B.Value, v), n))
		}
		if isZero(v) {
			return p.Eq(a.A, a.B)
		}
	case Not:
		return p.Eq(a.A, p.Const(complementBits(v, n), n))
	case Concat:
		low := a.B.Bits
		return p.And(p.Eq(a.A, p.Const(shiftRight(v, low), n-low)), p.Eq(a.B, p.Const(v, low)))
	case Ite:
		if (a.B.Op == Const || a.C.Op == Const) && a.Size() <= maxDistributedSize {
			return p.Ite(a.A, p.Eq(a.B, b), p.Eq(a.C, b))
		}
	}
	return p.makeBinary(e)
}

// ULT is the truth that a is less than b, both unsigned.
func (p *Pool) ULT(a, b *Expr) *Expr {
	checkSameSize(ULT, a, b)
	switch {
	case p.unsimplified:
	case a == b || b.isWord(0):
		return p.Bool(false)
	case b.isWord(1):
		return p.Eq(a, p.Word(0, a.Bits))
	case a.isWord(0):
		return p.Not(p.Eq(b, a))
	case b.isOnes():
		return p.Not(p.Eq(a, b))
	case a.isOnes():
		return p.Bool(false)
	default:
		if x, y, verdict := p.narrowUnsigned(a, b); x != nil {
			return p.ULT(x, y)
		} else if verdict != nil {
			return verdict
		}
	}
	return p.makeBinary(Expr{Op: ULT, Bits: 1, A: a, B: b})
}

// ULE is the truth that a is less than or equal to b, both unsigned.
func (p *Pool) ULE(a, b *Expr) *Expr {
	checkSameSize(ULE, a, b)
	switch {
	case p.unsimplified:
	case a == b || a.isWord(0) || b.isOnes():
		return p.Bool(true)
	case b.isWord(0):
		return p.Eq(a, b)
	case a.isOnes():
		return p.Eq(b, a)
	case a.Op == Const && b.Op == Const:
	case b.Op == Const:
		return p.ULT(a, p.Const(addWrapping(b.Value, wordValue(1), b.Bits), b.Bits))
	case a.Op == Const:
		return p.ULT(p.Const(subtractWrapping(a.Value, wordValue(1), a.Bits), a.Bits), b)
	default:
		if x, y, _ := p.narrowUnsigned(a, b); x != nil {
			return p.ULE(x, y)
		}
	}
	return p.makeBinary(Expr{Op: ULE, Bits: 1, A: a, B: b})
}

// narrowUnsigned removes common zeros at the tops of the two sides of an unsigned
// comparison. The verdict is the comparison's if one side is a constant out of the other's
// range.
func (p *Pool) narrowUnsigned(a, b *Expr) (x, y, verdict *Expr) {
	zeros := min(highZeroBits(a), highZeroBits(b))
	switch {
	case a.Op == ZeroExt && b.Op == Const && highZeroBits(b) < a.Bits-a.A.Bits:
		return nil, nil, p.Bool(true)
	case b.Op == ZeroExt && a.Op == Const && highZeroBits(a) < b.Bits-b.A.Bits:
		return nil, nil, p.Bool(false)
	case zeros > 0 && zeros < a.Bits && (a.Op != Const || b.Op != Const):
		n := a.Bits - zeros
		return p.Extract(a, 0, n), p.Extract(b, 0, n), nil
	}
	return nil, nil, nil
}

// SLT is the truth that a is less than b, both signed.
func (p *Pool) SLT(a, b *Expr) *Expr {
	checkSameSize(SLT, a, b)
	switch {
	case p.unsimplified || a.Op == Const && b.Op == Const:
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
	return p.makeBinary(Expr{Op: SLT, Bits: 1, A: a, B: b})
}

// SLE is the truth that a is less than or equal to b, both signed.
func (p *Pool) SLE(a, b *Expr) *Expr {
	checkSameSize(SLE, a, b)
	n := a.Bits
	switch {
	case p.unsimplified || a.Op == Const && b.Op == Const:
	case a == b:
		return p.Bool(true)
	case b.Op == Const && b.Value == shiftRight(allOnes(n), 1), a.Op == Const && a.Value == shiftLeft(wordValue(1), n-1, n):
		return p.Bool(true)
	case b.Op == Const:
		return p.SLT(a, p.Const(addWrapping(b.Value, wordValue(1), n), n))
	case a.Op == Const:
		return p.SLT(p.Const(subtractWrapping(a.Value, wordValue(1), n), n), b)
	default:
		if x, y, same := p.narrowSigned(a, b); x != nil {
			if same {
				return p.SLE(x, y)
			}
			return p.ULE(x, y)
		}
	}
	return p.makeBinary(Expr{Op: SLE, Bits: 1, A: a, B: b})
}

// narrowSigned removes the common widening of both sides of a signed comparison. Same is
// set if the narrower comparison is signed; otherwise neither side is negative.
func (p *Pool) narrowSigned(a, b *Expr) (x, y *Expr, same bool) {
	if highZeroBits(a) > 0 && highZeroBits(b) > 0 {
		n := a.Bits - min(highZeroBits(a), highZeroBits(b))
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

// signedBits returns a size that is enough to represent an expression with its sign.
func signedBits(e *Expr) int {
	switch e.Op {
	case SignExt:
		return e.A.Bits
	case ZeroExt:
		return e.A.Bits + 1
	case Concat:
		return signedBits(e.A) + e.B.Bits
	case SDiv:
		// Only a division by -1 can make the quotient longer than the dividend.
		if e.B.Op == Const && !bitAt(e.B.Value, e.Bits-1) && !isZero(e.B.Value) {
			return signedBits(e.A)
		}
		return min(signedBits(e.A)+1, e.Bits)
	case Const:
		n := e.Bits
		for n > 1 && bitAt(e.Value, n-1) == bitAt(e.Value, n-2) {
			n--
		}
		return n
	}
	return e.Bits
}
