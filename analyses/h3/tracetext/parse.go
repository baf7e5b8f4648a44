package tracetext

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Size is the size of a variable in bytes, if none is given, and firstAddr where the first
// variable with a name is.
const (
	Size      = 4
	firstAddr = 0x1000
	spacing   = 0x100
)

// indexBits is the size of an index of an array.
const indexBits = 64

// maxElements bounds the number of elements of an array.
const maxElements = 1 << 20

// Parse reads a trace. An error names the line.
func Parse(text string) (*model.Trace, error) {
	p := &parser{
		trace: model.New(symbolic.NewPool()), variables: map[string]uint64{}, objects: map[string]event.ObjectID{},
		symbols: map[string]*symbolic.Expr{}, threads: map[string]int{}, now: -1,
	}
	lines := strings.Split(text, "\n")
	for _, line := range lines {
		if words := strings.Fields(line); len(words) == 2 && words[0] == "thread" {
			if _, known := p.threads[words[1]]; !known {
				p.threads[words[1]] = p.trace.AddThread(words[1])
			}
		}
	}
	for i, line := range lines {
		if words := strings.Fields(line); len(words) > 0 {
			if err := p.parseLine(words); err != nil {
				return nil, fmt.Errorf("line %d, %q: %w", i+1, strings.TrimSpace(line), err)
			}
		}
	}
	return p.trace, nil
}

// parser has the names that the lines so far have introduced.
type parser struct {
	trace     *model.Trace
	variables map[string]uint64
	objects   map[string]event.ObjectID
	symbols   map[string]*symbolic.Expr
	threads   map[string]int
	now       int // the thread of the line
}

// kinds are the kinds of events by their words.
var kinds = map[string]model.Kind{
	"read": model.Read, "write": model.Write, "update": model.Update, "fence": model.Fence, "storefence": model.StoreFence,
	"begin": model.Begin, "end": model.End, "fork": model.Fork, "join": model.Join, "lock": model.Lock, "unlock": model.Unlock,
	"tryfailed": model.TryFailed, "sleep": model.Sleep, "wake": model.Wake, "signal": model.Signal, "broadcast": model.Broadcast,
	"arrive": model.Arrive, "leave": model.Leave, "post": model.Post, "take": model.Take,
}

func (p *parser) parseLine(words []string) error {
	switch words[0] {
	case "init":
		return p.parseInitial(words[1:])
	case "array":
		return p.parseArray(words)
	case "semaphore":
		return p.parseSemaphore(words)
	case "deadlock":
		p.trace.Deadlocked = true
		return expectWords(words, 1)
	case "thread":
		if p.now = -1; len(words) == 1 {
			return nil
		}
		p.now = p.threads[words[1]]
		return expectWords(words, 2)
	case "path", "bug":
		return p.parseCondition(words)
	}
	if p.now < 0 {
		return fmt.Errorf("it is of no thread")
	}
	return p.parseEvent(words)
}

func expectWords(words []string, n int) error {
	if len(words) != n {
		return fmt.Errorf("%s has %d operands, not %d", words[0], n-1, len(words)-1)
	}
	return nil
}

func (p *parser) parseEvent(words []string) error {
	name := ""
	if len(words) > 2 && words[1] == "=" {
		name, words = words[0], words[2:]
	}
	kind, known := kinds[words[0]]
	if !known {
		return fmt.Errorf("%q is no event", words[0])
	}
	e := model.Event{
		Kind: kind, Thread: p.now, Core: arch.CoreID(p.now), CoreInstructions: uint64(len(p.trace.Events)),
	}
	switch {
	case kind.Reads() && name == "":
		return fmt.Errorf("the value has no name")
	case kind.Reads() && !isName(name):
		return fmt.Errorf("%q cannot be the name of a value", name)
	case kind.Reads() && p.symbols[name] != nil:
		return fmt.Errorf("%s is the name of another value", name)
	case !kind.Reads() && name != "":
		return fmt.Errorf("%s reads no value", words[0])
	}
	if err := p.parseOperands(&e, name, words); err != nil {
		return err
	}
	p.trace.Add(e)
	return nil
}

