package preconditions

import (
	"fmt"
	"maps"

	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// partsUsed are the symbols of terms, in the order of their first use, and the only part that terms use of each: its
// lowest bits, or the integer to which it is converted; nil: all of it.
type partsUsed struct {
	pool    *symbolic.Pool
	symbols []*symbolic.Expr
	parts   map[*symbolic.Expr]*symbolic.Expr
}

func findParts(p *symbolic.Pool, terms []*symbolic.Expr) *partsUsed {
	u := &partsUsed{pool: p, parts: map[*symbolic.Expr]*symbolic.Expr{}}
	seen := map[*symbolic.Expr]bool{}
	var visit func(e *symbolic.Expr)
	visit = func(e *symbolic.Expr) {
		if e == nil || seen[e] {
			return
		}
		seen[e] = true
		switch {
		case e.Op == symbolic.Symbol:
			u.add(e, nil)
		case e.Op == symbolic.Extract && e.A.Op == symbolic.Symbol && e.Low+e.Bits < e.A.Bits:
			u.add(e.A, p.Extract(e.A, 0, e.Low+e.Bits))
		case e.Op == symbolic.FToInt && e.A.Op == symbolic.Symbol:
			u.add(e.A, e)
		default:
			visit(e.A)
			visit(e.B)
			visit(e.C)
		}
	}
	for _, t := range terms {
		visit(t)
	}
	return u
}

// add notes the use of a part of a symbol.
func (u *partsUsed) add(s, part *symbolic.Expr) {
	had, known := u.parts[s]
	switch {
	case !known:
		u.symbols = append(u.symbols, s)
	case had == nil || part == nil || had.Op != part.Op || part.Op != symbolic.Extract && part != had:
		part = nil
	case had.Bits > part.Bits:
		part = had
	}
	u.parts[s] = part
}

// narrowSymbols maps symbols to others, which stand for the only part that is used of them.
type narrowSymbols struct {
	pool   *symbolic.Pool
	narrow map[*symbolic.Expr]*symbolic.Expr
	parts  map[string]*symbolic.Expr // by the names of narrow symbols
}

func (n *narrowSymbols) add(wide, part *symbolic.Expr, name string) {
	n.narrow[wide] = n.pool.Symbol(name, part.Bits)
	n.parts[name] = part
}

// apply puts the narrow symbols into terms.
func (n *narrowSymbols) apply(terms []*symbolic.Expr) []*symbolic.Expr {
	return n.pool.ReplaceAll(terms, func(e *symbolic.Expr) *symbolic.Expr {
		switch narrow := n.narrow[e.A]; {
		case narrow == nil:
			return nil
		case e.Op == symbolic.Extract:
			return n.pool.Extract(narrow, e.Low, e.Bits)
		default:
			return narrow
		}
	})
}

// undo puts the parts for which narrow symbols stand into terms.
func (n *narrowSymbols) undo(terms []*symbolic.Expr) []*symbolic.Expr {
	return n.pool.SubstituteAll(terms, func(name string) *symbolic.Expr { return n.parts[name] })
}

// extend makes an assignment of values to wide symbols one to the narrow symbols as well.
func (n *narrowSymbols) extend(a symbolic.Assignment) symbolic.Assignment {
	e := symbolic.NewEvaluator(a)
	return func(name string) (symbolic.Value, bool) {
		if part := n.parts[name]; part != nil {
			v, err := e.Value(part)
			return v, err == nil
		}
		return a(name)
	}
}

func newNarrowSymbols(p *symbolic.Pool) *narrowSymbols {
	return &narrowSymbols{pool: p, narrow: map[*symbolic.Expr]*symbolic.Expr{}, parts: map[string]*symbolic.Expr{}}
}

// narrowed makes narrow symbols for the symbols of which terms use only a part. The rules about symbols, such as
// those about bounds and single values, then apply to this part.
func narrowed(p *symbolic.Pool, terms []*symbolic.Expr) *narrowSymbols {
	n, used := newNarrowSymbols(p), findParts(p, terms)
	for _, s := range used.symbols {
		if part := used.parts[s]; part != nil {
			n.add(s, part, part.String())
		}
	}
	return n
}

// NameNumbers replaces numbers that strtol(3) read, and of which the terms use only the low 32 bits, by results of
// atoi(3), which these bits are: compilers inline atoi as a call of strtol. It returns the recorded values of the
// symbols, of which recorded are those before.
func (s *Set) NameNumbers(p *symbolic.Pool, recorded symbolic.Assignment) symbolic.Assignment {
	n, derived, used := newNarrowSymbols(p), maps.Clone(s.Derived), findParts(p, s.Terms)
	for _, symbol := range used.symbols {
		d, part := s.Derived[symbol.Name], used.parts[symbol]
		if d == nil || d.Result != "number" || symbol.Bits != 64 || part == nil || part.Op != symbolic.Extract || part.Bits > 32 {
			continue
		}
		name := fmt.Sprintf("atoi(%s)", d.Input)
		derived[name] = &concolic.Derived{Summary: concolic.Summary{Function: "atoi", Result: "number", Bits: 32}, Input: d.Input}
		n.add(symbol, p.Extract(symbol, 0, 32), name)
	}
	s.Terms, s.Derived = n.apply(s.Terms), derived
	return n.extend(recorded)
}
