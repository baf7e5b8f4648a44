package preconditions

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Limits of a page.
const (
	pageTerms    = 40  // terms
	pageColumns  = 160 // characters of a term
	pageTermSize = 400 // nodes of a term that is printed
)

// Page returns the terms in readable form, grouped by the inputs that they are about: a line with the inputs of a
// group, and an indented one for each term, the longest ones last. Terms that are too long are cut, and those that do
// not fit on a page are left out; cut is the number of both.
func (s *Set) Page() (lines []string, cut int) {
	printed := 0
	for _, g := range s.groupByInputs() {
		texts, large := g.texts()
		cut += large
		if printed == pageTerms {
			cut += len(texts)
			continue
		}
		lines = append(lines, strings.Join(g.inputs, ", "))
		fit := texts[:min(len(texts), pageTerms-printed)]
		printed, cut = printed+len(fit), cut+len(texts)-len(fit)
		for _, t := range fit {
			if utf8.RuneCountInString(t) > pageColumns {
				t = string([]rune(t)[:pageColumns]) + "..."
				cut++
			}
			lines = append(lines, "  "+t)
		}
	}
	return lines, cut
}

// inputGroup has the terms about the same inputs.
type inputGroup struct {
	inputs []string
	terms  []*symbolic.Expr
}

// texts returns the terms in readable form, the shortest first. A term that is too large to be written out, as large
// counts, is described.
func (g *inputGroup) texts() (texts []string, large int) {
	var small Set
	for _, t := range g.terms {
		if t.Size() <= pageTermSize {
			small.Terms = append(small.Terms, t)
		} else {
			large++
		}
	}
	texts = small.Texts()
	slices.SortStableFunc(texts, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	if large > 0 {
		texts = append(texts, fmt.Sprintf("%d terms of more than %d operations", large, pageTermSize))
	}
	return texts, large
}

// groupByInputs groups the terms, those about fewer inputs first.
func (s *Set) groupByInputs() []*inputGroup {
	groups := map[string]*inputGroup{}
	for _, t := range s.Terms {
		names := map[string]bool{}
		symbolic.Symbols(t, func(e *symbolic.Expr) { names[s.inputOf(e.Name)] = true })
		inputs := slices.SortedFunc(maps.Keys(names), compareInputs)
		key := strings.Join(inputs, "\x00")
		if groups[key] == nil {
			groups[key] = &inputGroup{inputs: inputs}
		}
		groups[key].terms = append(groups[key].terms, t)
	}
	return slices.SortedFunc(maps.Values(groups), func(a, b *inputGroup) int {
		return cmp.Or(cmp.Compare(len(a.inputs), len(b.inputs)), slices.CompareFunc(a.inputs, b.inputs, compareInputs))
	})
}

// inputOf is the input that a symbol is a part or a property of.
func (s *Set) inputOf(symbol string) string {
	if d := s.Derived[symbol]; d != nil {
		input, _, _ := d.Range()
		return input
	}
	for _, property := range []string{"size(", "sha256("} {
		if inner, ok := cutAround(symbol, property, ")"); ok {
			return inner
		}
	}
	if base, _, ok := splitByteName(symbol); ok {
		return base
	}
	return symbol
}

// compareInputs orders arguments by their numbers, and before all others.
func compareInputs(a, b string) int {
	number := func(name string) int {
		inner, _ := cutAround(name, "argv[", "]")
		if n, err := strconv.Atoi(inner); err == nil {
			return n
		}
		return maxArguments
	}
	return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a, b))
}

// maxArguments is above the number of any argument.
const maxArguments = 1 << 30
