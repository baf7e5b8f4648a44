package symbolic

import "fmt"

// The functions of this file simplify expressions by cheap rules. Normal forms: constants
// are second operands; the difference with a constant is a sum; shifts by constants are
// extracts and concatenations; concatenations nest to the right; "not less" is "less or
// equal" with exchanged operands.

// orderOperands puts a constant second, otherwise the older expression first.
func orderOperands(a, b *Expr) (*Expr, *Expr) {
	if a.Op == Const || b.Op != Const && b.id < a.id {
		return b, a
	}
	return a, b
}

func checkSameSize(op Op, a, b *Expr) {
	if a.Bits != b.Bits {
		panic(fmt.Sprintf("bug: %v of %d and %d bits", op, a.Bits, b.Bits))
	}
}

// Not is the complement of a; for a truth its negation.
func (p *Pool) Not(a *Expr) *Expr {
	if p.unsimplified {
		return p.makeUnary(Expr{Op: Not, Bits: a.Bits, A: a})
	}
	switch a.Op {
	case Not:
		return a.A
	case ULT:
		return p.ULE(a.B, a.A)
	case ULE:
		return p.ULT(a.B, a.A)
	case SLT:
		return p.SLE(a.B, a.A)
	case SLE:
		return p.SLT(a.B, a.A)
	case Ite:
		if a.B.Op == Const && a.C.Op == Const {
			return p.Ite(a.A, p.Not(a.B), p.Not(a.C))
		}
	}
	return p.makeUnary(Expr{Op: Not, Bits: a.Bits, A: a})
}

// And is the bitwise conjunction.
func (p *Pool) And(a, b *Expr) *Expr {
	checkSameSize(And, a, b)
	a, b = orderOperands(a, b)
	e := Expr{Op: And, Bits: a.Bits, A: a, B: b}
	switch {
	case p.unsimplified || a.Op == Const:
		return p.makeBinary(e)
	case b.isWord(0):
		return b
	case b.isOnes() || a == b:
		return a
	case areComplements(a, b):
		return p.Word(0, a.Bits)
	case b.Op != Const:
		if x := p.combineComparisons(a, b, func(x, y int) int { return x & y }); x != nil {
			return x
		}
		return p.makeBinary(e)
	case a.Op == And && a.B.Op == Const:
		return p.And(a.A, p.Const(bitwiseAnd(a.B.Value, b.Value), a.Bits))
	}
	return p.maskWithConstant(e)
}

// areComplements reports whether one expression is the negation of the other.
func areComplements(a, b *Expr) bool { return a.Op == Not && a.A == b || b.Op == Not && b.A == a }

// maskWithConstant is a conjunction with a constant. Zeros at the top and at the bottom of
// the mask cut bits off.
func (p *Pool) maskWithConstant(e Expr) *Expr {
	a, mask, n := e.A, e.B.Value, e.Bits
	top, bottom := leadingZeros(mask, n), trailingZeros(mask, n)
	if top > 0 || bottom > 0 {
		middle := n - top - bottom
		x := p.And(p.Extract(a, bottom, middle), p.Const(shiftRight(mask, bottom), middle))
		if bottom > 0 {
			x = p.Concat(x, p.Word(0, bottom))
		}
		return p.ZeroExt(x, n)
	}
	switch a.Op {
	case Concat:
		low := a.B.Bits
		return p.Concat(p.And(a.A, p.Const(shiftRight(mask, low), n-low)), p.And(a.B, p.Const(mask, low)))
	case ZeroExt:
		return p.ZeroExt(p.And(a.A, p.Const(mask, a.A.Bits)), n)
	case Ite:
		if a.B.Op == Const && a.C.Op == Const {
			return p.Ite(a.A, p.And(a.B, e.B), p.And(a.C, e.B))
		}
	}
	return p.makeBinary(e)
}

