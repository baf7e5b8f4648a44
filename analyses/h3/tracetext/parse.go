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

// Size is the size of a variable in bytes, and firstAddr where the first one is.
const (
	Size      = 4
	firstAddr = 0x1000
	spacing   = 0x100
)

// Parse reads a trace. An error names the line.
func Parse(text string) (*model.Trace, error) {
	p := &parser{
		trace: model.New(symbolic.NewPool()), variables: map[string]uint64{}, objects: map[string]event.ObjectID{},
		symbols: map[string]*symbolic.Expr{}, threads: map[string]int{}, now: -1,
	}
	lines := strings.Split(text, "\n")
	for _, line := range lines {
		if words := strings.Fields(line); len(words) == 2 && words[0] == "thread" {
			p.threads[words[1]] = p.trace.AddThread(words[1])
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
	case "thread":
		p.now = p.threads[words[len(words)-1]]
		return nil
	case "path", "bug":
		return p.parseCondition(words)
	}
	if p.now < 0 {
		return fmt.Errorf("it is before the first thread")
	}
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
	if err := p.parseOperands(&e, words[1:]); err != nil {
		return err
	}
	if kind.Reads() {
		if name == "" {
			return fmt.Errorf("the value has no name")
		}
		e.Symbol = p.trace.SymbolOf(p.now, Size)
		p.symbols[name] = e.Symbol
	}
	p.trace.Add(e)
	return nil
}

// parseOperands reads the words after the event's own.
func (p *parser) parseOperands(e *model.Event, words []string) error {
	want := 1
	switch e.Kind {
	case model.Write, model.Update, model.Arrive:
		want = 2
	case model.Fence, model.StoreFence, model.Begin, model.End:
		want = 0
	}
	if len(words) != want {
		return fmt.Errorf("%v has %d operands, not %d", e.Kind, want, len(words))
	}
	var err error
	switch {
	case e.Kind.Reads() || e.Kind.Writes():
		e.Addr, e.Size = p.addressOf(words[0]), Size
		if e.Kind.Writes() {
			e.Value, err = p.parseValue(words[1])
		}
	case e.Kind == model.Fork || e.Kind == model.Join:
		var known bool
		if e.Peer, known = p.threads[words[0]]; !known {
			err = fmt.Errorf("there is no thread %s", words[0])
		}
	case want > 0:
		e.Object = p.objectOf(words[0])
		if e.Kind == model.Arrive {
			e.Count, err = strconv.Atoi(words[1])
		}
	}
	return err
}

func (p *parser) addressOf(variable string) uint64 {
	if _, known := p.variables[variable]; !known {
		p.variables[variable] = firstAddr + spacing*uint64(len(p.variables))
	}
	return p.variables[variable]
}

func (p *parser) objectOf(name string) event.ObjectID {
	if _, known := p.objects[name]; !known {
		p.objects[name] = event.ObjectID(len(p.objects) + 1)
	}
	return p.objects[name]
}

// parseValue reads a number, a name, or a sum of the two.
func (p *parser) parseValue(word string) (*symbolic.Expr, error) {
	sum := p.trace.Pool.Word(0, 8*Size)
	for _, part := range strings.Split(word, "+") {
		e := p.symbols[part]
		if e == nil {
			n, err := strconv.ParseUint(part, 0, 8*Size)
			if err != nil {
				return nil, fmt.Errorf("%q is no value", part)
			}
			e = p.trace.Pool.Word(n, 8*Size)
		}
		sum = p.trace.Pool.Add(sum, e)
	}
	return sum, nil
}

func (p *parser) parseInitial(words []string) error {
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		n, err := strconv.ParseUint(value, 0, 8)
		if !ok || err != nil {
			return fmt.Errorf("%q is not VARIABLE=NUMBER, of a number below 256", word)
		}
		p.trace.Initial[p.addressOf(name)] = byte(n)
	}
	return nil
}

func (p *parser) parseCondition(words []string) error {
	if len(words) != 4 || !slices.Contains([]string{"==", "!="}, words[2]) {
		return fmt.Errorf("a condition is VALUE == VALUE or VALUE != VALUE")
	}
	a, err := p.parseValue(words[1])
	if err != nil {
		return err
	}
	b, err := p.parseValue(words[3])
	if err != nil {
		return err
	}
	e := p.trace.Pool.Eq(a, b)
	if words[2] == "!=" {
		e = p.trace.Pool.Not(e)
	}
	c := model.Condition{Expr: e, Thread: p.now}
	if words[0] == "bug" {
		p.trace.Bug = append(p.trace.Bug, c)
	} else {
		p.trace.Path = append(p.trace.Path, c)
	}
	return nil
}
