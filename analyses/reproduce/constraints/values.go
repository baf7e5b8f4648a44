package constraints

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// rounds is how often what has become known is used to learn more, and small how
// many operations an expression has that is worth looking at.
const (
	rounds = 8
	small  = 256
)

// values knows what some symbols must be.
type values struct {
	*builder
	known map[string]*symbolic.Expr
	// tests are the conditions on one symbol alone, by its name.
	tests map[string][]*symbolic.Expr
}

// byValue leaves out the matches that contradict a condition, by constants alone:
// what is written is a constant, or becomes one because all that a read may see is
// the same.
func (b *builder) byValue(reads []*candidates) {
	v := &values{builder: b, known: map[string]*symbolic.Expr{}}
	for range rounds {
		v.gather()
		changed := false
		for _, c := range reads {
			changed = v.filter(c) || changed
		}
		if !changed {
			return
		}
	}
}

// gather finds the conditions that are on one symbol, as far as is known.
func (v *values) gather() {
	v.tests = map[string][]*symbolic.Expr{}
	for _, list := range [][]model.Condition{v.trace.Path, v.trace.Bug} {
		for _, c := range list {
			e := v.reduced(c.Expr)
			if e == nil || e.IsConst() {
				continue
			}
			if s := single(e); s != "" {
				v.tests[s] = append(v.tests[s], e)
			}
		}
	}
}

// reduced is an expression with what is known put in; nil if it is too large.
func (v *values) reduced(e *symbolic.Expr) *symbolic.Expr {
	if e.Size() > small {
		return nil
	}
	return v.pool.Substitute(e, func(name string) *symbolic.Expr { return v.known[name] })
}

// single is the one symbol of an expression, or "".
func single(e *symbolic.Expr) string {
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

// filter takes from a read what it cannot have seen, and notes its value if that is
// the same whatever it saw. It tells whether anything has changed.
func (v *values) filter(c *candidates) bool {
	symbol := v.trace.Events[c.Event].Symbol
	if c.value != symbol || v.known[symbol.Name] != nil {
		return false
	}
	before := c.matches()
	values := map[*symbolic.Expr]bool{}
	if c.start {
		c.start = v.possible(symbol, c.cell.Content(v.trace, c.Index), values)
	}
	c.from = slices.DeleteFunc(c.from, func(w *model.Access) bool {
		return !v.possible(symbol, c.cell.Part(v.trace, w, v.trace.Events[w.Event].Value), values)
	})
	changed := c.matches() != before
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

// possible tells whether a symbol may be what was written, and notes the value, nil
// if it is no constant.
func (v *values) possible(symbol, written *symbolic.Expr, values map[*symbolic.Expr]bool) bool {
	e := v.reduced(written)
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