// Or is the bitwise disjunction.
func (p *Pool) Or(a, b *Expr) *Expr {
	checkSameSize(Or, a, b)
	a, b = orderOperands(a, b)
	e := Expr{Op: Or, Bits: a.Bits, A: a, B: b}
	switch {
	case p.unsimplified || a.Op == Const:
		return p.makeBinary(e)
	case b.isWord(0) || a == b:
		return a
	case b.isOnes():
		return b
	case areComplements(a, b):
		return p.Const(allOnes(a.Bits), a.Bits)
	case a.Op == Or && a.B.Op == Const && b.Op == Const:
		return p.Or(a.A, p.Const(bitwiseOr(a.B.Value, b.Value), a.Bits))
	}
	if joined := p.orAsConcat(a, b); joined != nil {
		return joined
	}
	if x := p.combineComparisons(a, b, func(x, y int) int { return x | y }); x != nil {
		return x
	}
	return p.makeBinary(e)
}

// orAsConcat returns the disjunction of two expressions as a concatenation if the lower
// bits of one are zeros where the other has its bits; otherwise nil.
func (p *Pool) orAsConcat(a, b *Expr) *Expr {
	for range 2 {
		low := lowZeroBits(a)
		if high := a.Bits - highZeroBits(b); low > 0 && high <= low {
			return p.Concat(p.Extract(a, low, a.Bits-low), p.Extract(b, 0, low))
		}
		a, b = b, a
	}
	return nil
}

// lowZeroBits and highZeroBits count the lowest and the highest bits that are known to be
// 0.
func lowZeroBits(e *Expr) int {
	switch e.Op {
	case Const:
		return trailingZeros(e.Value, e.Bits)
	case ZeroExt:
		if n := lowZeroBits(e.A); n < e.A.Bits {
			return n
		}
		return e.Bits
	case Concat:
		if n := lowZeroBits(e.B); n < e.B.Bits {
			return n
		}
		return e.B.Bits + lowZeroBits(e.A)
	}
	return 0
}

func highZeroBits(e *Expr) int {
	switch e.Op {
	case Const:
		return leadingZeros(e.Value, e.Bits)
	case ZeroExt:
		return e.Bits - e.A.Bits + highZeroBits(e.A)
	case Concat:
		if n := highZeroBits(e.A); n < e.A.Bits {
			return n
		}
		return e.A.Bits + highZeroBits(e.B)
	}
	return 0
}

// Xor is the bitwise difference.
func (p *Pool) Xor(a, b *Expr) *Expr {
	checkSameSize(Xor, a, b)
	a, b = orderOperands(a, b)
	switch {
	case p.unsimplified || a.Op == Const:
	case a == b:
		return p.Word(0, a.Bits)
	case b.isWord(0):
		return a
	case b.isOnes():
		return p.Not(a)
	case a.Op == Xor && a.B.Op == Const && b.Op == Const:
		return p.Xor(a.A, p.Const(bitwiseXor(a.B.Value, b.Value), a.Bits))
	}
	return p.makeBinary(Expr{Op: Xor, Bits: a.Bits, A: a, B: b})
}

// Add is the sum.
func (p *Pool) Add(a, b *Expr) *Expr {
	checkSameSize(Add, a, b)
	a, b = orderOperands(a, b)
	switch {
	case p.unsimplified || a.Op == Const:
	case b.isWord(0):
		return a
	case a.Bits == 1:
		return p.Xor(a, b)
	case a.Op == Add && a.B.Op == Const && b.Op == Const:
		return p.Add(a.A, p.Const(addWrapping(a.B.Value, b.Value, a.Bits), a.Bits))
	case a.Op == Add && a.B.Op == Const:
		return p.Add(p.Add(a.A, b), a.B)
	case b.Op == Add && b.B.Op == Const:
		return p.Add(p.Add(a, b.A), b.B)
	case a.Op == Sub && a.B == b:
		return a.A
	case b.Op == Sub && b.B == a:
		return b.A
	}
	return p.makeBinary(Expr{Op: Add, Bits: a.Bits, A: a, B: b})
}

