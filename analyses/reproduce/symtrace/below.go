package symtrace

import "github.com/heddle-dmt/heddle/analyses/symbolic"

// below tells that an expression is less than a number, whatever is read, as far as its
// last operations show it: a remainder is less than the divisor.
func (b *builder) below(e *symbolic.Expr, n uint64) bool {
	switch e.Op {
	case symbolic.Const:
		return e.Value.Hi == 0 && e.Value.Lo < n
	case symbolic.ZeroExt:
		return b.below(e.A, n)
	case symbolic.And:
		return b.below(e.A, n) || b.below(e.B, n)
	case symbolic.SRem: // of a number that is not negative
		return e.A.Op == symbolic.ZeroExt && divides(e.B, n) && e.B.Value.Lo>>(e.Bits-1) == 0
	case symbolic.URem:
		return divides(e.B, n)
	case symbolic.Symbol:
		named := b.named[e.Name]
		return named != nil && b.below(named, n)
	case symbolic.Extract:
		if e.A.Op == symbolic.Symbol && b.named[e.A.Name] != nil {
			return b.below(b.pool.Extract(b.named[e.A.Name], e.Low, e.Bits), n)
		}
		return e.Low == 0 && b.below(e.A, n)
	}
	return false
}

// divides tells that a divisor is a constant above 0 and not above n.
func divides(e *symbolic.Expr, n uint64) bool {
	return e.IsConst() && e.Value.Hi == 0 && e.Value.Lo > 0 && e.Value.Lo <= n
}
