package constraints

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// pruningRounds is how often new knowledge is used to learn more, and maxExprSize the number of
// operations up to which an expression is considered.
const (
	pruningRounds = 8
	maxExprSize   = 256
)

// knownValues has the values that some symbols must have.
type knownValues struct {
	*systemBuilder
	known map[string]*symbolic.Expr
	// tests are the conditions on one symbol alone, by its name.
	tests map[string][]*symbolic.Expr
}

// pruneByValue leaves out the matches that contradict a condition, by constants alone: the written
// value is a constant, or becomes one because all writes that a read may see have the same value.
func (b *systemBuilder) pruneByValue(reads []*candidates) {
	v := &knownValues{systemBuilder: b, known: map[string]*symbolic.Expr{}}
	for range pruningRounds {
		v.gatherTests()
		changed := false
		for _, c := range reads {
			changed = v.filterMatches(c) || changed
		}
		if !changed {
			return
		}
	}
}

// gatherTests finds the conditions that are on one symbol, as far as is known.
func (v *knownValues) gatherTests() {
	v.tests = map[string][]*symbolic.Expr{}
	for _, list := range [][]model.Condition{v.trace.Path, v.trace.Bug} {
		for _, c := range list {
			e := v.substituteKnown(c.Expr)
			if e == nil || e.IsConst() {
				continue
			}
			if s := onlySymbol(e); s != "" {
				v.tests[s] = append(v.tests[s], e)
			}
		}
	}
}

// substituteKnown substitutes the known values in an expression; nil if it is too large.
func (v *knownValues) substituteKnown(e *symbolic.Expr) *symbolic.Expr {
	if e.Size() > maxExprSize {
		return nil
	}
	return v.pool.Substitute(e, func(name string) *symbolic.Expr { return v.known[name] })
}

// onlySymbol is the one symbol of an expression, or "".
func onlySymbol(e *symbolic.Expr) string {
	count, name := 0, ""
	symbolic.Symbols(e, func(s *symbolic.Expr) {
		count++
		name = s.Name
	})
	if count != 1 {
		return ""
	}
	return name
}

// filterMatches removes from a read the writes that it cannot have seen, and notes its value if
// that is the same for all others. It returns whether anything has changed.
func (v *knownValues) filterMatches(c *candidates) bool {
	symbol := v.trace.Events[c.Event].Symbol
	if c.value != symbol || v.known[symbol.Name] != nil {
		return false
	}
	before := c.countMatches()
	values := map[*symbolic.Expr]bool{}
	if c.start {
		c.start = v.isPossible(symbol, c.cell.Content(v.trace, c.Index), values)
	}
	c.from = slices.DeleteFunc(c.from, func(w *model.Access) bool {
		return !v.isPossible(symbol, c.cell.Part(v.trace, w, v.trace.Events[w.Event].Value), values)
	})
	changed := c.countMatches() != before
	if len(values) == 1 {
		for e := range values {
			if e != nil {
				v.known[symbol.Name] = e
				changed = true
			}
		}
	}
	return changed
}

// isPossible reports whether a symbol may have the written value, and notes the value, nil if it is
// not a constant.
func (v *knownValues) isPossible(symbol, written *symbolic.Expr, values map[*symbolic.Expr]bool) bool {
	e := v.substituteKnown(written)
	if e == nil || !e.IsConst() {
		values[nil] = true
		return true
	}
	for _, test := range v.tests[symbol.Name] {
		is := v.pool.Substitute(test, func(name string) *symbolic.Expr {
			if name == symbol.Name {
				return e
			}
			return nil
		})
		if is.IsConst() && is.Value.Lo == 0 {
			return false
		}
	}
	values[e] = true
	return true
}
