package preconditions

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Set is the conjunction that an input must satisfy.
type Set struct {
	// Args is the number of arguments, with the program's name. Env has the variables in
	// their order: NAME=VALUE, or NAME if the value is subject to the terms.
	Args int
	Env  []string
	// Terms are truths, expressions of one bit, about symbols. Derived are the symbols
	// among them that stand for results of functions.
	Terms   []*symbolic.Expr
	Derived map[string]*concolic.Derived
}

// Lines writes a Set as text.
func (s *Set) Lines() []string {
	lines := []string{fmt.Sprintf("args %d", s.Args)}
	for _, name := range s.Env {
		lines = append(lines, fmt.Sprintf("env %q", name))
	}
	used := map[string]bool{}
	symbolic.SymbolsOf(s.Terms, func(e *symbolic.Expr) { used[e.Name] = true })
	var derived []string
	for name := range s.Derived {
		if used[name] {
			derived = append(derived, name)
		}
	}
	slices.Sort(derived)
	for _, name := range derived {
		d := s.Derived[name]
		lines = append(lines, fmt.Sprintf("derived %s %s %d %q %q", d.Function, d.Result, d.Bits, d.Input, name))
	}
	text, numbers := symbolic.Lines(s.Terms)
	for _, line := range text {
		lines = append(lines, "expr "+line)
	}
	for _, n := range numbers {
		lines = append(lines, fmt.Sprintf("term %d", n))
	}
	return lines
}

// Parse reads the text that Lines writes; a pool makes the expressions. It returns an error
// for a damaged line.
func Parse(lines []string, p *symbolic.Pool) (*Set, error) {
	s := &Set{Derived: map[string]*concolic.Derived{}}
	r := symbolic.NewParser(p)
	for i, line := range lines {
		word, rest, _ := strings.Cut(line, " ")
		var err error
		switch word {
		case "args":
			s.Args, err = parseNumber(rest)
		case "env":
			var name string
			name, err = strconv.Unquote(rest)
			s.Env = append(s.Env, name)
		case "derived":
			var d concolic.Derived
			var name string
			_, err = fmt.Sscanf(rest, "%s %s %d %q %q", &d.Function, &d.Result, &d.Bits, &d.Input, &name)
			s.Derived[name] = &d
		case "expr":
			err = r.ParseLine(rest)
		case "term":
			var n int
			n, err = parseNumber(rest)
			e := r.Expr(n)
			if err == nil && (e == nil || e.Bits != 1) {
				err = fmt.Errorf("%d is no truth", n)
			}
			s.Terms = append(s.Terms, e)
		default:
			err = fmt.Errorf("%q begins no line", word)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d of the preconditions: %w", i+1, err)
		}
	}
	return s, nil
}

func parseNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", text)
	}
	return n, nil
}

// String is the terms in readable form, joined by "∧"; "any" if there are none.
func (s *Set) String() string {
	if len(s.Terms) == 0 {
		return "any"
	}
	return strings.Join(s.Texts(), " ∧ ")
}

// matchByteEquality matches the term that a byte of an input has a value.
func matchByteEquality(t *symbolic.Expr) (base string, at int, value byte, ok bool) {
	if t.Op != symbolic.Eq || t.A.Op != symbolic.Symbol || t.B.Op != symbolic.Const || t.A.Bits != 8 {
		return "", 0, 0, false
	}
	base, at, ok = splitByteName(t.A.Name)
	return base, at, byte(t.B.Value.Lo), ok
}

// splitByteName splits the name of a byte: "argv[1][0]" is byte 0 of "argv[1]".
func splitByteName(name string) (base string, at int, ok bool) {
	open := strings.LastIndexByte(name, '[')
	if open < 0 || !strings.HasSuffix(name, "]") {
		return "", 0, false
	}
	at, err := strconv.Atoi(name[open+1 : len(name)-1])
	return name[:open], at, err == nil && at >= 0
}
