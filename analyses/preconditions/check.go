package preconditions

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/symbolic/exec"
)

// Content is the bytes of a file.
type Content interface {
	io.ReaderAt
	Size() int64
}

// Input is what a run would be given.
type Input struct {
	Args, Env []string
	// Open gives a file by the name that symbols have for it: "argv[2]" is the file
	// whose path is that argument, "stdin" standard input. Nil: there is none.
	Open func(name string) Content
}

// Checker decides inputs. It does not change, and may be used by several goroutines.
type Checker struct {
	set     *Set
	program *symbolic.Program
	sources []source
}

// source is where the value of a symbol comes from.
type source struct {
	kind    sourceKind
	index   int    // of an argument
	name    string // of a variable or a file
	at      int64  // of a byte
	derived *exec.Derived
	of      *source // what a function was given
}

type sourceKind uint8

const (
	argument sourceKind = iota
	variable
	file
	size
	result
)

// NewChecker makes the Checker of a set. It fails if a term is about something that
// is not known before a run, such as what a socket brings.
func NewChecker(s *Set) (*Checker, error) {
	c := &Checker{set: s, program: symbolic.Compile(s.Terms)}
	for _, name := range c.program.Symbols() {
		x, ok := s.source(name)
		if !ok {
			return nil, fmt.Errorf("%s is not known before the run", name)
		}
		c.sources = append(c.sources, x)
	}
	return c, nil
}

// source finds out what a symbol is.
func (s *Set) source(name string) (source, bool) {
	if d := s.Derived[name]; d != nil {
		of, ok := whole(d.Input)
		return source{kind: result, derived: d, of: &of}, ok && (of.kind == argument || of.kind == variable)
	}
	if inner, ok := cutBoth(name, "size(", ")"); ok {
		return source{kind: size, name: inner}, true
	}
	base, at, ok := splitByte(name)
	if !ok {
		return source{}, false
	}
	x, ok := whole(base)
	x.at = int64(at)
	return x, ok
}

// whole finds out what the bytes of a name belong to.
func whole(base string) (source, bool) {
	if inner, ok := cutBoth(base, "argv[", "]"); ok {
		n, err := strconv.Atoi(inner)
		return source{kind: argument, index: n}, err == nil && n >= 0
	}
	if inner, ok := cutBoth(base, "env[", "]"); ok {
		return source{kind: variable, name: inner}, true
	}
	if inner, ok := cutBoth(base, "file(", ")"); ok {
		return source{kind: file, name: inner}, true
	}
	return source{kind: file, name: base}, base == "stdin"
}

func cutBoth(text, prefix, suffix string) (string, bool) {
	inner, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(inner, suffix)
}

// Levels are, for each term, the last of the program's inputs that it is about, in the
// order in which a run gets them: 0 for arguments, 1 for variables, 2 for files.
func (c *Checker) Levels() []int {
	levels := make([]int, len(c.set.Terms))
	for i, t := range c.set.Terms {
		symbolic.Symbols(t, func(e *symbolic.Expr) {
			x, _ := c.set.source(e.Name)
			if x.kind == result {
				x = *x.of
			}
			levels[i] = max(levels[i], int(min(x.kind, file)))
		})
	}
	return levels
}

// Check decides an input: the number of the first term that it does not satisfy, and
// -1 if it satisfies all. Shape tells whether it has as many arguments, and the
// variables, that the set is about; if not no term was looked at.
func (c *Checker) Check(in *Input) (failed int, shape bool) {
	if !c.shaped(in) {
		return 0, false
	}
	values, lacking := c.values(in)
	failed = c.program.First(values)
	if lacking != nil {
		if first := slices.IndexFunc(c.set.Terms, c.mentioning(lacking)); failed < 0 || first < failed {
			failed = first
		}
	}
	return failed, true
}

// Violated counts the terms that an input of the right shape does not satisfy.
func (c *Checker) Violated(in *Input) int {
	values, lacking := c.values(in)
	n, lacks := 0, c.mentioning(lacking)
	for i, v := range c.program.Run(values) {
		if v.Lo == 0 || lacks(c.set.Terms[i]) {
			n++
		}
	}
	return n
}

// shaped compares the number of arguments and the names of variables.
func (c *Checker) shaped(in *Input) bool {
	if len(in.Args) != c.set.Args || len(in.Env) != len(c.set.Env) {
		return false
	}
	for i, name := range c.set.Env {
		have := in.Env[i]
		if !strings.Contains(name, "=") {
			have, _, _ = strings.Cut(have, "=")
		}
		if have != name {
			return false
		}
	}
	return true
}

// mentioning tells of terms whether they are about one of some symbols.
func (c *Checker) mentioning(names map[string]bool) func(t *symbolic.Expr) bool {
	known := map[*symbolic.Expr]bool{nil: false}
	var some func(e *symbolic.Expr) bool
	some = func(e *symbolic.Expr) bool {
		if _, done := known[e]; !done {
			known[e] = e.Op == symbolic.Symbol && names[e.Name] || some(e.A) || some(e.B) || some(e.C)
		}
		return known[e]
	}
	return some
}

// values are those of the symbols, in the order of Symbols, and the names of those
// that the input lacks.
func (c *Checker) values(in *Input) (values []symbolic.Value, lacking map[string]bool) {
	values = make([]symbolic.Value, len(c.sources))
	for i := range c.sources {
		v, ok := c.sources[i].value(in)
		values[i] = v
		if !ok {
			if lacking == nil {
				lacking = map[string]bool{}
			}
			lacking[c.program.Symbols()[i]] = true
		}
	}
	return values, lacking
}

// Symbols are the names of the symbols that the set is about.
func (c *Checker) Symbols() []string { return c.program.Symbols() }

// value is what an input has; false: it lacks that.
func (x *source) value(in *Input) (symbolic.Value, bool) {
	switch x.kind {
	case argument, variable:
		text, ok := x.text(in)
		switch {
		case !ok || x.at > int64(len(text)):
			return symbolic.Value{}, false
		case x.at == int64(len(text)):
			return symbolic.Value{}, true
		}
		return symbolic.Value{Lo: uint64(text[x.at])}, true
	case result:
		text, ok := x.of.text(in)
		return x.derived.Value([]byte(text)), ok
	}
	content := in.Open(x.name)
	if content == nil {
		return symbolic.Value{}, false
	}
	if x.kind == size {
		return symbolic.Value{Lo: uint64(content.Size())}, true
	}
	var b [1]byte
	if n, _ := content.ReadAt(b[:], x.at); n == 0 {
		return symbolic.Value{}, false
	}
	return symbolic.Value{Lo: uint64(b[0])}, true
}

// text is an argument or the value of a variable.
func (x *source) text(in *Input) (string, bool) {
	if x.kind == argument {
		if x.index >= len(in.Args) {
			return "", false
		}
		return in.Args[x.index], true
	}
	for _, v := range in.Env {
		if name, value, _ := strings.Cut(v, "="); name == x.name {
			return value, true
		}
	}
	return "", false
}
