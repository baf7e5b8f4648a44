package preconditions

import (
	"math"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

const (
	// mostValues are the values of a symbol that are tried.
	mostValues = 1 << 16
	// mostTried is how many operations all of them may take.
	mostTried = 1 << 22
)

// enumerate simplifies the terms about one number to which comparisons leave few values by
// trying all of them: Z3 is not asked what a loop over two dozen numbers answers, be it
// about floating point. Bytes are not among them (values).
func enumerate(p *symbolic.Pool, terms []*symbolic.Expr) []*symbolic.Expr {
	one := lone{}
	groups := gathered(terms, func(t *symbolic.Expr) (*symbolic.Expr, bool) {
		s := one.of(t)
		return s, s != nil && s != several && !small(s) && s.Bits <= 64
	})
	return instead(terms, groups, func(own []*symbolic.Expr) ([]*symbolic.Expr, bool) {
		simpler := tried(p, one.of(own[0]), own)
		return simpler, simpler != nil
	})
}

// gathered are the places of terms that have a key, together with those that have the same.
func gathered[K comparable](terms []*symbolic.Expr, key func(t *symbolic.Expr) (K, bool)) [][]int {
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

// instead has others stand for groups of terms, if there are such, where the last of them
// stood.
func instead(
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

// lone knows the symbol of each expression that has one.
type lone map[*symbolic.Expr]*symbolic.Expr

// several stands for more than one symbol.
var several = &symbolic.Expr{}

// of is the symbol that an expression is about, several, or nil for none.
func (l lone) of(e *symbolic.Expr) *symbolic.Expr {
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
		switch x := l.of(operand); {
		case x == nil:
		case s == nil:
			s = x
		case s != x:
			s = several
		}
	}
	l[e] = s
	return s
}

// tried says terms about a symbol by the values that satisfy them, or is nil: they are
// simple, or the values are too many.
func tried(p *symbolic.Pool, s *symbolic.Expr, terms []*symbolic.Expr) []*symbolic.Expr {
	d := domain(s, terms)
	if d.least == d.greatest {
		return d.terms(p, s)
	}
	program := symbolic.Compile(terms)
	values := uint64(d.greatest) - uint64(d.least) + 1
	if simple(terms, s) || values == 0 || values > mostValues || values*uint64(program.Len()+1) > mostTried {
		return nil
	}
	good, wrong := d, make([][]bool, len(terms)) // by term and value
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
		return slices.Concat(d.terms(p, s), excluding(terms, wrong, make([]bool, values)))
	}
	return good.terms(p, s)
}

// excluding are the terms that some value fails which those behind them do not, and that
// has not failed before.
func excluding(terms []*symbolic.Expr, wrong [][]bool, failed []bool) []*symbolic.Expr {
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

// interval are the numbers, with their signs, that a symbol may be.
type interval struct{ least, greatest int64 }

// all are the values of a symbol.
func all(s *symbolic.Expr) interval {
	return interval{math.MinInt64 >> (64 - s.Bits), math.MaxInt64 >> (64 - s.Bits)}
}

// domain are the values that comparisons of a symbol with constants leave it.
func domain(s *symbolic.Expr, terms []*symbolic.Expr) interval {
	d := all(s)
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

// decides tells whether a comparison of a symbol in the interval with a constant holds;
// nil: it may or may not.
func (d interval) decides(p *symbolic.Pool, e *symbolic.Expr) *symbolic.Expr {
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

// terms says that a symbol is in an interval.
func (d interval) terms(p *symbolic.Pool, s *symbolic.Expr) []*symbolic.Expr {
	if d.least == d.greatest {
		return []*symbolic.Expr{p.Eq(s, p.Word(uint64(d.least), s.Bits))}
	}
	var list []*symbolic.Expr
	if d.least > all(s).least {
		list = append(list, p.SLT(p.Word(uint64(d.least-1), s.Bits), s))
	}
	if d.greatest < all(s).greatest {
		list = append(list, p.SLT(s, p.Word(uint64(d.greatest+1), s.Bits)))
	}
	return list
}
