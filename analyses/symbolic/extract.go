package symbolic

// Extract is n bits of a, from bit low.
func (p *Pool) Extract(a *Expr, low, n int) *Expr {
	e := Expr{Op: Extract, Bits: n, A: a, Low: low}
	switch {
	case n == a.Bits:
		return a
	case p.unsimplified || a.Op == Const:
		return p.makeUnary(e)
	}
	switch a.Op {
	case Extract:
		return p.Extract(a.A, a.Low+low, n)
	case Concat:
		return p.extractFromConcat(a, low, n)
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
	if a.Size() <= maxDistributedSize {
		if x := p.extractFromOperands(a, low, n); x != nil {
			return x
		}
	}
	return p.makeUnary(e)
}

// maxDistributedSize is the size of expressions up to which rules distribute an operation
// over the operands: without a limit they would visit common parts again and again.
const maxDistributedSize = 100

// extractFromOperands extracts the bits from the operands, or returns nil.
func (p *Pool) extractFromOperands(a *Expr, low, n int) *Expr {
	switch a.Op {
	case Not:
		return p.Not(p.Extract(a.A, low, n))
	case And, Or, Xor:
		return p.rebuildWith(&Expr{Op: a.Op}, p.Extract(a.A, low, n), p.Extract(a.B, low, n), nil)
	case Add, Sub, Mul:
		if low == 0 {
			return p.rebuildWith(&Expr{Op: a.Op}, p.Extract(a.A, 0, n), p.Extract(a.B, 0, n), nil)
		}
	case UDiv, URem, SDiv, SRem:
		if low == 0 && divisionFits(a, n) {
			return p.Div(a.Op, p.Extract(a.A, 0, n), p.Extract(a.B, 0, n))
		}
	case Ite:
		if a.B.Op == Const || a.C.Op == Const {
			return p.Ite(a.A, p.Extract(a.B, low, n), p.Extract(a.C, low, n))
		}
	}
	return nil
}

// divisionFits reports whether both operands of a division are widened numbers of n bits:
// then a division of n bits gives the lower n bits of the result, also for the divisor 0
// and for the least number by -1.
func divisionFits(e *Expr, n int) bool {
	if e.Op == SDiv || e.Op == SRem {
		return signedBits(e.A) <= n && signedBits(e.B) <= n
	}
	return e.Bits-highZeroBits(e.A) <= n && e.Bits-highZeroBits(e.B) <= n
}

func (p *Pool) extractFromConcat(a *Expr, low, n int) *Expr {
	switch border := a.B.Bits; {
	case low >= border:
		return p.Extract(a.A, low-border, n)
	case low+n <= border:
		return p.Extract(a.B, low, n)
	default:
		return p.Concat(p.Extract(a.A, 0, low+n-border), p.Extract(a.B, low, border-low))
	}
}

// Concat is a above b.
func (p *Pool) Concat(a, b *Expr) *Expr {
	e := Expr{Op: Concat, Bits: a.Bits + b.Bits, A: a, B: b}
	switch {
	case p.unsimplified:
	case a.isWord(0):
		return p.ZeroExt(b, e.Bits)
	case a.Op == Concat:
		return p.Concat(a.A, p.Concat(a.B, b))
	case a.Op == ZeroExt:
		return p.ZeroExt(p.Concat(a.A, b), e.Bits)
	case b.Op == Concat:
		if m := p.mergeNeighbours(a, b.A); m != nil {
			return p.Concat(m, b.B)
		}
	default:
		if m := p.mergeNeighbours(a, b); m != nil {
			return m
		}
	}
	return p.makeBinary(e)
}

// mergeNeighbours returns the concatenation of neighbouring parts of one expression, of
// constants, or of copies of a sign, as one expression, or nil.
func (p *Pool) mergeNeighbours(a, b *Expr) *Expr {
	switch {
	case a.Op == Const && b.Op == Const:
		return p.makeBinary(Expr{Op: Concat, Bits: a.Bits + b.Bits, A: a, B: b})
	case a.Op == Extract && b.Op == Extract && a.A == b.A && a.Low == b.Low+b.Bits:
		return p.Extract(a.A, b.Low, a.Bits+b.Bits)
	case a.Op == SignExt && a.A.Bits == 1 && a.A == p.Extract(b, b.Bits-1, 1):
		return p.SignExt(b, a.Bits+b.Bits)
	}
	return nil
}

// ZeroExt widens a to n bits with zeros.
func (p *Pool) ZeroExt(a *Expr, n int) *Expr {
	switch {
	case n == a.Bits:
		return a
	case p.unsimplified:
	case a.Op == ZeroExt:
		return p.ZeroExt(a.A, n)
	case a.Op == Ite && a.B.Op == Const && a.C.Op == Const && a.Bits > 1:
		return p.Ite(a.A, p.ZeroExt(a.B, n), p.ZeroExt(a.C, n))
	}
	return p.makeUnary(Expr{Op: ZeroExt, Bits: n, A: a})
}

// SignExt widens a to n bits with its sign.
func (p *Pool) SignExt(a *Expr, n int) *Expr {
	switch {
	case n == a.Bits:
		return a
	case p.unsimplified:
	case a.Op == SignExt:
		return p.SignExt(a.A, n)
	case a.Op == ZeroExt:
		return p.ZeroExt(a.A, n)
	case a.Op == Ite && a.B.Op == Const && a.C.Op == Const:
		return p.Ite(a.A, p.SignExt(a.B, n), p.SignExt(a.C, n))
	}
	return p.makeUnary(Expr{Op: SignExt, Bits: n, A: a})
}
