package hybrid

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// A SyntaxError is a mistake in a schedule file.
type SyntaxError struct {
	Line            int
	Found, Expected string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d: found %s, expected %s", e.Line, e.Found, e.Expected)
}

// Parse reads a schedule file. Its errors are *SyntaxError.
func Parse(text string) (*File, error) {
	p := &parser{file: &File{Schedule: &event.Schedule{Objects: map[event.ObjectID]string{}}}, text: text}
	for at := 0; at < len(p.text); {
		p.line++
		p.next = len(p.text)
		line := p.text[at:]
		if n := strings.IndexByte(line, '\n'); n >= 0 {
			line, p.next = line[:n], at+n+1
		}
		word, rest, _ := strings.Cut(line, " ")
		if word == "end" {
			return p.parseEnd(rest, xxh3.HashString(p.text[:at]))
		}
		if word == "constraint" && p.file.Schedule.Constraints == nil {
			if next := p.parseConstraintsInParallel(at); next > at {
				at = next
				p.line--
				continue
			}
		}
		if err := p.parseLine(line); err != nil {
			return nil, err
		}
		at = p.next
	}
	return nil, &SyntaxError{p.line + 1, "the end of the file", "more lines, and the line \"end\""}
}

// parser reads a schedule file line by line.
type parser struct {
	file *File
	text string
	next int // where the next line begins
	line int
	rest string // of the line
	bad  *SyntaxError
}

func (p *parser) setError(found, expected string) {
	if p.bad == nil {
		p.bad = &SyntaxError{p.line, found, expected}
	}
}

// parseEnd checks the last line.
func (p *parser) parseEnd(sum string, want uint64) (*File, error) {
	if sum != fmt.Sprintf("%016x", want) {
		return nil, &SyntaxError{p.line, "the checksum " + sum, fmt.Sprintf("%016x: the file is damaged", want)}
	}
	for _, x := range []struct{ word, value string }{{"kind", p.file.Kind}, {"model", p.file.Model}} {
		if x.value == "" {
			return nil, &SyntaxError{p.line, "no " + x.word, "a line \"" + x.word + "\""}
		}
	}
	if err := p.checkReferences(); err != nil {
		return nil, err
	}
	return p.file, nil
}

// nextWord takes the next word of the line.
func (p *parser) nextWord() string {
	end := strings.IndexByte(p.rest, ' ')
	if end < 0 {
		end = len(p.rest)
	}
	return p.takeBytes(end)
}

// takeBytes takes n bytes of the line, and the space after them.
func (p *parser) takeBytes(n int) string {
	taken := p.rest[:n]
	p.rest = p.rest[min(n+1, len(p.rest)):]
	return taken
}

// safeDigits is how many digits of any base make a number that fits.
const safeDigits = 15

// parseNumber takes a number: most of a long file is numbers.
func (p *parser) parseNumber(base int) uint64 {
	n, i := uint64(0), 0
	for ; i < len(p.rest) && i <= safeDigits; i++ {
		d := digitValue(p.rest[i])
		if d >= uint64(base) {
			break
		}
		n = n*uint64(base) + d
	}
	if i > 0 && i <= safeDigits && (i == len(p.rest) || p.rest[i] == ' ') {
		p.takeBytes(i)
		return n
	}
	return p.convertNumber(p.nextWord(), base)
}

// digitValue is the value of a digit, or more than any has.
func digitValue(c byte) uint64 {
	switch {
	case c >= '0' && c <= '9':
		return uint64(c - '0')
	case c >= 'a' && c <= 'f':
		return uint64(c-'a') + 10
	}
	return math.MaxUint64
}

func (p *parser) convertNumber(word string, base int) uint64 {
	n, err := strconv.ParseUint(word, base, 64)
	if err != nil {
		p.setError(strconv.Quote(word), "a number")
	}
	return n
}

func (p *parser) parseInt() int { return int(min(p.parseNumber(10), 1<<31)) }

func (p *parser) parseSigned() int64 {
	word := p.nextWord()
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		p.setError(strconv.Quote(word), "a number")
	}
	return n
}

// parseName takes a word that is one of a list, and returns its number.
func (p *parser) parseName(list []string) int {
	word := p.nextWord()
	i := slices.Index(list, word)
	if i < 0 {
		p.setError(strconv.Quote(word), "a name that is known")
		return 0
	}
	return i
}

// parseQuoted takes the rest of the line, a text in quotes.
func (p *parser) parseQuoted() string {
	text, err := strconv.Unquote(p.rest)
	if err != nil {
		p.setError(p.rest, "a text in quotes")
	}
	return text
}

