package hybrid

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// A SyntaxError says what in a schedule file cannot be.
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
			return p.end(rest, xxh3.HashString(p.text[:at]))
		}
		if word == "constraint" && p.file.Schedule.Constraints == nil {
			if next := p.quickly(at); next > at {
				at = next
				p.line--
				continue
			}
		}
		if err := p.take(line); err != nil {
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

func (p *parser) wrong(found, expected string) {
	if p.bad == nil {
		p.bad = &SyntaxError{p.line, found, expected}
	}
}

// end checks the last line.
func (p *parser) end(sum string, want uint64) (*File, error) {
	if sum != fmt.Sprintf("%016x", want) {
		return nil, &SyntaxError{p.line, "the checksum " + sum, fmt.Sprintf("%016x: the file is damaged", want)}
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p.file, nil
}

// word takes the next word of the line.
func (p *parser) word() string {
	end := strings.IndexByte(p.rest, ' ')
	if end < 0 {
		end = len(p.rest)
	}
	return p.pass(end)
}

// pass takes so many bytes of the line, and the space behind them.
func (p *parser) pass(n int) string {
	taken := p.rest[:n]
	p.rest = p.rest[min(n+1, len(p.rest)):]
	return taken
}

// safeDigits is how many digits of any base make a number that fits.
const safeDigits = 15

// number takes a number: most of a long file is numbers.
func (p *parser) number(base int) uint64 {
	n, i := uint64(0), 0
	for ; i < len(p.rest) && i <= safeDigits; i++ {
		d := digit(p.rest[i])
		if d >= uint64(base) {
			break
		}
		n = n*uint64(base) + d
	}
	if i > 0 && i <= safeDigits && (i == len(p.rest) || p.rest[i] == ' ') {
		p.pass(i)
		return n
	}
	return p.convert(p.word(), base)
}

// digit is the value of a digit, or more than any has.
func digit(c byte) uint64 {
	switch {
	case c >= '0' && c <= '9':
		return uint64(c - '0')
	case c >= 'a' && c <= 'f':
		return uint64(c-'a') + 10
	}
	return math.MaxUint64
}

func (p *parser) convert(word string, base int) uint64 {
	n, err := strconv.ParseUint(word, base, 64)
	if err != nil {
		p.wrong(strconv.Quote(word), "a number")
	}
	return n
}

func (p *parser) integer() int { return int(min(p.number(10), 1<<31)) }

func (p *parser) signed() int64 {
	word := p.word()
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		p.wrong(strconv.Quote(word), "a number")
	}
	return n
}

// name takes a word that is one of a list, and returns its number.
func (p *parser) name(list []string) int {
	word := p.word()
	i := slices.Index(list, word)
	if i < 0 {
		p.wrong(strconv.Quote(word), "a name that is known")
		return 0
	}
	return i
}

// quoted takes the rest of the line, a text in quotes.
func (p *parser) quoted() string {
	text, err := strconv.Unquote(p.rest)
	if err != nil {
		p.wrong(p.rest, "a text in quotes")
	}
	return text
}

// take reads a line.
func (p *parser) take(line string) error {
	p.rest = line
	word := p.word()
	f, s := p.file, p.file.Schedule
	if p.line == 1 {
		if line != fmt.Sprintf("heddle schedule %d", Version) {
			p.wrong(strconv.Quote(line), fmt.Sprintf("\"heddle schedule %d\"", Version))
		}
		return p.failed()
	}
	switch word {
	case "kind":
		f.Kind = []string{"hybrid", "sync", "mem"}[p.name([]string{"hybrid", "sync", "mem"})]
	case "seed":
		f.Seed = p.number(10)
	case "cores":
		f.Cores = p.integer()
	case "layout":
		f.Layout = p.name([]string{"false", "true"}) == 1
	case "model":
		f.Model = p.word()
	case "dir":
		f.Dir = p.quoted()
	case "arg":
		f.Args = append(f.Args, p.quoted())
	case "env":
		f.Env = append(f.Env, p.quoted())
	case "input":
		f.Inputs = append(f.Inputs, Input{p.word(), p.quoted()})
	case "prune":
		f.Prune = Prune(p.name(pruneNames[:]))
	case "counts":
		f.Counts = Counts{p.number(10), p.number(10), p.number(10), p.number(10)}
	case "portable":
		s.Portable = true
		for p.rest != "" && p.bad == nil {
			s.Free = append(s.Free, p.signed())
		}
	case "stuck":
		s.Stuck = true
	case "allocators":
		s.Allocators = true
	case "program":
		f.Program = p.word()
	case "varying":
		f.Varying = append(f.Varying, p.quoted())
	case "precondition":
		f.Preconditions = append(f.Preconditions, p.rest)
	case "thread":
		p.integer()
		s.Threads = append(s.Threads, p.word())
	case "object":
		id := event.ObjectID(p.number(16))
		s.Objects[id] = p.quoted()
	case "op":
		s.Operations = append(s.Operations, p.operation())
	case "constraint":
		p.constraint()
	default:
		p.wrong(strconv.Quote(word), "a word that begins a line of a schedule")
	}
	return p.failed()
}

func (p *parser) failed() error {
	if p.bad != nil {
		return p.bad
	}
	return nil
}

func (p *parser) operation() event.Operation {
	o := event.Operation{Thread: p.integer(), Part: event.Part(p.name(event.Parts()))}
	if o.Part == event.SystemCall || o.Part == event.SignalPart {
		o.Number = p.number(10)
	} else {
		o.Op = event.SyncOp(p.name(event.SyncOps()))
	}
	o.Object, o.Result = event.ObjectID(p.number(16)), p.signed()
	o.At, o.Time = event.Cycles(p.number(10)), event.Cycles(p.number(10))
	for p.rest != "" && p.bad == nil {
		addr, data, _ := strings.Cut(p.word(), ":")
		at, err := strconv.ParseUint(addr, 16, 64)
		bytes, err2 := hex.DecodeString(data)
		if err != nil || err2 != nil {
			p.wrong(strconv.Quote(addr+":"+data), "ADDRESS:BYTES in hexadecimal")
		}
		o.Writes = append(o.Writes, event.Write{Addr: event.Addr(at), Data: bytes})
	}
	if o.Part == event.SignalPart && len(o.Writes) != 1 && p.bad == nil {
		p.wrong(fmt.Sprintf("%d pairs of an address and bytes for a signal", len(o.Writes)), "one")
	}
	return o
}

func (p *parser) constraint() {
	f, s := p.file, p.file.Schedule
	if s.Constraints == nil {
		// They come last, one a line.
		most := 1 + strings.Count(p.text[p.next:], "\n")
		s.Constraints, f.Notes = make([]event.Constraint, 0, most), make([]string, 0, most)
	}
	note := ""
	if i := strings.IndexByte(p.rest, '#'); i > 0 && strings.HasPrefix(p.rest[i-1:], " # ") {
		p.rest, note = p.rest[:i-1], p.rest[i+2:]
	}
	c := event.Constraint{First: p.point()}
	if arrow := p.word(); arrow != "->" {
		p.wrong(strconv.Quote(arrow), "\"->\"")
	}
	c.Second = p.point()
	s.Constraints = append(s.Constraints, c)
	f.Notes = append(f.Notes, note)
}

func (p *parser) point() event.Point {
	x := event.Point{Thread: p.integer(), Done: p.integer(), PC: event.Addr(p.number(16)), Branches: p.number(10), Instructions: p.number(10), Occurrence: p.number(10)}
	span := p.word()
	if span, x.Ends = strings.CutSuffix(span, "!"); !x.Ends {
		var accesses string
		var inside bool
		if span, accesses, inside = strings.Cut(span, "/"); inside {
			x.Accesses = uint8(p.convert(accesses, 10))
		}
	}
	x.Span = p.convert(span, 10)
	return x
}

// check finds references to what is not there.
func (p *parser) check() error {
	s := p.file.Schedule
	own := make([]int, len(s.Threads))
	for i := range s.Operations {
		n := s.Operations[i].Thread
		if n >= len(own) {
			p.wrong(fmt.Sprintf("thread %d of an operation", n), fmt.Sprintf("one of %d threads", len(own)))
			return p.failed()
		}
		own[n]++
	}
	for i := range s.Constraints {
		for _, x := range [...]*event.Point{&s.Constraints[i].First, &s.Constraints[i].Second} {
			if x.Thread >= len(own) || x.Done > own[x.Thread] || x.PC == 0 && !x.Ends && x.Done == own[x.Thread] {
				p.wrong(fmt.Sprintf("operation %d of thread %d in constraint %d", x.Done, x.Thread, i), "an operation that the thread has")
				return p.failed()
			}
		}
	}
	return nil
}