// isName reports whether a word can be the name of a value: it does not begin like a number, and
// has no sign.
func isName(word string) bool {
	return word != "" && (word[0] < '0' || word[0] > '9') && !strings.ContainsAny(word, `+[]:="`)
}

// operandCounts are the numbers of operands that are not 1.
var operandCounts = map[model.Kind]int{
	model.Write: 2, model.Update: 2, model.Arrive: 2, model.Fence: 0, model.StoreFence: 0, model.Begin: 0, model.End: 0,
}

// marks are the words that may follow the object of an event.
var marks = map[model.Kind]string{
	model.Lock: "shared", model.Unlock: "shared", model.TryFailed: "shared", model.Wake: "timedout",
}

// parseOperands reads the words after the event's own, which is the first. The value that the event
// reads, if it reads one, gets a name.
func (p *parser) parseOperands(e *model.Event, name string, words []string) error {
	if mark := marks[e.Kind]; mark != "" && len(words) == 3 && words[2] == mark {
		e.Shared, e.TimedOut = mark == "shared", mark == "timedout"
		words = words[:2]
	}
	want, known := operandCounts[e.Kind]
	if !known {
		want = 1
	}
	if err := expectWords(words, want+1); err != nil || want == 0 {
		return err
	}
	var err error
	switch {
	case e.Kind.Reads() || e.Kind.Writes():
		if err = p.parsePlace(e, words[1]); err != nil {
			return err
		}
		if e.Kind.Reads() {
			e.Symbol = p.trace.SymbolOf(p.now, e.Size)
			p.symbols[name] = e.Symbol
		}
		if e.Kind.Writes() {
			e.Value, err = p.parseValue(words[2], 8*e.Size)
		}
	case e.Kind == model.Fork || e.Kind == model.Join:
		if e.Peer, known = p.threads[words[1]]; !known {
			err = fmt.Errorf("there is no thread %s", words[1])
		}
	default:
		e.Object = p.objectOf(words[1])
		if e.Kind == model.Arrive {
			e.Count, err = parseCount(words[2])
		}
	}
	return err
}

func parseCount(word string) (int, error) {
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 || n > maxElements {
		return 0, fmt.Errorf("%q is no number from 0 to %d", word, maxElements)
	}
	return n, nil
}

// parsePlace reads the place of an access: VARIABLE, VARIABLE:SIZE or ARRAY[INDEX].
func (p *parser) parsePlace(e *model.Event, word string) error {
	name, index, isElement := strings.Cut(word, "[")
	if isElement {
		var closed bool
		if index, closed = strings.CutSuffix(index, "]"); !closed {
			return fmt.Errorf("%q has no closing bracket", word)
		}
	}
	name, text, sized := strings.Cut(name, ":")
	var err error
	if e.Addr, err = p.addressOf(name); err != nil {
		return err
	}
	e.Size = Size
	if sized {
		if e.Size, err = strconv.Atoi(text); err != nil || e.Size < 1 || e.Size > 8 {
			return fmt.Errorf("%q is no size from 1 to 8", text)
		}
	}
	if !isElement {
		return nil
	}
	n := slices.IndexFunc(p.trace.Arrays, func(a model.Array) bool { return a.Addr == e.Addr })
	if n < 0 || sized {
		return fmt.Errorf("%q is no element of an array", word)
	}
	e.Size = p.trace.Arrays[n].Elem
	if s := p.symbols[index]; s != nil && s.Bits < indexBits {
		e.Index = p.trace.Pool.ZeroExt(s, indexBits)
		return nil
	}
	e.Index, err = p.parseValue(index, indexBits)
	return err
}

// addressOf is the address of a variable.
func (p *parser) addressOf(variable string) (uint64, error) {
	if digits, isNumber := strings.CutPrefix(variable, "0x"); isNumber {
		addr, err := strconv.ParseUint(digits, 16, 64)
		if err != nil || addr > 1<<47 {
			return 0, fmt.Errorf("%q is no address", variable)
		}
		return addr, nil
	}
	if !isName(variable) {
		return 0, fmt.Errorf("%q is no variable", variable)
	}
	if _, known := p.variables[variable]; !known {
		p.variables[variable] = firstAddr + spacing*uint64(len(p.variables))
	}
	return p.variables[variable], nil
}

