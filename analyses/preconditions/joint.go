package preconditions

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// maxJointSymbols is the number of symbols of a term whose values are tried in combination.
const maxJointSymbols = 3

// reduceWithoutSolver removes the terms that follow from the values of bytes, from
// comparisons, or from trying the values of few symbols. The rest is for the solver.
func reduceWithoutSolver(p *symbolic.Pool, terms []*symbolic.Expr) []*symbolic.Expr {
	for pinned := true; pinned; {
		terms = enumerateNumbers(p, contingentTerms(assumeComparisons(p, assumeValues(p, propagateBytes(p, distinctTerms(terms))))))
		terms, pinned = simplifyJointly(p, terms)
	}
	return terms
}

// simplifyJointly simplifies the terms about the same few symbols, to which the terms about
// one of them leave few values, by trying all combinations. Pinned is set if a symbol
// turned out to have one value and a term that says so was added. A thousand terms about
// two digits would be a division each to Z3.
func simplifyJointly(p *symbolic.Pool, terms []*symbolic.Expr) (simpler []*symbolic.Expr, pinned bool) {
	sets, alone := symbolSets{}, map[*symbolic.Expr][]*symbolic.Expr{}
	groups := groupBy(terms, func(t *symbolic.Expr) (key [maxJointSymbols]*symbolic.Expr, several bool) {
		set := sets.symbolsOf(t)
		if len(set) == 1 {
			alone[set[0]] = append(alone[set[0]], t)
		}
		if len(set) < 2 || len(set) > maxJointSymbols {
			return key, false
		}
		copy(key[:], set)
		slices.SortFunc(key[:len(set)], func(a, b *symbolic.Expr) int { return cmp.Compare(a.Name, b.Name) })
		return key, true
	})
	simpler = replaceGroups(terms, groups, func(own []*symbolic.Expr) ([]*symbolic.Expr, bool) {
		c := newCombinations(own, alone)
		if c == nil {
			return nil, false
		}
		pins := c.findPins(p)
		pinned = pinned || len(pins) > 0
		return append(pins, excludingTerms(own, c.wrong, c.failed)...), true
	})
	return simpler, pinned
}

// symbolSets caches the symbols of each expression, in the order of first use, up to
// maxJointSymbols+1 symbols.
type symbolSets map[*symbolic.Expr][]*symbolic.Expr

func (f symbolSets) symbolsOf(e *symbolic.Expr) []*symbolic.Expr {
	switch {
	case e == nil || e.IsConst():
		return nil
	case e.Op == symbolic.Symbol:
		return []*symbolic.Expr{e}
	}
	set, known := f[e]
	if known {
		return set
	}
	for _, operand := range []*symbolic.Expr{e.A, e.B, e.C} {
		for _, s := range f.symbolsOf(operand) {
			if len(set) <= maxJointSymbols && !slices.Contains(set, s) {
				set = append(set, s)
			}
		}
	}
	f[e] = set
	return set
}

// combinations are all combinations of the values of some symbols, and the terms that each
// fails.
type combinations struct {
	symbols []*symbolic.Expr
	values  [][]symbolic.Value // by symbol
	wrong   [][]bool           // by term and combination
	failed  []bool             // the combinations that pins exclude
}

// newCombinations tries the values of the symbols of terms; alone has the terms about one
// symbol. It returns nil if there are too many combinations.
func newCombinations(terms []*symbolic.Expr, alone map[*symbolic.Expr][]*symbolic.Expr) *combinations {
	program := symbolic.Compile(terms)
	c, all := &combinations{}, uint64(1)
	byName := map[string]*symbolic.Expr{}
	symbolic.SymbolsOf(terms, func(s *symbolic.Expr) { byName[s.Name] = s })
	for _, name := range program.Symbols() {
		s := byName[name]
		values := remainingValues(s, alone[s])
		if all *= uint64(len(values)); all == 0 || all > maxValues || all*uint64(program.Len()+1) > maxTriedOperations {
			return nil
		}
		c.symbols, c.values = append(c.symbols, s), append(c.values, values)
	}
	c.wrong, c.failed = make([][]bool, len(terms)), make([]bool, all)
	for i := range c.failed {
		for k, r := range program.Run(c.valuesAt(i)) {
			c.wrong[k] = append(c.wrong[k], r.Lo == 0)
		}
	}
	return c
}

// valuesAt returns the values of a combination.
func (c *combinations) valuesAt(i int) []symbolic.Value {
	values := make([]symbolic.Value, len(c.symbols))
	for k, list := range c.values {
		values[k] = list[i%len(list)]
		i /= len(list)
	}
	return values
}

// findPins returns equations for the symbols that have the same value in all combinations
// that satisfy the terms.
func (c *combinations) findPins(p *symbolic.Pool) []*symbolic.Expr {
	var good [][]symbolic.Value
	for i := range c.failed {
		if !slices.ContainsFunc(c.wrong, func(w []bool) bool { return w[i] }) {
			good = append(good, c.valuesAt(i))
		}
	}
	if len(good) == 0 {
		return nil
	}
	var pins []*symbolic.Expr
	for k, s := range c.symbols {
		v := good[0][k]
		if len(c.values[k]) == 1 || slices.ContainsFunc(good, func(g []symbolic.Value) bool { return g[k] != v }) {
			continue
		}
		pins = append(pins, p.Eq(s, p.Const(v, s.Bits)))
		for i := range c.failed {
			c.failed[i] = c.failed[i] || c.valuesAt(i)[k] != v
		}
	}
	return pins
}

// remainingValues returns the values that the terms about one symbol leave to it, by
// comparisons with constants, and for a byte by trying; none if there are too many.
func remainingValues(s *symbolic.Expr, alone []*symbolic.Expr) []symbolic.Value {
	if s.Bits > 64 {
		return nil
	}
	var values []symbolic.Value
	if !isSmallSymbol(s) {
		d := comparisonBounds(s, alone)
		for v := d.least; v <= d.greatest && uint64(d.greatest)-uint64(d.least) < maxValues; v++ {
			values = append(values, symbolic.Value{Lo: uint64(v) << (64 - s.Bits) >> (64 - s.Bits)})
		}
		return values
	}
	program := symbolic.Compile(alone)
	for v := range uint64(1) << s.Bits {
		value := symbolic.Value{Lo: v}
		if len(alone) == 0 || program.FirstFalse([]symbolic.Value{value}) < 0 {
			values = append(values, value)
		}
	}
	return values
}
