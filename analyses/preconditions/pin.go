package preconditions

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// simplifyLarge simplifies terms that are too many to ask about each: first the terms about
// one symbol by themselves, then by finding symbols that can have one value only, which is
// substituted in the rest.
func (z *simplifier) simplifyLarge(terms []*symbolic.Expr) []*symbolic.Expr {
	pins, rest := substitutePins(z.pool, terms)
	for _, step := range []func([]*symbolic.Expr) []*symbolic.Expr{z.simplifyPerSymbol, z.addCommonPins} {
		if len(pins) == 0 && TooCostly(terms) {
			terms = step(terms)
			pins, rest = substitutePins(z.pool, terms)
		}
	}
	if len(pins) == 0 && TooCostly(terms) {
		return terms
	}
	return append(pins, z.simplifyGroups(independentGroups(rest))...)
}

// substitutePins separates the terms that give a symbol a value, and substitutes the values
// in the rest.
func substitutePins(p *symbolic.Pool, terms []*symbolic.Expr) (pins, rest []*symbolic.Expr) {
	values := map[string]*symbolic.Expr{}
	for _, t := range terms {
		if isPin(t) {
			values[t.A.Name] = t.B
			pins = append(pins, t)
		}
	}
	for _, t := range terms {
		if !isPin(t) {
			rest = append(rest, p.Substitute(t, func(name string) *symbolic.Expr { return values[name] }))
		}
	}
	return pins, contingentTerms(assumeComparisons(p, distinctTerms(rest)))
}

// assumeValues replaces, inside other terms, expressions to which the terms give a value.
func assumeValues(p *symbolic.Pool, terms []*symbolic.Expr) []*symbolic.Expr {
	values := map[*symbolic.Expr]*symbolic.Expr{}
	var others []*symbolic.Expr
	for _, t := range terms {
		if givesValue(t) {
			values[t.A] = t.B
		} else {
			others = append(others, t)
		}
	}
	if len(values) == 0 {
		return terms
	}
	others = p.ReplaceAll(others, func(e *symbolic.Expr) *symbolic.Expr { return values[e] })
	return distinctTerms(replaceOthers(terms, others, givesValue))
}

// givesValue reports whether a term gives an expression a value.
func givesValue(t *symbolic.Expr) bool {
	return t.Op == symbolic.Eq && t.A.Op != symbolic.Const && t.B.Op == symbolic.Const
}

// assumeComparisons replaces, inside other terms, comparisons that the terms themselves
// state or whose truth follows from the bounds they state.
func assumeComparisons(p *symbolic.Pool, terms []*symbolic.Expr) []*symbolic.Expr {
	known, spans := map[*symbolic.Expr]*symbolic.Expr{}, map[*symbolic.Expr]interval{}
	var others []*symbolic.Expr
	for _, t := range terms {
		if !isPlainComparison(t) {
			others = append(others, t)
			continue
		}
		known[t], known[p.Not(t)] = p.Bool(true), p.Bool(false)
		s := comparedSymbol(t)
		if _, done := spans[s]; s != nil && !done {
			spans[s] = comparisonBounds(s, terms)
		}
	}
	if len(known) == 0 {
		return terms
	}
	others = p.ReplaceAll(others, func(e *symbolic.Expr) *symbolic.Expr {
		if k := known[e]; k != nil || !isPlainComparison(e) {
			return k
		}
		if d, bounded := spans[comparedSymbol(e)]; bounded {
			return d.decideComparison(p, e)
		}
		return nil
	})
	return distinctTerms(replaceOthers(terms, others, isPlainComparison))
}

// replaceOthers replaces the terms that are not to stay by others, in order.
func replaceOthers(terms, others []*symbolic.Expr, stays func(*symbolic.Expr) bool) []*symbolic.Expr {
	out := slices.Clone(terms)
	for i, t := range terms {
		if !stays(t) {
			out[i], others = others[0], others[1:]
		}
	}
	return out
}

// comparedSymbol returns the symbol that a comparison compares with a constant, or nil.
func comparedSymbol(e *symbolic.Expr) *symbolic.Expr {
	switch {
	case e.A.IsConst():
		return e.B
	case e.B.IsConst():
		return e.A
	}
	return nil
}

// isPlainComparison reports whether a term compares two symbols or a symbol with a
// constant.
func isPlainComparison(t *symbolic.Expr) bool {
	switch t.Op {
	case symbolic.ULT, symbolic.ULE, symbolic.SLT, symbolic.SLE:
		return (t.A.Op == symbolic.Symbol || t.A.IsConst()) && (t.B.Op == symbolic.Symbol || t.B.IsConst())
	}
	return false
}

// isPin reports whether a term gives a symbol a value.
func isPin(t *symbolic.Expr) bool {
	return t.Op == symbolic.Eq && t.A.Op == symbolic.Symbol && t.B.Op == symbolic.Const
}

