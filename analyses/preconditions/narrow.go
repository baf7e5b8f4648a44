package preconditions

import (
	"fmt"
	"maps"

	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// lowBits returns the symbols of which terms use only some low bits, and the number of these, which is at least that
// of the highest one used. Symbols are in the order of their first use.
func lowBits(terms []*symbolic.Expr) (symbols []*symbolic.Expr, bits map[*symbolic.Expr]int) {
	bits = map[*symbolic.Expr]int{}
	use := func(s *symbolic.Expr, n int) {
		if _, known := bits[s]; !known {
			symbols = append(symbols, s)
		}
		bits[s] = max(bits[s], n)
	}
	seen := map[*symbolic.Expr]bool{}
	var visit func(e *symbolic.Expr)
	visit = func(e *symbolic.Expr) {
		if e == nil || seen[e] {
			return
		}
		seen[e] = true
		switch {
		case e.Op == symbolic.Symbol:
			use(e, e.Bits)
		case e.Op == symbolic.Extract && e.A.Op == symbolic.Symbol:
			use(e.A, e.Low+e.Bits)
		default:
			visit(e.A)
			visit(e.B)
			visit(e.C)
		}
	}
	for _, t := range terms {
		visit(t)
	}
	return symbols, bits
}

// narrowSymbols maps symbols to others, of as many bits as are used of them.
type narrowSymbols map[*symbolic.Expr]*symbolic.Expr

// apply puts the narrow symbols into terms.
func (n narrowSymbols) apply(p *symbolic.Pool, terms []*symbolic.Expr) []*symbolic.Expr {
	return p.ReplaceAll(terms, func(e *symbolic.Expr) *symbolic.Expr {
		if e.Op != symbolic.Extract || n[e.A] == nil {
			return nil
		}
		return p.Extract(n[e.A], e.Low, e.Bits)
	})
}

// undo puts the bits of the symbols that the narrow ones stand for into terms.
func (n narrowSymbols) undo(p *symbolic.Pool, terms []*symbolic.Expr) []*symbolic.Expr {
	bits := map[string]*symbolic.Expr{}
	for wide, narrow := range n {
		bits[narrow.Name] = p.Extract(wide, 0, narrow.Bits)
	}
	return p.SubstituteAll(terms, func(name string) *symbolic.Expr { return bits[name] })
}

// extend makes an assignment of values to wide symbols one to the narrow symbols as well.
func (n narrowSymbols) extend(a symbolic.Assignment) symbolic.Assignment {
	wide := map[string]string{}
	for w, narrow := range n {
		wide[narrow.Name] = w.Name
	}
	return func(name string) (symbolic.Value, bool) {
		if w, known := wide[name]; known {
			name = w
		}
		return a(name)
	}
}

// narrowed makes narrow symbols for the symbols of which terms use only some bits. The rules about symbols, such as
// those about bounds and single values, then apply to these bits.
func narrowed(p *symbolic.Pool, terms []*symbolic.Expr) narrowSymbols {
	n := narrowSymbols{}
	symbols, bits := lowBits(terms)
	for _, s := range symbols {
		if bits[s] < s.Bits {
			n[s] = p.Symbol(fmt.Sprintf("%s[%d:0]", s.Name, bits[s]-1), bits[s])
		}
	}
	return n
}

// NameNumbers replaces numbers that strtol(3) read, and of which the terms use only the low 32 bits, by results of
// atoi(3), which these bits are: compilers inline atoi as a call of strtol. It returns the recorded values of the
// symbols, of which recorded are those before.
func (s *Set) NameNumbers(p *symbolic.Pool, recorded symbolic.Assignment) symbolic.Assignment {
	n, derived := narrowSymbols{}, maps.Clone(s.Derived)
	symbols, bits := lowBits(s.Terms)
	for _, symbol := range symbols {
		d := s.Derived[symbol.Name]
		if symbol.Bits <= 32 || bits[symbol] > 32 || d == nil || d.Result != "number" {
			continue
		}
		name := "atoi(" + d.Input + ")"
		derived[name] = &concolic.Derived{Summary: concolic.Summary{Function: "atoi", Result: "number", Bits: 32}, Input: d.Input}
		n[symbol] = p.Symbol(name, 32)
	}
	s.Terms, s.Derived = n.apply(p, s.Terms), derived
	return n.extend(recorded)
}
