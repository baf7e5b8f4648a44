package preconditions

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Content is the bytes of a file.
type Content interface {
	io.ReaderAt
	Size() int64
}

// Input is the input of a run.
type Input struct {
	Args, Env []string
	// Open returns a file by its name in symbols: "argv[2]" is the file whose path is that
	// argument, "stdin" is standard input. nil: there is no such file.
	Open func(name string) Content
}

// Checker decides inputs. It does not change, and several goroutines may use it.
type Checker struct {
	set     *Set
	program *symbolic.Program
	sources []source
}

// source is the part of an input that is the value of a symbol.
type source struct {
	kind    sourceKind
	index   int    // of an argument
	name    string // of a variable or a file
	at      int64  // of a byte
	derived *concolic.Derived
	// of is the input whose bytes from one position to another are the string whose result is derived; a position
	// of -1 is the end of a text.
	of       *source
	from, to int
}

type sourceKind uint8

const (
	sourceArgument sourceKind = iota
	sourceVariable
	sourceFile
	sourceSize
	sourceContent
	sourceResult
)

// NewChecker makes the Checker of a set. It returns an error if a term is about data that
// is not known before a run, such as bytes from a socket.
func NewChecker(s *Set) (*Checker, error) {
	c := &Checker{set: s, program: symbolic.Compile(s.Terms)}
	for _, name := range c.program.Symbols() {
		x, ok := s.sourceOf(name)
		if !ok {
			return nil, fmt.Errorf("%s is not known before the run", name)
		}
		c.sources = append(c.sources, x)
	}
	return c, nil
}

// sourceOf finds the source of a symbol.
func (s *Set) sourceOf(name string) (source, bool) {
	if d := s.Derived[name]; d != nil {
		input, from, to := d.Range()
		of, ok := sourceOfInput(input)
		return source{kind: sourceResult, derived: d, of: &of, from: from, to: to}, ok
	}
	if inner, ok := cutAround(name, "size(", ")"); ok {
		return source{kind: sourceSize, name: inner}, true
	}
	if inner, ok := cutAround(name, "sha256(", ")"); ok {
		return source{kind: sourceContent, name: inner}, inner == "stdin" || strings.HasPrefix(inner, "argv[")
	}
	base, at, ok := splitByteName(name)
	if !ok {
		return source{}, false
	}
	x, ok := sourceOfInput(base)
	x.at = int64(at)
	return x, ok
}

// sourceOfInput finds the source of the bytes with a name.
func sourceOfInput(base string) (source, bool) {
	if inner, ok := cutAround(base, "argv[", "]"); ok {
		n, err := strconv.Atoi(inner)
		return source{kind: sourceArgument, index: n}, err == nil && n >= 0
	}
	if inner, ok := cutAround(base, "env[", "]"); ok {
		return source{kind: sourceVariable, name: inner}, true
	}
	if inner, ok := cutAround(base, "file(", ")"); ok {
		return source{kind: sourceFile, name: inner}, true
	}
	return source{kind: sourceFile, name: base}, base == "stdin"
}

func cutAround(text, prefix, suffix string) (string, bool) {
	inner, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(inner, suffix)
}

// Levels returns for each term the kind of the last of its inputs, in the order in which a
// run gets them: 0 for arguments, 1 for variables, 2 for files.
func (c *Checker) Levels() []int {
	levels := make([]int, len(c.set.Terms))
	for i, t := range c.set.Terms {
		symbolic.Symbols(t, func(e *symbolic.Expr) {
			x, _ := c.set.sourceOf(e.Name)
			if x.kind == sourceResult {
				x = *x.of
			}
			levels[i] = max(levels[i], int(min(x.kind, sourceFile)))
		})
	}
	return levels
}

// Check decides an input: it returns the index of the first term that the input does not
// satisfy, and -1 if it satisfies all. Shape is false, and no term is checked, if the
// number of arguments or the names of variables differ from the set's.
func (c *Checker) Check(in *Input) (failed int, shape bool) {
	if !c.hasShape(in) {
		return 0, false
	}
	values, lacking := c.symbolValues(in)
	failed = c.program.FirstFalse(values)
	if lacking != nil {
		if first := slices.IndexFunc(c.set.Terms, c.mentionsAny(lacking)); failed < 0 || first < failed {
			failed = first
		}
	}
	return failed, true
}

// Violated counts the terms that an input of the right shape does not satisfy.
func (c *Checker) Violated(in *Input) int {
	values, lacking := c.symbolValues(in)
	n, lacks := 0, c.mentionsAny(lacking)
	for i, v := range c.program.Run(values) {
		if v.Lo == 0 || lacks(c.set.Terms[i]) {
			n++
		}
	}
	return n
}

// hasShape reports whether the number of arguments and the names of variables are the
// set's.
func (c *Checker) hasShape(in *Input) bool {
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

// mentionsAny returns a predicate that reports whether a term is about one of some symbols.
func (c *Checker) mentionsAny(names map[string]bool) func(t *symbolic.Expr) bool {
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

// symbolValues returns the values of the symbols, in the order of Symbols, and the names of
// those that the input lacks.
func (c *Checker) symbolValues(in *Input) (values []symbolic.Value, lacking map[string]bool) {
	values = make([]symbolic.Value, len(c.sources))
	for i := range c.sources {
		v, ok := c.sources[i].readValue(in)
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

// Symbols returns the names of the symbols that the set is about.
func (c *Checker) Symbols() []string { return c.program.Symbols() }

// readValue returns the value in an input; false: the input lacks it.
func (x *source) readValue(in *Input) (symbolic.Value, bool) {
	switch x.kind {
	case sourceArgument, sourceVariable:
		text, ok := x.readText(in)
		switch {
		case !ok || x.at > int64(len(text)):
			return symbolic.Value{}, false
		case x.at == int64(len(text)):
			return symbolic.Value{}, true
		}
		return symbolic.Value{Lo: uint64(text[x.at])}, true
	case sourceResult:
		text, ok := x.of.readRange(in, x.from, x.to)
		return x.derived.Value(text), ok && x.derived.Defines(text)
	}
	content := in.Open(x.name)
	if content == nil {
		return symbolic.Value{}, false
	}
	switch x.kind {
	case sourceSize:
		return symbolic.Value{Lo: uint64(content.Size())}, true
	case sourceContent:
		return contentHash(content)
	}
	var b [1]byte
	if n, _ := content.ReadAt(b[:], x.at); n == 0 {
		return symbolic.Value{}, false
	}
	return symbolic.Value{Lo: uint64(b[0])}, true
}

// readRange returns the bytes from one position to another, which is -1 for the end of a text. False: the input lacks some.
func (x *source) readRange(in *Input, from, to int) ([]byte, bool) {
	switch x.kind {
	case sourceArgument, sourceVariable:
		text, ok := x.readText(in)
		if to < 0 {
			to = len(text)
		}
		if !ok || from > to || to > len(text) {
			return nil, false
		}
		return []byte(text[from:to]), true
	}
	content := in.Open(x.name)
	if content == nil || to < from {
		return nil, false
	}
	b := make([]byte, to-from)
	n, _ := content.ReadAt(b, int64(from))
	return b, n == len(b)
}

// readText returns an argument or the value of a variable.
func (x *source) readText(in *Input) (string, bool) {
	if x.kind == sourceArgument {
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