func (p *parser) objectOf(name string) event.ObjectID {
	if _, known := p.objects[name]; !known {
		p.objects[name] = event.ObjectID(len(p.objects) + 1)
	}
	return p.objects[name]
}

// parseValue reads a sum of numbers and names, of a number of bits.
func (p *parser) parseValue(word string, bits int) (*symbolic.Expr, error) {
	sum := p.trace.Pool.Word(0, bits)
	for _, part := range strings.Split(word, "+") {
		e := p.symbols[part]
		switch n, err := strconv.ParseUint(part, 0, bits); {
		case e == nil && err != nil:
			return nil, fmt.Errorf("%q is no value of %d bits", part, bits)
		case e == nil:
			e = p.trace.Pool.Word(n, bits)
		case e.Bits != bits:
			return nil, fmt.Errorf("%s has %d bits, not %d", part, e.Bits, bits)
		}
		sum = p.trace.Pool.Add(sum, e)
	}
	return sum, nil
}

func (p *parser) parseInitial(words []string) error {
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		n, err := strconv.ParseUint(value, 0, 8*Size)
		if err != nil {
			return fmt.Errorf("%q is not VARIABLE=NUMBER", word)
		}
		addr, err := p.addressOf(name)
		if err != nil {
			return err
		}
		for i := range uint64(Size) {
			if b := byte(n >> (8 * i)); b != 0 {
				p.trace.Initial[addr+i] = b
			}
		}
	}
	return nil
}

// parseArray reads array NAME SIZE COUNT.
func (p *parser) parseArray(words []string) error {
	if err := expectWords(words, 4); err != nil {
		return err
	}
	addr, err := p.addressOf(words[1])
	if err != nil {
		return err
	}
	size, err := strconv.Atoi(words[2])
	if err != nil || size < 1 || size > 8 {
		return fmt.Errorf("%q is no size from 1 to 8", words[2])
	}
	count, err := parseCount(words[3])
	if err != nil {
		return err
	}
	p.trace.Arrays = append(p.trace.Arrays, model.Array{Addr: addr, Elem: size, Count: count})
	return nil
}

// parseSemaphore reads semaphore NAME NUMBER.
func (p *parser) parseSemaphore(words []string) error {
	if err := expectWords(words, 3); err != nil {
		return err
	}
	n, err := parseCount(words[2])
	if err != nil {
		return err
	}
	p.trace.Semaphores[p.objectOf(words[1])] = n
	return nil
}

// comparisons make the expressions of conditions.
var comparisons = map[string]func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr{
	"==":  (*symbolic.Pool).Eq,
	"!=":  func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr { return p.Not(p.Eq(a, b)) },
	"<":   (*symbolic.Pool).SLT,
	"<=":  (*symbolic.Pool).SLE,
	"<u":  (*symbolic.Pool).ULT,
	"<=u": (*symbolic.Pool).ULE,
}

func (p *parser) parseCondition(words []string) error {
	if len(words) != 4 || comparisons[words[2]] == nil {
		return fmt.Errorf("a condition is VALUE COMPARISON VALUE with one of == != < <= <u <=u")
	}
	bits := p.bitsOf(words[1] + "+" + words[3])
	a, err := p.parseValue(words[1], bits)
	if err != nil {
		return err
	}
	b, err := p.parseValue(words[3], bits)
	if err != nil {
		return err
	}
	c := model.Condition{Expr: comparisons[words[2]](p.trace.Pool, a, b), Thread: p.now}
	if words[0] == "bug" {
		p.trace.Bug = append(p.trace.Bug, c)
	} else {
		p.trace.Path = append(p.trace.Path, c)
	}
	return nil
}

// bitsOf is the size of the first name in a sum, or that of a variable.
func (p *parser) bitsOf(sum string) int {
	for _, part := range strings.Split(sum, "+") {
		if e := p.symbols[part]; e != nil {
			return e.Bits
		}
	}
	return 8 * Size
}
