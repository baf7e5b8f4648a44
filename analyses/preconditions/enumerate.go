package preconditions

import (
	"math"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

const (
	// maxValues is the number of values of a symbol that are tried.
	maxValues = 1 << 16
	// maxTriedOperations is the number of operations for trying them.
	maxTriedOperations = 1 << 22
)

// enumerateNumbers simplifies the terms about one number to which comparisons leave few
// values, by trying all values: a loop over two dozen numbers needs no solver, even for
// floating point. Bytes are left to simplifyByValues.
func enumerateNumbers(p *symbolic.Pool, terms []*symbolic.Expr) []*symbolic.Expr {
	one := soleSymbols{}
	groups := groupBy(terms, func(t *symbolic.Expr) (*symbolic.Expr, bool) {
		s := one.symbolOf(t)
		return s, s != nil && s != manySymbols && !isSmallSymbol(s) && s.Bits <= 64
	})
	return replaceGroups(terms, groups, func(own []*symbolic.Expr) ([]*symbolic.Expr, bool) {
		simpler := tryValues(p, one.symbolOf(own[0]), own)
		return simpler, simpler != nil
	})
}

// groupBy returns the indexes of terms that have a key, grouped by equal keys.
func groupBy[K comparable](terms []*symbolic.Expr, key func(t *symbolic.Expr) (K, bool)) [][]int {
	number := map[K]int{}
	var groups [][]int
	for i, t := range terms {
		k, has := key(t)
		if !has {
			continue
		}
		n, known := number[k]
		if !known {
			n = len(groups)
			number[k], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], i)
	}
	return groups
}

// replaceGroups replaces groups of terms by simpler ones, if there are any, at the position
// of the last of the group.
func replaceGroups(
	terms []*symbolic.Expr, groups [][]int, simpler func(own []*symbolic.Expr) ([]*symbolic.Expr, bool),
) []*symbolic.Expr {
	lists := make([][]*symbolic.Expr, len(terms))
	for i := range terms {
		lists[i] = terms[i : i+1]
	}
	for _, g := range groups {
		var own []*symbolic.Expr
		for _, i := range g {
			own = append(own, terms[i])
		}
		list, ok := simpler(own)
		if !ok {
			continue
		}
		for _, i := range g {
			lists[i] = nil
		}
		lists[g[len(g)-1]] = list
	}
	return slices.Concat(lists...)
}

// soleSymbols caches the one symbol of each expression.
type soleSymbols map[*symbolic.Expr]*symbolic.Expr

// manySymbols stands for more than one symbol.
var manySymbols = &symbolic.Expr{}

// symbolOf returns the symbol of an expression, manySymbols, or nil for none.
func (l soleSymbols) symbolOf(e *symbolic.Expr) *symbolic.Expr {
	switch {
	case e == nil || e.IsConst():
		return nil
	case e.Op == symbolic.Symbol:
		return e
	}
	s, known := l[e]
	if known {
		return s
	}
	for _, operand := range []*symbolic.Expr{e.A, e.B, e.C} {
		switch x := l.symbolOf(operand); {
		case x == nil:
		case s == nil:
			s = x
		case s != x:
			s = manySymbols
		}
	}
	l[e] = s
	return s
}

// tryValues replaces terms about a symbol by the values that satisfy them. It returns nil
// if the terms are simple or there are too many values.
func tryValues(p *symbolic.Pool, s *symbolic.Expr, terms []*symbolic.Expr) []*symbolic.Expr {
	d := comparisonBounds(s, terms)
	if d.least == d.greatest {
		return d.toTerms(p, s)
	}
	program := symbolic.Compile(terms)
	values := uint64(d.greatest) - uint64(d.least) + 1
	if isSimple(terms, s) || values == 0 || values > maxValues || values*uint64(program.Len()+1) > maxTriedOperations {
		return nil
	}
	good, wrong := d, make([][]bool, len(terms)) // wrong is indexed by term and value
	count := 0
	for v := d.least; v-d.least < int64(values); v++ {
		fails := false
		for k, r := range program.Run([]symbolic.Value{{Lo: uint64(v)}}) {
			wrong[k] = append(wrong[k], r.Lo == 0)
			fails = fails || r.Lo == 0
		}
		if fails {
			continue
		}
		if count == 0 {
			good.least = v
		}
		good.greatest = v
		count++
	}
	if int64(count) != good.greatest-good.least+1 {
		return slices.Concat(d.toTerms(p, s), excludingTerms(terms, wrong, make([]bool, values)))
	}
	return good.toTerms(p, s)
}

