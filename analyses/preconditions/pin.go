package preconditions

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// large simplifies terms that are too many to be asked about one by one: by what those
// about one symbol alone come to, and by the values of symbols to which some of them
// leave no other, which are put into the rest.
func (z *simplifier) large(terms []*symbolic.Expr) []*symbolic.Expr {
	pins, rest := divide(z.pool, terms)
	for _, step := range []func([]*symbolic.Expr) []*symbolic.Expr{z.alone, z.together} {
		if len(pins) == 0 && Large(terms) {
			terms = step(terms)
			pins, rest = divide(z.pool, terms)
		}
	}
	if len(pins) == 0 && Large(terms) {
		return terms
	}
	return append(pins, z.each(groups(rest))...)
}

// divide takes the terms that a symbol has a value out of terms, and puts the values into
// the rest.
func divide(p *symbolic.Pool, terms []*symbolic.Expr) (pins, rest []*symbolic.Expr) {
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
	return pins, contingent(assume(p, distinct(rest)))
}

// assume has terms that compare symbols, or one with a constant, hold wherever they are
// parts of others, and what follows of a symbol from the bounds that they say.
func assume(p *symbolic.Pool, terms []*symbolic.Expr) []*symbolic.Expr {
	known, spans := map[*symbolic.Expr]*symbolic.Expr{}, map[*symbolic.Expr]interval{}
	var others []*symbolic.Expr
	for _, t := range terms {
		if !plain(t) {
			others = append(others, t)
			continue
		}
		known[t], known[p.Not(t)] = p.Bool(true), p.Bool(false)
		s := symbolOf(t)
		if _, done := spans[s]; s != nil && !done {
			spans[s] = domain(s, terms)
		}
	}
	if len(known) == 0 {
		return terms
	}
	others = p.ReplaceAll(others, func(e *symbolic.Expr) *symbolic.Expr {
		if k := known[e]; k != nil || !plain(e) {
			return k
		}
		if d, bounded := spans[symbolOf(e)]; bounded {
			return d.decides(p, e)
		}
		return nil
	})
	return distinct(amended(terms, others))
}

// amended are terms with others in place of those that are not plain.
func amended(terms, others []*symbolic.Expr) []*symbolic.Expr {
	out := slices.Clone(terms)
	for i, t := range terms {
		if !plain(t) {
			out[i], others = others[0], others[1:]
		}
	}
	return out
}

// symbolOf is the symbol that a comparison compares with a constant, or nil.
func symbolOf(e *symbolic.Expr) *symbolic.Expr {
	switch {
	case e.A.IsConst():
		return e.B
	case e.B.IsConst():
		return e.A
	}
	return nil
}

// plain tells a term that compares symbols, or one with a constant.
func plain(t *symbolic.Expr) bool {
	switch t.Op {
	case symbolic.ULT, symbolic.ULE, symbolic.SLT, symbolic.SLE:
		return (t.A.Op == symbolic.Symbol || t.A.IsConst()) && (t.B.Op == symbolic.Symbol || t.B.IsConst())
	}
	return false
}

// isPin tells the term that a symbol has a value.
func isPin(t *symbolic.Expr) bool {
	return t.Op == symbolic.Eq && t.A.Op == symbolic.Symbol && t.B.Op == symbolic.Const
}

// alone simplifies, for each symbol, the terms about it alone, which then stand where the
// last of them stood.
func (z *simplifier) alone(terms []*symbolic.Expr) []*symbolic.Expr {
	one := lone{}
	groups := gathered(terms, func(t *symbolic.Expr) (*symbolic.Expr, bool) {
		s := one.of(t)
		return s, s != nil && s != several && s.Bits <= 64
	})
	return instead(terms, groups, func(own []*symbolic.Expr) ([]*symbolic.Expr, bool) {
		if !small(one.of(own[0])) && Large(own) {
			return nil, false
		}
		return z.group(own), true
	})
}

// mostPinned is how many symbols are asked about that terms have in common, and mostBurden
// what the terms may weigh that are asked.
const (
	mostPinned = 64
	mostBurden = 2_000
)

// together adds to terms the values of symbols to which those leave no other that are the
// least to ask about.
func (z *simplifier) together(terms []*symbolic.Expr) []*symbolic.Expr {
	symbols := unpinned(terms)
	if len(symbols) > mostPinned {
		return terms
	}
	z.solver.Push()
	defer z.solver.Pop()
	for _, t := range lightest(terms, mostBurden) {
		z.solver.Assert(t)
	}
	var pins []*symbolic.Expr
	for _, s := range symbols {
		v, err := z.evaluator.Value(s)
		if err != nil {
			continue
		}
		if is := z.pool.Eq(s, z.pool.Const(v, s.Bits)); z.follows(is) {
			pins = append(pins, is)
		}
	}
	return append(pins, terms...)
}

// unpinned are the symbols of terms for which none of them has a value.
func unpinned(terms []*symbolic.Expr) []*symbolic.Expr {
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

// lightest are terms, the lightest first, as far as all come to a weight.
func lightest(terms []*symbolic.Expr, limit int) []*symbolic.Expr {
	weights := map[*symbolic.Expr]int{}
	for _, t := range terms {
		c := costs{limit: limit}
		c.add(t)
		weights[t] = c.sum
	}
	terms = slices.Clone(terms)
	slices.SortStableFunc(terms, func(a, b *symbolic.Expr) int { return cmp.Compare(weights[a], weights[b]) })
	all := costs{limit: limit}
	for i, t := range terms {
		if all.add(t); all.sum > limit {
			return terms[:i]
		}
	}
	return terms
}

// small tells symbols of which all values can be gone through.
func small(s *symbolic.Expr) bool { return s.Bits <= 8 }

// allowed are values of a small symbol.
type allowed [256]bool

// mostHoles is how many values that are not allowed are said one by one.
const mostHoles = 4

// values says terms about a small symbol by its values, all of which are tried: from
// where to where they go, and which between are not among them.
func (z *simplifier) values(terms []*symbolic.Expr, s *symbolic.Expr) []*symbolic.Expr {
	program, sets, every := symbolic.Compile(terms), make([]allowed, len(terms)), make([]bool, len(terms))
	low, high := -1, -1
	for v := range 1 << s.Bits {
		for i, truth := range program.Run([]symbolic.Value{{Lo: uint64(v)}}) {
			sets[i][v] = truth.Lo != 0
		}
		if meet(sets, every, v) {
			if low < 0 {
				low = v
			}
			high = v
		}
	}
	var holes []*symbolic.Expr
	for v := low; v < high; v++ {
		if !meet(sets, every, v) {
			holes = append(holes, z.pool.Not(z.pool.Eq(s, z.pool.Word(uint64(v), s.Bits))))
		}
	}
	if low < 0 || len(holes) > mostHoles {
		return needed(terms, sets, s)
	}
	return append(z.between(s, uint64(low), uint64(high), false), holes...)
}

// needed are those of terms without which values of a symbol would be allowed that are not.
func needed(terms []*symbolic.Expr, sets []allowed, s *symbolic.Expr) []*symbolic.Expr {
	without := make([]bool, len(terms))
	var kept []*symbolic.Expr
	for i, t := range terms {
		without[i] = true
		for v := range 1 << s.Bits {
			if !sets[i][v] && meet(sets, without, v) {
				without[i] = false // it alone excludes the value
				kept = append(kept, t)
				break
			}
		}
	}
	return kept
}

// meet tells whether a value is in all sets, but for those left out.
func meet(sets []allowed, without []bool, v int) bool {
	for i := range sets {
		if !without[i] && !sets[i][v] {
			return false
		}
	}
	return true
}
