package symbolic

// IsBelow reports whether an expression is less than a number under all values of its symbols, as
// far as its outermost operations show it: a remainder is less than the divisor. Named has the
// expressions that some symbols stand for.
func (p *Pool) IsBelow(e *Expr, n uint64, named map[string]*Expr) bool {
	switch e.Op {
	case Const:
		return e.Value.Hi == 0 && e.Value.Lo < n
	case ZeroExt:
		return p.IsBelow(e.A, n, named)
	case And:
		return p.IsBelow(e.A, n, named) || p.IsBelow(e.B, n, named)
	case SRem: // of a number that is not negative
		return e.A.Op == ZeroExt && isDivisorUpTo(e.B, n) && e.B.Value.Lo>>(e.Bits-1) == 0
	case URem:
		return isDivisorUpTo(e.B, n)
	case Symbol:
		x := named[e.Name]
		return x != nil && p.IsBelow(x, n, named)
	case Extract:
		if e.A.Op == Symbol && named[e.A.Name] != nil {
			return p.IsBelow(p.Extract(named[e.A.Name], e.Low, e.Bits), n, named)
		}
		return e.Low == 0 && p.IsBelow(e.A, n, named)
	}
	return false
}

// isDivisorUpTo reports whether a divisor is a constant above 0 and at most n.
func isDivisorUpTo(e *Expr, n uint64) bool {
	return e.IsConst() && e.Value.Hi == 0 && e.Value.Lo > 0 && e.Value.Lo <= n
}