// excludingTerms returns the terms that exclude a value which neither a later term excludes
// nor failed marks.
func excludingTerms(terms []*symbolic.Expr, wrong [][]bool, failed []bool) []*symbolic.Expr {
	var kept []*symbolic.Expr
	for k, t := range slices.Backward(terms) {
		rules := false
		for v, w := range wrong[k] {
			rules = rules || w && !failed[v]
			failed[v] = failed[v] || w
		}
		if rules {
			kept = append(kept, t)
		}
	}
	slices.Reverse(kept)
	return kept
}

// interval is the signed numbers that a symbol may have.
type interval struct{ least, greatest int64 }

// fullInterval is all values of a symbol.
func fullInterval(s *symbolic.Expr) interval {
	return interval{math.MinInt64 >> (64 - s.Bits), math.MaxInt64 >> (64 - s.Bits)}
}

// comparisonBounds is the values that comparisons with constants leave to a symbol.
func comparisonBounds(s *symbolic.Expr, terms []*symbolic.Expr) interval {
	d := fullInterval(s)
	for _, t := range terms {
		if t.A == nil || t.B == nil {
			continue
		}
		c, below := t.B, true
		if t.A.IsConst() {
			c, below = t.A, false
		}
		if t.A != s && t.B != s || !c.IsConst() {
			continue
		}
		switch v := int64(c.Value.Lo) << (64 - s.Bits) >> (64 - s.Bits); {
		case t.Op == symbolic.Eq:
			d.least, d.greatest = v, v
		case below && t.Op == symbolic.SLT:
			d.greatest = min(d.greatest, v-1)
		case t.Op == symbolic.SLT:
			d.least = max(d.least, v+1)
		case below && t.Op == symbolic.ULT && v > 0:
			d.least, d.greatest = max(d.least, 0), min(d.greatest, v-1)
		}
	}
	return d
}

// decideComparison returns the truth of a comparison of a symbol in the interval with a
// constant; nil: it may or may not hold.
func (d interval) decideComparison(p *symbolic.Pool, e *symbolic.Expr) *symbolic.Expr {
	c, left := e.B, d // e compares left with right
	if e.A.IsConst() {
		c = e.A
	}
	v := int64(c.Value.Lo) << (64 - c.Bits) >> (64 - c.Bits)
	if (e.Op == symbolic.ULT || e.Op == symbolic.ULE) && (d.least < 0 || v < 0) {
		return nil
	}
	right := interval{v, v}
	if e.A.IsConst() {
		left, right = right, left
	}
	orEqual := e.Op == symbolic.ULE || e.Op == symbolic.SLE
	switch {
	case left.greatest < right.least, orEqual && left.greatest == right.least:
		return p.Bool(true)
	case left.least > right.greatest, !orEqual && left.least == right.greatest:
		return p.Bool(false)
	}
	return nil
}

// toTerms returns the terms that a symbol is in the interval.
func (d interval) toTerms(p *symbolic.Pool, s *symbolic.Expr) []*symbolic.Expr {
	if d.least == d.greatest {
		return []*symbolic.Expr{p.Eq(s, p.Word(uint64(d.least), s.Bits))}
	}
	var list []*symbolic.Expr
	if d.least > fullInterval(s).least {
		list = append(list, p.SLT(p.Word(uint64(d.least-1), s.Bits), s))
	}
	if d.greatest < fullInterval(s).greatest {
		list = append(list, p.SLT(s, p.Word(uint64(d.greatest+1), s.Bits)))
	}
	return list
}
