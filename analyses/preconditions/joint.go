package preconditions

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// mostJoint is how many symbols a term has of which all values are tried together.
const mostJoint = 3

// settle brings terms to those that are to be asked about: what follows from the values of
// bytes, from comparisons, or from trying the values of few symbols, is left out.
func settle(p *symbolic.Pool, terms []*symbolic.Expr) []*symbolic.Expr {
	for pinned := true; pinned; {
		terms = enumerate(p, contingent(assume(p, propagate(p, distinct(terms)))))
		terms, pinned = jointly(p, terms)
	}
	return terms
}

// jointly simplifies the terms about the same few symbols, to which the terms about one of
// them alone leave few values, by trying all of these together; pinned tells that one of
// the symbols turned out to have one value, which is said now. Two digits and a thousand
// terms about both are not for Z3, which sees a division in each.
func jointly(p *symbolic.Pool, terms []*symbolic.Expr) (simpler []*symbolic.Expr, pinned bool) {
	sets, alone := few{}, map[*symbolic.Expr][]*symbolic.Expr{}
	groups := gathered(terms, func(t *symbolic.Expr) (key [mostJoint]*symbolic.Expr, several bool) {
		set := sets.of(t)
		if len(set) == 1 {
			alone[set[0]] = append(alone[set[0]], t)
		}
		if len(set) < 2 || len(set) > mostJoint {
			return key, false
		}
		copy(key[:], set)
		slices.SortFunc(key[:len(set)], func(a, b *symbolic.Expr) int { return cmp.Compare(a.Name, b.Name) })
		return key, true
	})
	simpler = instead(terms, groups, func(own []*symbolic.Expr) ([]*symbolic.Expr, bool) {
		c := newCombination(own, alone)
		if c == nil {
			return nil, false
		}
		pins := c.pins(p)
		pinned = pinned || len(pins) > 0
		return append(pins, excluding(own, c.wrong, c.failed)...), true
	})
	return simpler, pinned
}

// few knows the symbols of each expression, in the order in which they come up, as far as
// they are not more than mostJoint: one more then, whichever.
type few map[*symbolic.Expr][]*symbolic.Expr

func (f few) of(e *symbolic.Expr) []*symbolic.Expr {
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
		for _, s := range f.of(operand) {
			if len(set) <= mostJoint && !slices.Contains(set, s) {
				set = append(set, s)
			}
		}
	}
	f[e] = set
	return set
}

// combination are the values of some symbols, all with all, and what terms say of each.
type combination struct {
	symbols []*symbolic.Expr
	values  [][]symbolic.Value // by symbol
	wrong   [][]bool           // by term and combination
	failed  []bool             // the combinations that pins exclude
}

// newCombination tries the values of the symbols of terms, of which alone has the terms
// about them alone: nil if they are too many.
func newCombination(terms []*symbolic.Expr, alone map[*symbolic.Expr][]*symbolic.Expr) *combination {
	program := symbolic.Compile(terms)
	c, all := &combination{}, uint64(1)
	byName := map[string]*symbolic.Expr{}
	symbolic.SymbolsOf(terms, func(s *symbolic.Expr) { byName[s.Name] = s })
	for _, name := range program.Symbols() {
		s := byName[name]
		values := left(s, alone[s])
		if all *= uint64(len(values)); all == 0 || all > mostValues || all*uint64(program.Len()+1) > mostTried {
			return nil
		}
		c.symbols, c.values = append(c.symbols, s), append(c.values, values)
	}
	c.wrong, c.failed = make([][]bool, len(terms)), make([]bool, all)
	for i := range c.failed {
		for k, r := range program.Run(c.at(i)) {
			c.wrong[k] = append(c.wrong[k], r.Lo == 0)
		}
	}
	return c
}

// at is one of the combinations.
func (c *combination) at(i int) []symbolic.Value {
	values := make([]symbolic.Value, len(c.symbols))
	for k, list := range c.values {
		values[k] = list[i%len(list)]
		i /= len(list)
	}
	return values
}

// pins says which symbols have one value in all combinations that satisfy the terms.
func (c *combination) pins(p *symbolic.Pool) []*symbolic.Expr {
	var good [][]symbolic.Value
	for i := range c.failed {
		if !slices.ContainsFunc(c.wrong, func(w []bool) bool { return w[i] }) {
			good = append(good, c.at(i))
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
			c.failed[i] = c.failed[i] || c.at(i)[k] != v
		}
	}
	return pins
}

// left are the values that terms about a symbol alone leave it, as far as comparisons
// with constants tell, and for a byte trying; none if they are too many.
func left(s *symbolic.Expr, alone []*symbolic.Expr) []symbolic.Value {
	if s.Bits > 64 {
		return nil
	}
	var values []symbolic.Value
	if !small(s) {
		d := domain(s, alone)
		for v := d.least; v <= d.greatest && uint64(d.greatest)-uint64(d.least) < mostValues; v++ {
			values = append(values, symbolic.Value{Lo: uint64(v) << (64 - s.Bits) >> (64 - s.Bits)})
		}
		return values
	}
	program := symbolic.Compile(alone)
	for v := range uint64(1) << s.Bits {
		value := symbolic.Value{Lo: v}
		if len(alone) == 0 || program.First([]symbolic.Value{value}) < 0 {
			values = append(values, value)
		}
	}
	return values
}