// parseLine reads a line.
func (p *parser) parseLine(line string) error {
	p.rest = line
	word := p.nextWord()
	f, s := p.file, p.file.Schedule
	if p.line == 1 {
		if line != FileStart+strconv.Itoa(Version) {
			p.setError(strconv.Quote(line), strconv.Quote(FileStart+strconv.Itoa(Version)))
		}
		return p.firstError()
	}
	switch word {
	case "kind":
		f.Kind = []string{"hybrid", "sync", "mem"}[p.parseName([]string{"hybrid", "sync", "mem"})]
	case "seed":
		f.Seed = p.parseNumber(10)
	case "cores":
		f.Cores = p.parseInt()
	case "layout":
		f.Layout = p.parseName([]string{"false", "true"}) == 1
	case "model":
		f.Model = p.nextWord()
	case "dir":
		f.Dir = p.parseQuoted()
	case "arg":
		f.Args = append(f.Args, p.parseQuoted())
	case "env":
		f.Env = append(f.Env, p.parseQuoted())
	case "input":
		f.Inputs = append(f.Inputs, Input{p.nextWord(), p.parseQuoted()})
	case "prune":
		f.Prune = Prune(p.parseName(pruneNames[:]))
	case "counts":
		f.Counts = Counts{p.parseNumber(10), p.parseNumber(10), p.parseNumber(10), p.parseNumber(10)}
	case "portable":
		s.Portable = true
		for p.rest != "" && p.bad == nil {
			s.Free = append(s.Free, p.parseSigned())
		}
	case "stuck":
		s.Stuck = true
	case "allocators":
		s.Allocators = true
	case "program":
		f.Program = p.nextWord()
	case "varying":
		f.Varying = append(f.Varying, p.parseQuoted())
	case "precondition":
		f.Preconditions = append(f.Preconditions, p.rest)
	case "thread":
		p.parseInt()
		s.Threads = append(s.Threads, p.nextWord())
	case "object":
		id := event.ObjectID(p.parseNumber(16))
		s.Objects[id] = p.parseQuoted()
	case "op":
		s.Operations = append(s.Operations, p.parseOperation())
	case "spin":
		p.parseSpinLoop()
	case "constraint":
		p.parseConstraint()
	default:
		p.setError(strconv.Quote(word), "a word that begins a line of a schedule")
	}
	return p.firstError()
}

func (p *parser) firstError() error {
	if p.bad != nil {
		return p.bad
	}
	return nil
}

func (p *parser) parseOperation() event.Operation {
	o := event.Operation{Thread: p.parseInt(), Part: event.Part(p.parseName(event.Parts()))}
	if o.Part == event.SystemCall || o.Part == event.SignalPart {
		o.Number = p.parseNumber(10)
	} else {
		o.Op = event.SyncOp(p.parseName(event.SyncOps()))
	}
	o.Object, o.Result = event.ObjectID(p.parseNumber(16)), p.parseSigned()
	o.At, o.Time = arch.Cycles(p.parseNumber(10)), arch.Cycles(p.parseNumber(10))
	for p.rest != "" && p.bad == nil {
		addr, data, _ := strings.Cut(p.nextWord(), ":")
		at, err := strconv.ParseUint(addr, 16, 64)
		bytes, err2 := hex.DecodeString(data)
		if err != nil || err2 != nil {
			p.setError(strconv.Quote(addr+":"+data), "ADDRESS:BYTES in hexadecimal")
		}
		o.Writes = append(o.Writes, event.Write{Addr: arch.Addr(at), Data: bytes})
	}
	if o.Part == event.SignalPart && len(o.Writes) != 1 && p.bad == nil {
		p.setError(fmt.Sprintf("%d pairs of an address and bytes for a signal", len(o.Writes)), "one")
	}
	return o
}

func (p *parser) parseConstraint() {
	f, s := p.file, p.file.Schedule
	if s.Constraints == nil {
		// They come last, one a line.
		most := 1 + strings.Count(p.text[p.next:], "\n")
		s.Constraints, f.Notes = make([]event.Constraint, 0, most), make([]string, 0, most)
	}
	note := p.cutNote()
	c := event.Constraint{First: p.parsePoint()}
	if arrow := p.nextWord(); arrow != "->" {
		p.setError(strconv.Quote(arrow), "\"->\"")
	}
	c.Second = p.parsePoint()
	s.Constraints = append(s.Constraints, c)
	f.Notes = append(f.Notes, note)
}

// cutNote takes the note at the end of the line.
func (p *parser) cutNote() (note string) {
	if i := strings.IndexByte(p.rest, '#'); i > 0 && strings.HasPrefix(p.rest[i-1:], " # ") {
		p.rest, note = p.rest[:i-1], p.rest[i+2:]
	}
	return note
}

func (p *parser) parseSpinLoop() {
	l := SpinLoop{Note: p.cutNote()}
	l.PC, l.Waits, l.Iterations = arch.Addr(p.parseNumber(16)), p.parseNumber(10), p.parseNumber(10)
	for p.rest != "" {
		l.Writers = append(l.Writers, arch.Addr(p.parseNumber(16)))
	}
	if len(l.Writers) == 0 {
		p.setError("no writer", "a number")
	}
	p.file.SpinLoops = append(p.file.SpinLoops, l)
}

func (p *parser) parsePoint() event.Point {
	x := event.Point{Thread: p.parseInt(), Done: p.parseInt(), PC: arch.Addr(p.parseNumber(16)), Branches: p.parseNumber(10), Instructions: p.parseNumber(10), Occurrence: p.parseNumber(10), Spins: p.parseNumber(10)}
	span := p.nextWord()
	if span, x.Ends = strings.CutSuffix(span, "!"); !x.Ends {
		var accesses string
		var inside bool
		if span, accesses, inside = strings.Cut(span, "/"); inside {
			x.Accesses = uint8(p.convertNumber(accesses, 10))
		}
	}
	x.Span = p.convertNumber(span, 10)
	return x
}

// checkReferences finds references to threads and operations that do not exist.
func (p *parser) checkReferences() error {
	s := p.file.Schedule
	own := make([]int, len(s.Threads))
	for i := range s.Operations {
		n := s.Operations[i].Thread
		if n >= len(own) {
			p.setError(fmt.Sprintf("thread %d of an operation", n), fmt.Sprintf("one of %d threads", len(own)))
			return p.firstError()
		}
		own[n]++
	}
	for i := range s.Constraints {
		for _, x := range [...]*event.Point{&s.Constraints[i].First, &s.Constraints[i].Second} {
			if x.Thread >= len(own) || x.Done > own[x.Thread] || x.PC == 0 && !x.Ends && x.Done == own[x.Thread] {
				p.setError(fmt.Sprintf("operation %d of thread %d in constraint %d", x.Done, x.Thread, i), "an operation that the thread has")
				return p.firstError()
			}
		}
	}
	return nil
}
