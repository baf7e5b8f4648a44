package preconditions

import (
	"math/bits"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

const (
	// most is how many operations the questions about terms may have together.
	most = 300_000
	// mostEach is how many a term may have that is asked about: two products of 64
	// bits, as those of a random number, take Z3 minutes.
	mostEach = 60
)

// Large tells whether it would take too long to ask about each of some terms.
func Large(terms []*symbolic.Expr) bool {
	c := costs{limit: most}
	for _, t := range terms {
		if c.add(t); c.sum*len(terms) > most {
			return true
		}
	}
	return false
}

// costs adds up what terms take to be asked about together.
type costs struct {
	limit, sum int
	seen       map[*symbolic.Expr]bool
}

// add adds what a term has that those before have not, as far as it matters.
func (c *costs) add(e *symbolic.Expr) {
	if e == nil || c.seen[e] || c.sum > c.limit {
		return
	}
	if c.seen == nil {
		c.seen = map[*symbolic.Expr]bool{}
	}
	c.seen[e] = true
	c.sum += effort(e)
	c.add(e.A)
	c.add(e.B)
	c.add(e.C)
}

// effort is about how many times the circuits of an operation, which is what Z3 makes of
// one, are those of a sum of 64 bits. Its limit of steps does not count the making.
func effort(e *symbolic.Expr) int {
	switch e.Op {
	case symbolic.Mul:
		return rows(e)
	case symbolic.UDiv, symbolic.URem, symbolic.SDiv, symbolic.SRem:
		return 8 * rows(e)
	case symbolic.FAdd, symbolic.FSub, symbolic.FToInt, symbolic.IntToF, symbolic.FRound:
		return 20
	case symbolic.FMul:
		return 100
	case symbolic.FDiv, symbolic.FSqrt:
		return 400
	}
	return 1
}

// rows are the sums of a product, or differences of a division: as many as the second
// operand has ones, if that is a constant.
func rows(e *symbolic.Expr) int {
	if !e.B.IsConst() {
		return e.Bits
	}
	return bits.OnesCount64(e.B.Value.Lo) + bits.OnesCount64(e.B.Value.Hi)
}

// apart takes out the terms that are too costly to ask about. About a byte Z3 is not asked.
func apart(terms []*symbolic.Expr) (cheap, costly []*symbolic.Expr) {
	one := lone{}
	for _, t := range terms {
		c := costs{limit: mostEach}
		s := one.of(t)
		if c.add(t); c.sum > mostEach && (s == several || !small(s)) {
			costly = append(costly, t)
		} else {
			cheap = append(cheap, t)
		}
	}
	return cheap, costly
}

// apart simplifies cheap terms by themselves, and costly ones by the values that those
// leave symbols: what is divided by two is not costly any more. The cheap ones stay, so
// the terms say together what they said.
func (z *simplifier) apart(cheap, costly []*symbolic.Expr) []*symbolic.Expr {
	kept := z.each(groups(cheap))
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
	return z.each(groups(settle(z.pool, slices.Concat(kept, put))))
}
