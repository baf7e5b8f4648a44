package symbolic

import "fmt"

// The functions of this file make expressions as simple as cheap rules make
// them. Normal forms: constants are second operands; a difference with a constant
// is a sum; shifts by constants are extracts and concatenations; concatenations
// lean to the right; "not less" is "less or equal" the other way round.

// ordered puts a constant second, otherwise the older expression first.
func ordered(a, b *Expr) (*Expr, *Expr) {
	if a.Op == Const || b.Op != Const && b.id < a.id {
		return b, a
	}
	return a, b
}

func sameSize(op Op, a, b *Expr) {
	if a.Bits != b.Bits {
		panic(fmt.Sprintf("bug: %v of %d and %d bits", op, a.Bits, b.Bits))
	}
}

// Not is the complement of a; of a truth, its negation.
func (p *Pool) Not(a *Expr) *Expr {
	if p.plain {
		return p.op1(Expr{Op: Not, Bits: a.Bits, A: a})
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
	return p.op1(Expr{Op: Not, Bits: a.Bits, A: a})
}

// And is the bitwise conjunction.
func (p *Pool) And(a, b *Expr) *Expr {
	sameSize(And, a, b)
	a, b = ordered(a, b)
	e := Expr{Op: And, Bits: a.Bits, A: a, B: b}
	switch {
	case p.plain || a.Op == Const:
		return p.op2(e)
	case b.is(0):
		return b
	case b.isOnes() || a == b:
		return a
	case complements(a, b):
		return p.Word(0, a.Bits)
	case b.Op != Const:
		if x := p.joinedOutcomes(a, b, func(x, y int) int { return x & y }); x != nil {
			return x
		}
		return p.op2(e)
	case a.Op == And && a.B.Op == Const:
		return p.And(a.A, p.Const(and(a.B.Value, b.Value), a.Bits))
	}
	return p.masked(e)
}

// complements tells whether one is the negation of the other.
func complements(a, b *Expr) bool { return a.Op == Not && a.A == b || b.Op == Not && b.A == a }

// masked is a conjunction with a constant. Zeros at the top and at the bottom are
// bits that are not there.
func (p *Pool) masked(e Expr) *Expr {
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
	return p.op2(e)
}

// Or is the bitwise disjunction.
func (p *Pool) Or(a, b *Expr) *Expr {
	sameSize(Or, a, b)
	a, b = ordered(a, b)
	e := Expr{Op: Or, Bits: a.Bits, A: a, B: b}
	switch {
	case p.plain || a.Op == Const:
		return p.op2(e)
	case b.is(0) || a == b:
		return a
	case b.isOnes():
		return b
	case complements(a, b):
		return p.Const(ones(a.Bits), a.Bits)
	case a.Op == Or && a.B.Op == Const && b.Op == Const:
		return p.Or(a.A, p.Const(or(a.B.Value, b.Value), a.Bits))
	}
	if joined := p.joined(a, b); joined != nil {
		return joined
	}
	if x := p.joinedOutcomes(a, b, func(x, y int) int { return x | y }); x != nil {
		return x
	}
	return p.op2(e)
}

// joined is the disjunction of two expressions, one of which has zeros at the
// bottom where the other has its bits: their concatenation. nil: it is not so.
func (p *Pool) joined(a, b *Expr) *Expr {
	for range 2 {
		low := zerosBelow(a)
		if high := a.Bits - zerosAbove(b); low > 0 && high <= low {
			return p.Concat(p.Extract(a, low, a.Bits-low), p.Extract(b, 0, low))
		}
		a, b = b, a
	}
	return nil
}

// zerosBelow and zerosAbove are how many bits are known to be 0.
func zerosBelow(e *Expr) int {
	switch e.Op {
	case Const:
		return trailingZeros(e.Value, e.Bits)
	case ZeroExt:
		if n := zerosBelow(e.A); n < e.A.Bits {
			return n
		}
		return e.Bits
	case Concat:
		if n := zerosBelow(e.B); n < e.B.Bits {
			return n
		}
		return e.B.Bits + zerosBelow(e.A)
	}
	return 0
}

func zerosAbove(e *Expr) int {
	switch e.Op {
	case Const:
		return leadingZeros(e.Value, e.Bits)
	case ZeroExt:
		return e.Bits - e.A.Bits + zerosAbove(e.A)
	case Concat:
		if n := zerosAbove(e.A); n < e.A.Bits {
			return n
		}
		return e.A.Bits + zerosAbove(e.B)
	}
	return 0
}

// Xor is the bitwise difference.
func (p *Pool) Xor(a, b *Expr) *Expr {
	sameSize(Xor, a, b)
	a, b = ordered(a, b)
	switch {
	case p.plain || a.Op == Const:
	case a == b:
		return p.Word(0, a.Bits)
	case b.is(0):
		return a
	case b.isOnes():
		return p.Not(a)
	case a.Op == Xor && a.B.Op == Const && b.Op == Const:
		return p.Xor(a.A, p.Const(xor(a.B.Value, b.Value), a.Bits))
	}
	return p.op2(Expr{Op: Xor, Bits: a.Bits, A: a, B: b})
}

// Add is the sum.
func (p *Pool) Add(a, b *Expr) *Expr {
	sameSize(Add, a, b)
	a, b = ordered(a, b)
	switch {
	case p.plain || a.Op == Const:
	case b.is(0):
		return a
	case a.Bits == 1:
		return p.Xor(a, b)
	case a.Op == Add && a.B.Op == Const && b.Op == Const:
		return p.Add(a.A, p.Const(add(a.B.Value, b.Value, a.Bits), a.Bits))
	case a.Op == Add && a.B.Op == Const:
		return p.Add(p.Add(a.A, b), a.B)
	case b.Op == Add && b.B.Op == Const:
		return p.Add(p.Add(a, b.A), b.B)
	case a.Op == Sub && a.B == b:
		return a.A
	case b.Op == Sub && b.B == a:
		return b.A
	}
	return p.op2(Expr{Op: Add, Bits: a.Bits, A: a, B: b})
}

// Sub is the difference.
func (p *Pool) Sub(a, b *Expr) *Expr {
	sameSize(Sub, a, b)
	switch {
	case p.plain:
	case a == b:
		return p.Word(0, a.Bits)
	case b.Op == Const:
		return p.Add(a, p.Const(negate(b.Value, b.Bits), b.Bits))
	case a.Op == Add && a.B == b:
		return a.A
	case a.Op == Add && a.A == b:
		return a.B
	case b.Op == Sub && b.A == a:
		return b.B
	case a.Op == Add && a.B.Op == Const:
		return p.Add(p.Sub(a.A, b), a.B)
	case b.Op == Add && b.B.Op == Const:
		return p.Add(p.Sub(a, b.A), p.Const(negate(b.B.Value, b.Bits), b.Bits))
	}
	return p.op2(Expr{Op: Sub, Bits: a.Bits, A: a, B: b})
}

// Neg is 0 less a.
func (p *Pool) Neg(a *Expr) *Expr { return p.Sub(p.Word(0, a.Bits), a) }

// Mul is the product.
func (p *Pool) Mul(a, b *Expr) *Expr {
	sameSize(Mul, a, b)
	a, b = ordered(a, b)
	switch {
	case p.plain || a.Op == Const:
	case b.is(0):
		return b
	case b.is(1):
		return a
	case a.Bits == 1:
		return p.And(a, b)
	case a.Op == Mul && a.B.Op == Const && b.Op == Const:
		return p.Mul(a.A, p.Const(mul(a.B.Value, b.Value, a.Bits), a.Bits))
	case b.Op == Const && shiftLeft(word(1), trailingZeros(b.Value, b.Bits), b.Bits) == b.Value:
		return p.Shl(a, p.Word(uint64(trailingZeros(b.Value, b.Bits)), a.Bits))
	}
	return p.op2(Expr{Op: Mul, Bits: a.Bits, A: a, B: b})
}

// Div makes one of the four divisions.
func (p *Pool) Div(op Op, a, b *Expr) *Expr {
	sameSize(op, a, b)
	if !p.plain && a.Bits > 1 && b.is(1) {
		if op == UDiv || op == SDiv {
			return a
		}
		return p.Word(0, a.Bits)
	}
	return p.op2(Expr{Op: op, Bits: a.Bits, A: a, B: b})
}

// Shl, LShr and AShr shift a by b, which has the same size.
func (p *Pool) Shl(a, b *Expr) *Expr {
	by, ok := p.distance(a, b)
	switch {
	case ok && by == 0:
		return a
	case ok && by < a.Bits:
		return p.Concat(p.Extract(a, 0, a.Bits-by), p.Word(0, by))
	case ok:
		return p.Word(0, a.Bits)
	}
	return p.op2(Expr{Op: Shl, Bits: a.Bits, A: a, B: b})
}

// LShr fills with zeros.
func (p *Pool) LShr(a, b *Expr) *Expr {
	by, ok := p.distance(a, b)
	switch {
	case ok && by == 0:
		return a
	case ok && by < a.Bits:
		return p.ZeroExt(p.Extract(a, by, a.Bits-by), a.Bits)
	case ok:
		return p.Word(0, a.Bits)
	}
	return p.op2(Expr{Op: LShr, Bits: a.Bits, A: a, B: b})
}

// AShr fills with the sign.
func (p *Pool) AShr(a, b *Expr) *Expr {
	if by, ok := p.distance(a, b); ok {
		by = min(by, a.Bits-1)
		return p.SignExt(p.Extract(a, by, a.Bits-by), a.Bits)
	}
	return p.op2(Expr{Op: AShr, Bits: a.Bits, A: a, B: b})
}

// distance is by how much to shift, if that is a constant and the rules are to be
// applied.
func (p *Pool) distance(a, b *Expr) (int, bool) {
	sameSize(Shl, a, b)
	if p.plain || b.Op != Const {
		return 0, false
	}
	return shiftAmount(b.Value), true
}

// Ite is b if the truth c is 1, otherwise d.
func (p *Pool) Ite(c, b, d *Expr) *Expr {
	sameSize(Ite, b, d)
	e := Expr{Op: Ite, Bits: b.Bits, A: c, B: b, C: d}
	switch {
	case c.Op == Const && c.Value.Lo != 0 || b == d:
		return b
	case c.Op == Const:
		return d
	case p.plain:
		return p.intern(e)
	case c.Op == Not:
		return p.Ite(c.A, d, b)
	case b.Bits == 1 && b.Op == Const && d.Op == Const:
		if b.Value.Lo != 0 {
			return c
		}
		return p.Not(c)
	case b.Bits == 1 && d.is(0):
		return p.And(c, b)
	case b.Bits == 1 && b.is(1):
		return p.Or(c, d)
	case b.is(0) && p.joinedOutcomes(c, d, func(x, y int) int { return y &^ x }) != nil:
		return p.joinedOutcomes(c, d, func(x, y int) int { return y &^ x })
	case b.Op == Ite && b.A == c:
		return p.Ite(c, b.B, d)
	case d.Op == Ite && d.A == c:
		return p.Ite(c, b, d.C)
	case lesser(c, b, d):
		return d
	}
	return p.intern(e)
}

// lesser tells of "if x = k then k else d" that it is d: if x is below a number, which is
// above k, then x, otherwise something else. It is what min(x, number) becomes.
func lesser(c, b, d *Expr) bool {
	if c.Op != Eq || b.Op != Const || c.B != b || d.Op != Ite || d.A.Op != ULT {
		return false
	}
	x, limit := c.A, d.A.B
	return d.A.A == x && d.B == x && limit.Op == Const && less(b.Value, limit.Value)
}

// Count is Clz or Ctz; of 0 it is the size.
func (p *Pool) Count(op Op, a *Expr) *Expr { return p.op1(Expr{Op: op, Bits: a.Bits, A: a}) }

// Float makes an operation of floating point: b is nil if it has one operand.
// Bits is the size of the result.
func (p *Pool) Float(op Op, mode Mode, bits int, a, b *Expr) *Expr {
	e := Expr{Op: op, Mode: mode, Bits: bits, A: a, B: b}
	if b == nil {
		return p.op1(e)
	}
	return p.op2(e)
}

// rebuild makes the operation of e with other operands.
func (p *Pool) rebuild(e, a, b, c *Expr) *Expr {
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
