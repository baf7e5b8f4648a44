package preconditions

import (
	"math/bits"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

const (
	// maxTotalEffort is the effort of all questions about a list of terms together.
	maxTotalEffort = 300_000
	// maxTermEffort is the effort of a term that Z3 is asked about: two products of 64
	// bits, as in a random number generator, take Z3 minutes.
	maxTermEffort = 60
)

// TooCostly reports whether asking Z3 about each of some terms would take too long.
func TooCostly(terms []*symbolic.Expr) bool {
	c := effortSum{limit: maxTotalEffort}
	for _, t := range terms {
		if c.addTerm(t); c.sum*len(terms) > maxTotalEffort {
			return true
		}
	}
	return false
}

// effortSum adds up the effort of asking about terms together.
type effortSum struct {
	limit, sum int
	seen       map[*symbolic.Expr]bool
}

// addTerm adds the effort of the parts of a term that have not been added, until the limit
// is exceeded.
func (c *effortSum) addTerm(e *symbolic.Expr) {
	if e == nil || c.seen[e] || c.sum > c.limit {
		return
	}
	if c.seen == nil {
		c.seen = map[*symbolic.Expr]bool{}
	}
	c.seen[e] = true
	c.sum += operationEffort(e)
	c.addTerm(e.A)
	c.addTerm(e.B)
	c.addTerm(e.C)
}

// operationEffort estimates the size of an operation's circuit, to which Z3 reduces it, in
// adders of 64 bits. Z3's limit of steps does not count this reduction.
func operationEffort(e *symbolic.Expr) int {
	switch e.Op {
	case symbolic.Mul:
		return rowCount(e)
	case symbolic.UDiv, symbolic.URem, symbolic.SDiv, symbolic.SRem:
		return 8 * rowCount(e)
	case symbolic.FAdd, symbolic.FSub, symbolic.FToInt, symbolic.IntToF, symbolic.FRound:
		return 20
	case symbolic.FMul:
		return 100
	case symbolic.FDiv, symbolic.FSqrt:
		return 400
	}
	return 1
}

// rowCount is the number of additions in a product, or of subtractions in a division: the
// number of ones in the second operand, if it is a constant.
func rowCount(e *symbolic.Expr) int {
	if !e.B.IsConst() {
		return e.Bits
	}
	return bits.OnesCount64(e.B.Value.Lo) + bits.OnesCount64(e.B.Value.Hi)
}

// splitCostly separates the terms that are too costly to ask about. Z3 is not asked about
// terms of one byte.
func splitCostly(terms []*symbolic.Expr) (cheap, costly []*symbolic.Expr) {
	one := soleSymbols{}
	for _, t := range terms {
		c := effortSum{limit: maxTermEffort}
		s := one.symbolOf(t)
		if c.addTerm(t); c.sum > maxTermEffort && (s == manySymbols || !isSmallSymbol(s)) {
			costly = append(costly, t)
		} else {
			cheap = append(cheap, t)
		}
	}
	return cheap, costly
}

// simplifyCostly simplifies cheap terms by themselves, and costly ones with the values that
// the cheap ones leave to symbols: a product with a known factor is no longer costly. The
// cheap terms stay, so the conjunction keeps its meaning.
func (z *simplifier) simplifyCostly(cheap, costly []*symbolic.Expr) []*symbolic.Expr {
	kept := z.simplifyGroups(independentGroups(cheap))
	values := map[string]*symbolic.Expr{}
	for _, t := range kept {
		if isPin(t) {
			values[t.A.Name] = t.B
		}
	}
	put := z.pool.SubstituteAll(costly, func(name string) *symbolic.Expr { return values[name] })
	if slices.Equal(put, costly) {
		return slices.Concat(kept, costly)
	}
	return z.simplifyGroups(independentGroups(reduceWithoutSolver(z.pool, slices.Concat(kept, put))))
}