// simplifyPerSymbol simplifies, for each symbol, the terms about it alone. The result
// stands at the position of the last of them.
func (z *simplifier) simplifyPerSymbol(terms []*symbolic.Expr) []*symbolic.Expr {
	one := soleSymbols{}
	groups := groupBy(terms, func(t *symbolic.Expr) (*symbolic.Expr, bool) {
		s := one.symbolOf(t)
		return s, s != nil && s != manySymbols && s.Bits <= 64
	})
	return replaceGroups(terms, groups, func(own []*symbolic.Expr) ([]*symbolic.Expr, bool) {
		if !isSmallSymbol(one.symbolOf(own[0])) && TooCostly(own) {
			return nil, false
		}
		return z.simplifyGroup(own), true
	})
}

// maxPinQueries is the number of symbols that the solver is asked about, and maxPinWeight
// the effort of the terms that it is given.
const (
	maxPinQueries = 64
	maxPinWeight  = 2_000
)

// addCommonPins adds the values of symbols that can have one value only, as far as the
// cheapest terms determine it.
func (z *simplifier) addCommonPins(terms []*symbolic.Expr) []*symbolic.Expr {
	symbols := unpinnedSymbols(terms)
	if len(symbols) > maxPinQueries {
		return terms
	}
	z.solver.Push()
	defer z.solver.Pop()
	for _, t := range lightestTerms(terms, maxPinWeight) {
		z.solver.Assert(t)
	}
	var pins []*symbolic.Expr
	for _, s := range symbols {
		v, err := z.evaluator.Value(s)
		if err != nil {
			continue
		}
		if is := z.pool.Eq(s, z.pool.Const(v, s.Bits)); z.isImplied(is) {
			pins = append(pins, is)
		}
	}
	return append(pins, terms...)
}

// unpinnedSymbols returns the symbols of terms that no term gives a value.
func unpinnedSymbols(terms []*symbolic.Expr) []*symbolic.Expr {
	seen := map[*symbolic.Expr]bool{}
	for _, t := range terms {
		if isPin(t) {
			seen[t.A] = true
		}
	}
	var list []*symbolic.Expr
	for _, t := range terms {
		symbolic.Symbols(t, func(s *symbolic.Expr) {
			if !seen[s] {
				seen[s] = true
				list = append(list, s)
			}
		})
	}
	return list
}

// lightestTerms returns the terms with the least effort, up to a total.
func lightestTerms(terms []*symbolic.Expr, limit int) []*symbolic.Expr {
	weights := map[*symbolic.Expr]int{}
	for _, t := range terms {
		c := effortSum{limit: limit}
		c.addTerm(t)
		weights[t] = c.sum
	}
	terms = slices.Clone(terms)
	slices.SortStableFunc(terms, func(a, b *symbolic.Expr) int { return cmp.Compare(weights[a], weights[b]) })
	all := effortSum{limit: limit}
	for i, t := range terms {
		if all.addTerm(t); all.sum > limit {
			return terms[:i]
		}
	}
	return terms
}

// isSmallSymbol reports whether a symbol has few enough values to try all.
func isSmallSymbol(s *symbolic.Expr) bool { return s.Bits <= 8 }

// valueSet is a set of values of a small symbol.
type valueSet [256]bool

// maxHoles is the number of excluded values inside an interval that are stated one by one.
const maxHoles = 4

// simplifyByValues states terms about a small symbol by its values, all of which are tried:
// an interval and the excluded values inside.
func (z *simplifier) simplifyByValues(terms []*symbolic.Expr, s *symbolic.Expr) []*symbolic.Expr {
	program, sets, every := symbolic.Compile(terms), make([]valueSet, len(terms)), make([]bool, len(terms))
	low, high := -1, -1
	for v := range 1 << s.Bits {
		for i, truth := range program.Run([]symbolic.Value{{Lo: uint64(v)}}) {
			sets[i][v] = truth.Lo != 0
		}
		if inAllSets(sets, every, v) {
			if low < 0 {
				low = v
			}
			high = v
		}
	}
	var holes []*symbolic.Expr
	for v := low; v < high; v++ {
		if !inAllSets(sets, every, v) {
			holes = append(holes, z.pool.Not(z.pool.Eq(s, z.pool.Word(uint64(v), s.Bits))))
		}
	}
	if low < 0 || len(holes) > maxHoles {
		return neededTerms(terms, sets, s)
	}
	return append(z.intervalTerms(s, uint64(low), uint64(high), false), holes...)
}

// neededTerms returns the terms without which more values of a symbol would be allowed.
func neededTerms(terms []*symbolic.Expr, sets []valueSet, s *symbolic.Expr) []*symbolic.Expr {
	without := make([]bool, len(terms))
	var kept []*symbolic.Expr
	for i, t := range terms {
		without[i] = true
		for v := range 1 << s.Bits {
			if !sets[i][v] && inAllSets(sets, without, v) {
				without[i] = false // this term alone excludes the value
				kept = append(kept, t)
				break
			}
		}
	}
	return kept
}

// inAllSets reports whether a value is in all sets except those in without.
func inAllSets(sets []valueSet, without []bool, v int) bool {
	for i := range sets {
		if !without[i] && !sets[i][v] {
			return false
		}
	}
	return true
}
