package symbolic

// A comparison of two floating-point numbers has one of four outcomes. A truth about two
// numbers is a set of outcomes, from which its simplest form is made.
const (
	isLess = 1 << iota
	isEqual
	isGreater
	isUnordered
	anyOutcome = isLess | isEqual | isGreater | isUnordered
)

// outcomes are the outcomes of comparing two numbers, the older expression first, for which
// a truth holds.
type outcomes struct {
	a, b *Expr
	set  int
}

// outcomesOf returns the outcomes of a truth about two numbers alone; a is nil for another
// truth.
func outcomesOf(e *Expr) outcomes {
	if e.Bits != 1 {
		return outcomes{}
	}
	switch e.Op {
	case FEq:
		return comparisonOutcomes(e, isEqual, isEqual)
	case FLT:
		return comparisonOutcomes(e, isLess, isGreater)
	case FLE:
		return comparisonOutcomes(e, isLess|isEqual, isGreater|isEqual)
	case FUnordered:
		return comparisonOutcomes(e, isUnordered, isUnordered)
	case Not:
		o := outcomesOf(e.A)
		o.set = anyOutcome &^ o.set
		return o
	case Or: // equal or unordered
		return combineOutcomes(outcomesOf(e.A), outcomesOf(e.B), func(x, y int) int { return x | y })
	}
	return outcomes{}
}

// comparisonOutcomes returns one of two sets, by the order of the operands.
func comparisonOutcomes(e *Expr, set, swapped int) outcomes {
	if e.A.id <= e.B.id {
		return outcomes{e.A, e.B, set}
	}
	return outcomes{e.B, e.A, swapped}
}

// combineOutcomes combines two truths about the same numbers.
func combineOutcomes(x, y outcomes, join func(x, y int) int) outcomes {
	if x.a == nil || x.a != y.a || x.b != y.b {
		return outcomes{}
	}
	return outcomes{x.a, x.b, join(x.set, y.set)}
}

// combineComparisons returns the combination of two truths about the same floating-point
// numbers, or nil.
func (p *Pool) combineComparisons(a, b *Expr, join func(x, y int) int) *Expr {
	if a.Bits != 1 {
		return nil
	}
	x := outcomesOf(a)
	if x.a == nil {
		return nil
	}
	if o := combineOutcomes(x, outcomesOf(b), join); o.a != nil {
		return p.exprOfOutcomes(o)
	}
	return nil
}

// exprOfOutcomes is the simplest truth that holds for these outcomes.
func (p *Pool) exprOfOutcomes(o outcomes) *Expr {
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
		return p.makeBinary(Expr{Op: Or, Bits: 1, A: p.Float(FEq, 0, 1, o.a, o.b), B: p.Float(FUnordered, 0, 1, o.a, o.b)})
	}
	return p.makeUnary(Expr{Op: Not, Bits: 1, A: p.exprOfOutcomes(outcomes{o.a, o.b, anyOutcome &^ o.set})})
}