// Sub is the difference.
func (p *Pool) Sub(a, b *Expr) *Expr {
	checkSameSize(Sub, a, b)
	switch {
	case p.unsimplified:
	case a == b:
		return p.Word(0, a.Bits)
	case b.Op == Const:
		return p.Add(a, p.Const(negateWrapping(b.Value, b.Bits), b.Bits))
	case a.Op == Add && a.B == b:
		return a.A
	case a.Op == Add && a.A == b:
		return a.B
	case b.Op == Sub && b.A == a:
		return b.B
	case a.Op == Add && a.B.Op == Const:
		return p.Add(p.Sub(a.A, b), a.B)
	case b.Op == Add && b.B.Op == Const:
		return p.Add(p.Sub(a, b.A), p.Const(negateWrapping(b.B.Value, b.Bits), b.Bits))
	}
	return p.makeBinary(Expr{Op: Sub, Bits: a.Bits, A: a, B: b})
}

// Neg is 0 less a.
func (p *Pool) Neg(a *Expr) *Expr { return p.Sub(p.Word(0, a.Bits), a) }

// Mul is the product.
func (p *Pool) Mul(a, b *Expr) *Expr {
	checkSameSize(Mul, a, b)
	a, b = orderOperands(a, b)
	switch {
	case p.unsimplified || a.Op == Const:
	case b.isWord(0):
		return b
	case b.isWord(1):
		return a
	case a.Bits == 1:
		return p.And(a, b)
	case a.Op == Mul && a.B.Op == Const && b.Op == Const:
		return p.Mul(a.A, p.Const(multiplyWrapping(a.B.Value, b.Value, a.Bits), a.Bits))
	case b.Op == Const && shiftLeft(wordValue(1), trailingZeros(b.Value, b.Bits), b.Bits) == b.Value:
		return p.Shl(a, p.Word(uint64(trailingZeros(b.Value, b.Bits)), a.Bits))
	}
	return p.makeBinary(Expr{Op: Mul, Bits: a.Bits, A: a, B: b})
}

// Div makes one of the four divisions.
func (p *Pool) Div(op Op, a, b *Expr) *Expr {
	checkSameSize(op, a, b)
	if !p.unsimplified && a.Bits > 1 && b.isWord(1) {
		if op == UDiv || op == SDiv {
			return a
		}
		return p.Word(0, a.Bits)
	}
	return p.makeBinary(Expr{Op: op, Bits: a.Bits, A: a, B: b})
}

// Shl shifts a left by b, which has the same size.
func (p *Pool) Shl(a, b *Expr) *Expr {
	by, ok := p.shiftDistance(a, b)
	switch {
	case ok && by == 0:
		return a
	case ok && by < a.Bits:
		return p.Concat(p.Extract(a, 0, a.Bits-by), p.Word(0, by))
	case ok:
		return p.Word(0, a.Bits)
	}
	return p.makeBinary(Expr{Op: Shl, Bits: a.Bits, A: a, B: b})
}

// LShr shifts a right by b and fills with zeros.
func (p *Pool) LShr(a, b *Expr) *Expr {
	by, ok := p.shiftDistance(a, b)
	switch {
	case ok && by == 0:
		return a
	case ok && by < a.Bits:
		return p.ZeroExt(p.Extract(a, by, a.Bits-by), a.Bits)
	case ok:
		return p.Word(0, a.Bits)
	}
	return p.makeBinary(Expr{Op: LShr, Bits: a.Bits, A: a, B: b})
}

// AShr shifts a right by b and fills with the sign.
func (p *Pool) AShr(a, b *Expr) *Expr {
	if by, ok := p.shiftDistance(a, b); ok {
		by = min(by, a.Bits-1)
		return p.SignExt(p.Extract(a, by, a.Bits-by), a.Bits)
	}
	return p.makeBinary(Expr{Op: AShr, Bits: a.Bits, A: a, B: b})
}

