package symbolic

// Two numbers of floating point compare in one of four ways. A truth about that is a
// set of them, by which it is made simple.
const (
	isLess = 1 << iota
	isEqual
	isGreater
	isUnordered
	anyOutcome = isLess | isEqual | isGreater | isUnordered
)

// outcomes are the ways of comparing two numbers, the older one first, in which a
// truth holds.
type outcomes struct {
	a, b *Expr
	set  int
}

// outcomesOf returns those of a truth that is about two numbers alone; a is nil if it
// is not.
func outcomesOf(e *Expr) outcomes {
	if e.Bits != 1 {
		return outcomes{}
	}
	switch e.Op {
	case FEq:
		return compared(e, isEqual, isEqual)
	case FLT:
		return compared(e, isLess, isGreater)
	case FLE:
		return compared(e, isLess|isEqual, isGreater|isEqual)
	case FUnordered:
		return compared(e, isUnordered, isUnordered)
	case Not:
		o := outcomesOf(e.A)
		o.set = anyOutcome &^ o.set
		return o
	case Or: // equal or unordered
		return joinOutcomes(outcomesOf(e.A), outcomesOf(e.B), func(x, y int) int { return x | y })
	}
	return outcomes{}
}

// compared are the outcomes of a comparison, or those with its operands the other way
// round.
func compared(e *Expr, set, swapped int) outcomes {
	if e.A.id <= e.B.id {
		return outcomes{e.A, e.B, set}
	}
	return outcomes{e.B, e.A, swapped}
}

// joinOutcomes are those of two truths about the same numbers.
func joinOutcomes(x, y outcomes, join func(x, y int) int) outcomes {
	if x.a == nil || x.a != y.a || x.b != y.b {
		return outcomes{}
	}
	return outcomes{x.a, x.b, join(x.set, y.set)}
}

// joinedOutcomes is a truth made of two about the same numbers of floating point, or nil.
func (p *Pool) joinedOutcomes(a, b *Expr, join func(x, y int) int) *Expr {
	if a.Bits != 1 {
		return nil
	}
	x := outcomesOf(a)
	if x.a == nil {
		return nil
	}
	if o := joinOutcomes(x, outcomesOf(b), join); o.a != nil {
		return p.outcome(o)
	}
	return nil
}

// outcome is the simplest truth with these outcomes.
func (p *Pool) outcome(o outcomes) *Expr {
	switch o.set {
	case 0:
		return p.Bool(false)
	case isLess:
		return p.Float(FLT, 0, 1, o.a, o.b)
	case isGreater:
		return p.Float(FLT, 0, 1, o.b, o.a)
	case isEqual:
		return p.Float(FEq, 0, 1, o.a, o.b)
	case isUnordered:
		return p.Float(FUnordered, 0, 1, o.a, o.b)
	case isLess | isEqual:
		return p.Float(FLE, 0, 1, o.a, o.b)
	case isGreater | isEqual:
		return p.Float(FLE, 0, 1, o.b, o.a)
	case isEqual | isUnordered:
		return p.op2(Expr{Op: Or, Bits: 1, A: p.Float(FEq, 0, 1, o.a, o.b), B: p.Float(FUnordered, 0, 1, o.a, o.b)})
	}
	return p.op1(Expr{Op: Not, Bits: 1, A: p.outcome(outcomes{o.a, o.b, anyOutcome &^ o.set})})
}
