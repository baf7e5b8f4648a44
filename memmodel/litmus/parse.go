package litmus

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// MaxThreads bounds the threads of a test.
const MaxThreads = 8

// parser holds a test while it is read.
type parser struct {
	*Test
}

// Parse reads a test. The name of the file is for errors only.
func Parse(file, text string) (*Test, error) {
	text, err := stripComments(file, text)
	if err != nil {
		return nil, err
	}
	p := parser{&Test{File: file}}
	parts, err := p.splitSections(text)
	if err != nil {
		return nil, err
	}
	steps := []func() error{
		func() error { return p.parseHeader(parts.header) },
		func() error { return p.parseInitialState(newReader(file, parts.init.text, parts.init.line)) },
		func() error { return p.parseCode(parts.code) },
		func() error { return p.parseTail(newReader(file, parts.tail.text, parts.tail.line)) },
		p.checkTest,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return p.Test, nil
}

// section is a part of the file with the number of its first line.
type section struct {
	text string
	line int
}

type sections struct{ header, init, code, tail section }

var tailStart = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)(^|;)[ \t]*(~[ \t]*exists|not[ \t]+exists|exists|forall|filter|locations)\b`)
})

// splitSections finds the parts of a test: the head before the initial state, the
// initial state, the code, and the text after the code.
func (p parser) splitSections(text string) (s sections, err error) {
	open := strings.IndexByte(text, '{')
	if open < 0 {
		return s, position{p.File, 1 + strings.Count(strings.TrimRight(text, "\n"), "\n")}.errorSyntax("", "the initial state in braces")
	}
	end, depth := open, 0
	for ; end < len(text); end++ {
		if text[end] == '{' {
			depth++
		} else if text[end] == '}' {
			if depth--; depth == 0 {
				break
			}
		}
	}
	lineOf := func(at int) int { return 1 + strings.Count(text[:at], "\n") }
	if end == len(text) {
		return s, position{p.File, lineOf(open)}.errorSyntax("an initial state without an end", quoteTrimmed("}"))
	}
	s.header = section{text[:open], 1}
	s.init = section{text[open+1 : end], lineOf(open)}
	rest := text[end+1:]
	tail := tailStart().FindStringIndex(rest)
	if tail == nil {
		at := lineOf(len(strings.TrimRight(text, "\n \t")))
		return s, position{p.File, at}.errorSyntax("", "exists, ~exists or forall after the code")
	}
	at := tail[0]
	if rest[at] == ';' {
		at++
	}
	s.code = section{rest[:at], lineOf(end)}
	s.tail = section{rest[at:], lineOf(end + 1 + at)}
	return s, nil
}

// parseHeader reads the architecture, the name, the description and the lines
// KEY=VALUE.
func (p parser) parseHeader(s section) error {
	seen := false
	for i, line := range strings.Split(s.text, "\n") {
		line = strings.TrimSpace(line)
		at := position{p.File, s.line + i}
		switch {
		case line == "":
		case !seen:
			seen = true
			fields := strings.Fields(line)
			if fields[0] != "X86_64" && fields[0] != "X86" {
				return at.errorSyntax(quoteTrimmed(fields[0]), "the architecture X86_64 or X86")
			}
			if len(fields) != 2 {
				return at.errorSyntax(quoteTrimmed(line), "the architecture and the test's name")
			}
			p.Arch, p.Name = fields[0], fields[1]
		case line[0] == '"':
			p.Doc = strings.Trim(line, "\"")
		default:
			key, value, ok := strings.Cut(line, "=")
			if !ok {
				return at.errorSyntax(quoteTrimmed(line), "KEY=VALUE, a description in double quotes, or the initial state in braces")
			}
			p.Meta = append(p.Meta, Meta{strings.TrimSpace(key), strings.TrimSpace(value)})
		}
	}
	if !seen {
		return position{p.File, 1}.errorSyntax("", "the architecture and the test's name")
	}
	return nil
}

// parseTail reads locations, filter and condition.
func (p parser) parseTail(r *reader) error {
	for {
		switch t := r.peekToken(); {
		case r.acceptWord("locations"):
			if err := p.locations(r); err != nil {
				return err
			}
		case r.acceptWord("filter"):
			prop, err := p.parseProposition(r)
			if err != nil {
				return err
			}
			p.Filter = prop
		case r.acceptWord("exists"):
			return p.condition(r, Exists)
		case r.acceptWord("forall"):
			return p.condition(r, ForAll)
		case t.text == "~" || t.text == "not":
			r.nextToken()
			if !r.acceptWord("exists") {
				return r.errorExpected(quoteTrimmed("exists"))
			}
			return p.condition(r, NotExists)
		default:
			return r.errorExpected("locations, filter, exists, ~exists or forall")
		}
	}
}

func (p parser) condition(r *reader, q Quantifier) error {
	prop, err := p.parseProposition(r)
	if err != nil {
		return err
	}
	p.Quant, p.Cond = q, prop
	r.acceptText(";")
	if r.peekToken().kind != tokEnd {
		return r.errorExpected("the end of the test, /\\, \\/ or =>")
	}
	return nil
}

// locations reads [x; 0:rax;] with optional types.
func (p parser) locations(r *reader) error {
	if err := r.expectText("["); err != nil {
		return err
	}
	for !r.acceptText("]") {
		typ, typed, err := p.parseType(r)
		if err != nil {
			return err
		}
		t := r.peekToken()
		loc, err := p.parseLocation(r)
		if err != nil {
			return err
		}
		if typed {
			if err := p.setLocationType(r.positionOf(t), loc, typ); err != nil {
				return err
			}
		}
		p.Locations = append(p.Locations, loc)
		if !r.acceptText(";") && r.peekToken().text != "]" {
			return r.errorExpected(quoteTrimmed(";") + " or " + quoteTrimmed("]"))
		}
	}
	return nil
}

// setLocationType gives a location the type that `locations` says.
func (p parser) setLocationType(at position, loc Loc, typ Type) error {
	if loc.IsReg() {
		p.setRegisterType(loc.Thread, loc.Reg, typ)
		return nil
	}
	v := p.Var(loc.Name)
	if v.Typed && v.Type != typ {
		return at.errorMeaning("%s has the type %s, and %s here", v.Name, v.Type.Name, typ.Name)
	}
	v.Type, v.Typed = typ, true
	return nil
}

// checkTest lays the locations out and looks for mistakes that only show when all is read.
func (p parser) checkTest() error {
	for i := range p.Vars {
		v := &p.Vars[i]
		if !v.Typed && slices.ContainsFunc(v.Init, func(x Value) bool { return x.Sym != "" }) {
			v.Type = int64Type // a pointer
		}
	}
	p.layOutLocations()
	if p.End()-DataBase > 4096 {
		return position{p.File, 1}.errorMeaning("the locations take %d bytes, more than the 4096 that a test may have", p.End()-DataBase)
	}
	for t := range p.Threads {
		if err := p.resolveThread(t); err != nil {
			return err
		}
	}
	p.bindAtoms(p.Cond)
	if p.Filter != nil {
		p.bindAtoms(p.Filter)
	}
	return nil
}
