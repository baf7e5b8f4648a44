package symbolic

// Extract is n bits of a from bit low on.
func (p *Pool) Extract(a *Expr, low, n int) *Expr {
	e := Expr{Op: Extract, Bits: n, A: a, Low: low}
	switch {
	case n == a.Bits:
		return a
	case p.plain || a.Op == Const:
		return p.op1(e)
	}
	switch a.Op {
	case Extract:
		return p.Extract(a.A, a.Low+low, n)
	case Concat:
		return p.extractConcat(a, low, n)
	case ZeroExt:
		switch inner := a.A.Bits; {
		case low >= inner:
			return p.Word(0, n)
		case low+n <= inner:
			return p.Extract(a.A, low, n)
		default:
			return p.ZeroExt(p.Extract(a.A, low, inner-low), n)
		}
	case SignExt:
		switch inner := a.A.Bits; {
		case low+n <= inner:
			return p.Extract(a.A, low, n)
		case low >= inner:
			return p.SignExt(p.Extract(a.A, inner-1, 1), n)
		default:
			return p.SignExt(p.Extract(a.A, low, inner-low), n)
		}
	}
	if a.Size() <= small {
		if x := p.extractWithin(a, low, n); x != nil {
			return x
		}
	}
	return p.op1(e)
}

// small is the size of expressions that rules take apart which make several of
// one: without a limit they would visit common parts again and again.
const small = 100

// extractWithin takes the bits of the operands, or is nil.
func (p *Pool) extractWithin(a *Expr, low, n int) *Expr {
	switch a.Op {
	case Not:
		return p.Not(p.Extract(a.A, low, n))
	case And, Or, Xor:
		return p.rebuild(&Expr{Op: a.Op}, p.Extract(a.A, low, n), p.Extract(a.B, low, n), nil)
	case Add, Sub, Mul:
		if low == 0 {
			return p.rebuild(&Expr{Op: a.Op}, p.Extract(a.A, 0, n), p.Extract(a.B, 0, n), nil)
		}
	case UDiv, URem, SDiv, SRem:
		if low == 0 && fitsDivision(a, n) {
			return p.Div(a.Op, p.Extract(a.A, 0, n), p.Extract(a.B, 0, n))
		}
	case Ite:
		if a.B.Op == Const || a.C.Op == Const {
			return p.Ite(a.A, p.Extract(a.B, low, n), p.Extract(a.C, low, n))
		}
	}
	return nil
}

// fitsDivision tells whether both operands of a division are numbers of n bits that
// were widened: then n bits give the lower n bits of the result, also for the
// divisor 0 and for the least number by -1.
func fitsDivision(e *Expr, n int) bool {
	if e.Op == SDiv || e.Op == SRem {
		return signedBits(e.A) <= n && signedBits(e.B) <= n
	}
	return e.Bits-zerosAbove(e.A) <= n && e.Bits-zerosAbove(e.B) <= n
}

func (p *Pool) extractConcat(a *Expr, low, n int) *Expr {
	switch border := a.B.Bits; {
	case low >= border:
		return p.Extract(a.A, low-border, n)
	case low+n <= border:
		return p.Extract(a.B, low, n)
	default:
		return p.Concat(p.Extract(a.A, 0, low+n-border), p.Extract(a.B, low, border-low))
	}
}

// Concat has a above b.
func (p *Pool) Concat(a, b *Expr) *Expr {
	e := Expr{Op: Concat, Bits: a.Bits + b.Bits, A: a, B: b}
	switch {
	case p.plain:
	case a.is(0):
		return p.ZeroExt(b, e.Bits)
	case a.Op == Concat:
		return p.Concat(a.A, p.Concat(a.B, b))
	case a.Op == ZeroExt:
		return p.ZeroExt(p.Concat(a.A, b), e.Bits)
	case b.Op == Concat:
		if m := p.merged(a, b.A); m != nil {
			return p.Concat(m, b.B)
		}
	default:
		if m := p.merged(a, b); m != nil {
			return m
		}
	}
	return p.op2(e)
}

// merged is the concatenation of neighbouring parts of one expression, of
// constants, or of copies of a sign, or nil.
func (p *Pool) merged(a, b *Expr) *Expr {
	switch {
	case a.Op == Const && b.Op == Const:
		return p.op2(Expr{Op: Concat, Bits: a.Bits + b.Bits, A: a, B: b})
	case a.Op == Extract && b.Op == Extract && a.A == b.A && a.Low == b.Low+b.Bits:
		return p.Extract(a.A, b.Low, a.Bits+b.Bits)
	case a.Op == SignExt && a.A.Bits == 1 && a.A == p.Extract(b, b.Bits-1, 1):
		return p.SignExt(b, a.Bits+b.Bits)
	}
	return nil
}

// ZeroExt widens a to n bits with zeros, SignExt with the sign.
func (p *Pool) ZeroExt(a *Expr, n int) *Expr {
	switch {
	case n == a.Bits:
		return a
	case p.plain:
	case a.Op == ZeroExt:
		return p.ZeroExt(a.A, n)
	case a.Op == Ite && a.B.Op == Const && a.C.Op == Const && a.Bits > 1:
		return p.Ite(a.A, p.ZeroExt(a.B, n), p.ZeroExt(a.C, n))
	}
	return p.op1(Expr{Op: ZeroExt, Bits: n, A: a})
}

// SignExt widens a to n bits with its sign.
func (p *Pool) SignExt(a *Expr, n int) *Expr {
	switch {
	case n == a.Bits:
		return a
	case p.plain:
	case a.Op == SignExt:
		return p.SignExt(a.A, n)
	case a.Op == ZeroExt:
		return p.ZeroExt(a.A, n)
	case a.Op == Ite && a.B.Op == Const && a.C.Op == Const:
		return p.Ite(a.A, p.SignExt(a.B, n), p.SignExt(a.C, n))
	}
	return p.op1(Expr{Op: SignExt, Bits: n, A: a})
}
