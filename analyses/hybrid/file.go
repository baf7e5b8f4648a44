package hybrid

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Version is that of the file format.
const Version = 3

// File is a schedule with what it was made of: what a schedule file says.
type File struct {
	// Kind is "hybrid", "sync" or "mem".
	Kind string
	// Args, Env and Dir are the program's; Seed is that of what it got at random,
	// Cores how many cores it saw, Layout whether its addresses were random, and
	// Model the memory model.
	Args, Env []string
	Dir       string
	Seed      uint64
	Cores     int
	Layout    bool
	Model     string
	// Inputs are the files that it read.
	Inputs []Input
	// Prune says which constraints were left out, Counts what was found.
	Prune    Prune
	Counts   Counts
	Schedule *event.Schedule
	// Preconditions, of a portable schedule, are what other inputs must satisfy, as
	// preconditions.Set writes it; Varying are the names that those have for the files
	// which may differ.
	Preconditions []string
	Varying       []string
	// Program is the SHA-256 of the program that a portable schedule is for, wherever
	// its file is.
	Program string
	// Notes say where constraints are in the source; by number, or none.
	Notes []string
}

// Input is a file with its SHA-256.
type Input struct{ SHA256, Path string }

// Write writes a schedule file: text, one line for each thing, with a checksum at
// its end. docs/schedules.md describes it.
func (f *File) Write(w io.Writer) error {
	var b bytes.Buffer
	f.header(&b)
	s := f.Schedule
	f.portable(&b)
	if s.Stuck {
		b.WriteString("stuck\n")
	}
	for i, name := range s.Threads {
		fmt.Fprintf(&b, "thread %d %s\n", i, name)
	}
	for _, id := range slices.Sorted(maps.Keys(s.Objects)) {
		fmt.Fprintf(&b, "object %016x %q\n", uint64(id), s.Objects[id])
	}
	for i := range s.Operations {
		operation(&b, &s.Operations[i])
	}
	for i := range s.Constraints {
		c := &s.Constraints[i]
		fmt.Fprintf(&b, "constraint %s -> %s", pointText(&c.First), pointText(&c.Second))
		if i < len(f.Notes) && f.Notes[i] != "" {
			fmt.Fprintf(&b, " # %s", f.Notes[i])
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "end %016x\n", xxh3.Hash(b.Bytes()))
	_, err := w.Write(b.Bytes())
	return err
}

func (f *File) header(b *bytes.Buffer) {
	fmt.Fprintf(b, "heddle schedule %d\n", Version)
	fmt.Fprintf(b, "kind %s\nseed %d\ncores %d\nlayout %t\nmodel %s\ndir %q\n", f.Kind, f.Seed, f.Cores, f.Layout, f.Model, f.Dir)
	for _, list := range []struct {
		word  string
		texts []string
	}{{"arg", f.Args}, {"env", f.Env}} {
		for _, text := range list.texts {
			fmt.Fprintf(b, "%s %q\n", list.word, text)
		}
	}
	for _, in := range f.Inputs {
		fmt.Fprintf(b, "input %s %q\n", in.SHA256, in.Path)
	}
	fmt.Fprintf(b, "prune %s\ncounts %d %d %d %d\n", pruneNames[f.Prune], f.Counts.Races, f.Counts.Unpruned, f.Counts.Subsumed, f.Counts.Reduced)
}

// portable writes what only a schedule for other inputs has.
func (f *File) portable(b *bytes.Buffer) {
	if !f.Schedule.Portable {
		return
	}
	b.WriteString("portable")
	for _, d := range f.Schedule.Free {
		fmt.Fprintf(b, " %d", d)
	}
	b.WriteByte('\n')
	fmt.Fprintf(b, "program %s\n", f.Program)
	for _, name := range f.Varying {
		fmt.Fprintf(b, "varying %q\n", name)
	}
	for _, line := range f.Preconditions {
		fmt.Fprintf(b, "precondition %s\n", line)
	}
}

// operation writes an operation: thread, part, what, result, times, and what it
// wrote.
func operation(b *bytes.Buffer, o *event.Operation) {
	what := o.Op.String()
	if o.Part == event.SystemCall || o.Part == event.SignalPart {
		what = strconv.FormatUint(o.Number, 10)
	}
	fmt.Fprintf(b, "op %d %s %s %016x %d %d %d", o.Thread, o.Part, what, uint64(o.Object), o.Result, o.At, o.Time)
	for _, w := range o.Writes {
		fmt.Fprintf(b, " %x:%x", uint64(w.Addr), w.Data)
	}
	b.WriteByte('\n')
}

func pointText(p *event.Point) string {
	mark := ""
	if p.Ends {
		mark = "!"
	}
	return fmt.Sprintf("%d %d %x %d %d %d %d%s", p.Thread, p.Done, uint64(p.PC), p.Branches, p.Instructions, p.Occurrence, p.Span, mark)
}

// A SyntaxError says what in a schedule file cannot be.
type SyntaxError struct {
	Line            int
	Found, Expected string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d: found %s, expected %s", e.Line, e.Found, e.Expected)
}

// Read reads a schedule file. Its errors are *SyntaxError, or those of r.
func Read(r io.Reader) (*File, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	p := &parser{file: &File{Schedule: &event.Schedule{Objects: map[event.ObjectID]string{}}}}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	at := 0
	for lines.Scan() {
		p.line++
		line := lines.Text()
		if word, rest, _ := strings.Cut(line, " "); word == "end" {
			return p.end(rest, xxh3.Hash(text[:at]))
		}
		if err := p.take(line); err != nil {
			return nil, err
		}
		at += len(line) + 1
	}
	return nil, &SyntaxError{p.line + 1, "the end of the file", "more lines, and the line \"end\""}
}

// parser reads a schedule file line by line.
type parser struct {
	file *File
	line int
	rest string
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
	word, rest, _ := strings.Cut(p.rest, " ")
	p.rest = rest
	return word
}

func (p *parser) number(base int) uint64 {
	word := p.word()
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
	var note string
	p.rest, note, _ = strings.Cut(p.rest, " # ")
	c := event.Constraint{First: p.point()}
	if arrow := p.word(); arrow != "->" {
		p.wrong(strconv.Quote(arrow), "\"->\"")
	}
	c.Second = p.point()
	p.file.Schedule.Constraints = append(p.file.Schedule.Constraints, c)
	p.file.Notes = append(p.file.Notes, note)
}

func (p *parser) point() event.Point {
	x := event.Point{Thread: p.integer(), Done: p.integer(), PC: event.Addr(p.number(16)), Branches: p.number(10), Instructions: p.number(10), Occurrence: p.number(10)}
	span := p.word()
	x.Ends = strings.HasSuffix(span, "!")
	n, err := strconv.ParseUint(strings.TrimSuffix(span, "!"), 10, 64)
	if err != nil {
		p.wrong(strconv.Quote(span), "a number")
	}
	x.Span = n
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
		for _, x := range []event.Point{s.Constraints[i].First, s.Constraints[i].Second} {
			if x.Thread >= len(own) || x.Done > own[x.Thread] || x.PC == 0 && !x.Ends && x.Done == own[x.Thread] {
				p.wrong(fmt.Sprintf("operation %d of thread %d in constraint %d", x.Done, x.Thread, i), "an operation that the thread has")
				return p.failed()
			}
		}
	}
	return nil
}
