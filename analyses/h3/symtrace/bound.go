package symtrace

import "github.com/heddle-dmt/heddle/analyses/symbolic"

// isBelow reports whether an expression is less than a number under all values of its symbols, as
// far as its outermost operations show it: a remainder is less than the divisor.
func (b *pass) isBelow(e *symbolic.Expr, n uint64) bool {
	switch e.Op {
	case symbolic.Const:
		return e.Value.Hi == 0 && e.Value.Lo < n
	case symbolic.ZeroExt:
		return b.isBelow(e.A, n)
	case symbolic.And:
		return b.isBelow(e.A, n) || b.isBelow(e.B, n)
	case symbolic.SRem: // of a number that is not negative
		return e.A.Op == symbolic.ZeroExt && isDivisorUpTo(e.B, n) && e.B.Value.Lo>>(e.Bits-1) == 0
	case symbolic.URem:
		return isDivisorUpTo(e.B, n)
	case symbolic.Symbol:
		named := b.namedExprs[e.Name]
		return named != nil && b.isBelow(named, n)
	case symbolic.Extract:
		if e.A.Op == symbolic.Symbol && b.namedExprs[e.A.Name] != nil {
			return b.isBelow(b.pool.Extract(b.namedExprs[e.A.Name], e.Low, e.Bits), n)
		}
		return e.Low == 0 && b.isBelow(e.A, n)
	}
	return false
}

// isDivisorUpTo reports whether a divisor is a constant above 0 and at most n.
func isDivisorUpTo(e *symbolic.Expr, n uint64) bool {
	return e.IsConst() && e.Value.Hi == 0 && e.Value.Lo > 0 && e.Value.Lo <= n
}