// shiftDistance returns the shift distance if it is a constant and simplification is on.
func (p *Pool) shiftDistance(a, b *Expr) (int, bool) {
	checkSameSize(Shl, a, b)
	if p.unsimplified || b.Op != Const {
		return 0, false
	}
	return shiftAmount(b.Value), true
}

// Ite is b if the truth c is 1, otherwise d.
func (p *Pool) Ite(c, b, d *Expr) *Expr {
	checkSameSize(Ite, b, d)
	e := Expr{Op: Ite, Bits: b.Bits, A: c, B: b, C: d}
	switch {
	case c.Op == Const && c.Value.Lo != 0 || b == d:
		return b
	case c.Op == Const:
		return d
	case p.unsimplified:
		return p.intern(e)
	case c.Op == Not:
		return p.Ite(c.A, d, b)
	case b.Bits == 1 && b.Op == Const && d.Op == Const:
		if b.Value.Lo != 0 {
			return c
		}
		return p.Not(c)
	case b.Bits == 1 && d.isWord(0):
		return p.And(c, b)
	case b.Bits == 1 && b.isWord(1):
		return p.Or(c, d)
	case b.isWord(0) && p.combineComparisons(c, d, func(x, y int) int { return y &^ x }) != nil:
		return p.combineComparisons(c, d, func(x, y int) int { return y &^ x })
	case b.Op == Ite && b.A == c:
		return p.Ite(c, b.B, d)
	case d.Op == Ite && d.A == c:
		return p.Ite(c, b, d.C)
	case isRedundantCase(c, b, d):
		return d
	}
	return p.intern(e)
}

// isRedundantCase reports whether "if x = k then k else d" is d, because d is x for all x
// below a number above k. Such an expression comes from min(x, number).
func isRedundantCase(c, b, d *Expr) bool {
	if c.Op != Eq || b.Op != Const || c.B != b || d.Op != Ite || d.A.Op != ULT {
		return false
	}
	x, limit := c.A, d.A.B
	return d.A.A == x && d.B == x && limit.Op == Const && lessUnsigned(b.Value, limit.Value)
}

// Count is Clz or Ctz; of 0 it is the size.
func (p *Pool) Count(op Op, a *Expr) *Expr { return p.makeUnary(Expr{Op: op, Bits: a.Bits, A: a}) }

// Float makes a floating-point operation; b is nil if it has one operand. Bits is the size
// of the result.
func (p *Pool) Float(op Op, mode Mode, bits int, a, b *Expr) *Expr {
	e := Expr{Op: op, Mode: mode, Bits: bits, A: a, B: b}
	if b == nil {
		return p.makeUnary(e)
	}
	return p.makeBinary(e)
}

// rebuildWith makes the operation of e with other operands.
func (p *Pool) rebuildWith(e, a, b, c *Expr) *Expr {
	switch e.Op {
	case Not:
		return p.Not(a)
	case Extract:
		return p.Extract(a, e.Low, e.Bits)
	case ZeroExt:
		return p.ZeroExt(a, e.Bits)
	case SignExt:
		return p.SignExt(a, e.Bits)
	case Ite:
		return p.Ite(a, b, c)
	case UDiv, URem, SDiv, SRem:
		return p.Div(e.Op, a, b)
	case Clz, Ctz:
		return p.Count(e.Op, a)
	}
	if e.Op >= FAdd {
		return p.Float(e.Op, e.Mode, e.Bits, a, b)
	}
	return map[Op]func(a, b *Expr) *Expr{
		Concat: p.Concat, And: p.And, Or: p.Or, Xor: p.Xor, Add: p.Add, Sub: p.Sub, Mul: p.Mul, Shl: p.Shl, LShr: p.LShr,
		AShr: p.AShr, Eq: p.Eq, ULT: p.ULT, ULE: p.ULE, SLT: p.SLT, SLE: p.SLE,
	}[e.Op](a, b)
}
