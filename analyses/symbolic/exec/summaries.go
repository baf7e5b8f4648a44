package exec

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// A Summary stands for what a function does: its code runs on recorded values
// alone, no constraint comes out of it, and its result is what the summary says.
type Summary struct {
	// Function is its name.
	Function string `yaml:"function"`
	// Result says what the result is.
	//
	// "number" is a symbol for the number that the string in the first argument
	// begins with, "real" one for a number of floating point, and "length" one for the
	// length of that string. They are for strings that are inputs from their first
	// byte on.
	//
	// "compare", "find" and "search" are expressions over bytes, as is "length" for
	// other strings: how the first two arguments compare, where in the first one the
	// byte in the second one is, or the string. They hold up to the recorded strings'
	// ends (Bound).
	//
	// "copy": the first three arguments are fixed, and the code runs as it is.
	//
	// "lower" and "upper" are expressions: the first argument as tolower(3) and
	// toupper(3) have it in the C locale, if it is below 128.
	//
	// "opaque": the result, and what is stored from where the arguments in Writes point
	// to on, are symbols of their own if the function read anything that depends on
	// inputs (Executor.Opaque). It stores nothing else that is read later.
	//
	// "none": it depends on no input.
	Result string `yaml:"result"`
	// Bits is the size of the result.
	Bits int `yaml:"bits"`
	// Null is the number of an argument, from 1, that must be a null pointer for
	// the summary to be used; 0: there is none.
	Null int `yaml:"if null"`
	// End is the number of an argument that, if it is no null pointer, gets the
	// address behind the number: that the number is as long as it was is a constraint
	// then (Bound). Base is that of one that must be 10.
	End  int `yaml:"end"`
	Base int `yaml:"base"`
	// Size is the number of the argument that says how many bytes are looked at at
	// most; 0: there is none. Memory tells that a zero does not end them.
	Size   int  `yaml:"size"`
	Memory bool `yaml:"memory"`
	// Writes are the numbers of the arguments, from 1, through which an opaque function
	// gives results.
	Writes []int `yaml:"writes"`
}

// results are those that a Summary may have.
var results = []string{"number", "real", "length", "compare", "find", "search", "lower", "upper", "copy", "opaque", "none"}

//go:embed summaries.yaml
var defaultSummaries []byte

// DefaultSummaries are those of the C library's functions.
func DefaultSummaries() []Summary {
	s, err := ReadSummaries(bytes.NewReader(defaultSummaries))
	if err != nil {
		panic(fmt.Sprintf("bug: summaries.yaml: %v", err))
	}
	return s
}

// ReadSummaries reads a list of summaries as YAML.
func ReadSummaries(from io.Reader) ([]Summary, error) {
	d := yaml.NewDecoder(from)
	d.KnownFields(true)
	var list []Summary
	if err := d.Decode(&list); err != nil {
		return nil, err
	}
	for i, s := range list {
		if s.Function == "" || !slices.Contains(results, s.Result) {
			return nil, fmt.Errorf("summary %d: result %q of function %q; known results are %v", i+1, s.Result, s.Function, results)
		}
		if s.Result != "none" && s.Result != "copy" && s.Bits != 32 && s.Bits != 64 {
			return nil, fmt.Errorf("summary of %s: bits: %d; a result has 32 or 64", s.Function, s.Bits)
		}
		for name, n := range map[string]int{"if null": s.Null, "size": s.Size, "end": s.End, "base": s.Base} {
			if n < 0 || n > len(argumentRegisters) {
				return nil, fmt.Errorf("summary of %s: %s: %d; arguments have the numbers 1 to %d", s.Function, name, n, len(argumentRegisters))
			}
		}
		if slices.ContainsFunc(s.Writes, func(n int) bool { return n < 1 || n > len(argumentRegisters) }) {
			return nil, fmt.Errorf("summary of %s: writes: %v; arguments have the numbers 1 to %d", s.Function, s.Writes, len(argumentRegisters))
		}
	}
	return list, nil
}

// Derived is a symbol that stands for a function's result.
type Derived struct {
	Summary
	// Input is the name of the input that the argument is: its bytes are Input[0]
	// and so on, up to a zero.
	Input string
}

// Value is the result for another input: the argument without the zero at its end.
func (d *Derived) Value(argument []byte) symbolic.Value {
	n := uint64(len(argument))
	switch d.Result {
	case "number":
		n = number(argument)
	case "real":
		n = real(argument, d.Bits)
	}
	if d.Bits == 32 {
		n &= 0xffffffff
	}
	return symbolic.Value{Lo: n}
}

// number is strtol(3) to base 10.
func number(text []byte) uint64 {
	text = bytes.TrimLeft(text, " \t\n\v\f\r")
	negative := bytes.HasPrefix(text, []byte("-"))
	if negative || bytes.HasPrefix(text, []byte("+")) {
		text = text[1:]
	}
	limit := uint64(1<<63 - 1)
	if negative {
		limit++
	}
	n := uint64(0)
	for _, c := range text {
		if c < '0' || c > '9' {
			break
		}
		d := uint64(c - '0')
		if n > (limit-d)/10 {
			n = limit
			break
		}
		n = 10*n + d
	}
	if negative {
		return -n
	}
	return n
}

// realForm is what strtod(3) reads, without the sign: hexadecimal, decimal, infinite,
// or none.
var realForm = regexp.MustCompile(`(?i)^(0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(p[+-]?[0-9]+)?|([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|infinity|inf|nan)`)

// real is strtod(3), or strtof(3), as bits. What is in brackets behind nan is not
// read.
func real(text []byte, bits int) uint64 {
	text = bytes.TrimLeft(text, " \t\n\v\f\r")
	sign := uint64(0)
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		if text[0] == '-' {
			sign = 1 << (bits - 1)
		}
		text = text[1:]
	}
	form := strings.ToLower(string(realForm.Find(text)))
	if form == "" {
		return 0
	}
	if strings.HasPrefix(form, "0x") && !strings.Contains(form, "p") {
		form += "p0"
	}
	x, _ := strconv.ParseFloat(form, bits) // infinite if it is too great
	switch {
	case form == "nan" && bits == 64:
		return sign | 0x7ff8<<48
	case form == "nan":
		return sign | 0x7fc0<<16
	case bits == 32:
		return sign | uint64(math.Float32bits(float32(x)))
	}
	return sign | math.Float64bits(x)
}

// Summarize says that the code at an address is a function with a summary. Of
// several names of one function the first stays.
func (x *Executor) Summarize(space, addr uint64, s Summary) {
	if k := (place{space, addr}); x.summaries[k].Function == "" {
		x.summaries[k] = s
		x.functions++
	}
}

// SummarizeChosen is Summarize for a function that another one, at the address,
// chooses when the program is linked (IFUNC): that returns where the function is.
func (x *Executor) SummarizeChosen(space, resolver uint64, s Summary) {
	if k := (place{space, resolver}); x.resolvers[k].Function == "" {
		x.resolvers[k] = s
		x.functions++
	}
}

// Derived are the symbols of functions' results, by name.
func (x *Executor) Derived() map[string]*Derived { return x.derived }

// summarized is a call that a summary stands for.
type summarized struct {
	Summary
	stack uint64 // what the stack pointer is after the return
	// chooses tells that the function is the one that chooses.
	chooses bool
	input   string
	saved   [len(preserved)][8]cell
	args    [3]uint64
	// reads tells that what is loaded is noted, in loads; touched that some of it
	// depends on inputs. Second is the lowest byte of the second
	// argument, if it does.
	reads, touched bool
	loads          []loaded
	second         cell
	bound          Term // that a number is as long as it was
	// opaque is what an opaque function has done, and letter what one that changes the
	// case of a letter was given.
	opaque *opaque
	letter Term
}

// preserved are the registers that a function gives back as they were: rbx, rbp and
// r12 to r15.
var preserved = [...]int{3, 5, 12, 13, 14, 15}

// Registers of arguments, in the order of the System V ABI.
var argumentRegisters = []int{7, 6, 2, 1, 8, 9}

func (t *thread) argument(n int) uint64 {
	return t.machine.State.Word(vex.OffsetRAX + 8*argumentRegisters[n])
}

// enter begins a call if a block begins a function that has a summary.
func (t *thread) enter(b *block) {
	if b.looked != t.x.functions {
		b.looked = t.x.functions
		at := place{t.space, b.Addr}
		_, b.function = t.x.summaries[at]
		_, b.chooses = t.x.resolvers[at]
	}
	if b.function || b.chooses {
		t.begin(place{t.space, b.Addr}, !b.function)
	}
}

// begin begins a call to a function that has a summary, or chooses one that has.
func (t *thread) begin(at place, chooses bool) {
	call := &summarized{Summary: t.x.summaries[at], stack: t.machine.State.Word(vex.OffsetRAX+8*4) + 8, chooses: chooses}
	if chooses {
		call.Summary = t.x.resolvers[at]
	}
	if !call.chooses && !t.applies(call) {
		return
	}
	for i, r := range preserved {
		copy(call.saved[i][:], t.registers.cells[vex.OffsetRAX+8*r:])
	}
	call.opaque = t.newOpaque(&call.Summary)
	t.call = call
}

// applies tells whether a summary stands for the call that begins, and fixes the
// arguments that have to be.
func (t *thread) applies(c *summarized) bool {
	if c.Null > 0 && t.argument(c.Null-1) != 0 || c.Base > 0 && uint32(t.argument(c.Base-1)) != 10 {
		return false
	}
	switch c.Result {
	case "none", "opaque":
		return true
	case "lower", "upper":
		t.letter(c)
		return true
	case "copy":
		t.fixArguments(0, 1, 2)
		return false
	case "number", "real":
		c.input = t.input(t.argument(0), false)
		if c.input != "" && c.End > 0 && t.argument(c.End-1) != 0 {
			return t.measure(c)
		}
		return c.input != ""
	case "length":
		if c.input = t.input(t.argument(0), true); c.Size == 0 && c.input != "" {
			return true
		}
	}
	for i := range c.args {
		c.args[i] = t.argument(i)
	}
	c.reads = true
	t.fixArguments(0)
	switch c.Result {
	case "find":
		c.second = t.registers.cells[vex.OffsetRAX+8*argumentRegisters[1]]
	case "compare", "search":
		t.fixArguments(1)
	}
	if c.Size > 0 {
		t.fixArguments(c.Size - 1)
	}
	return true
}

// fixArguments fixes arguments to their recorded values.
func (t *thread) fixArguments(numbers ...int) {
	for _, n := range numbers {
		at := vex.OffsetRAX + 8*argumentRegisters[n]
		v, e := t.register(at, 8)
		t.fix(v, e, Address, "")
		t.registers.set(vex.SpanOf(at, 8), 0)
	}
}

// input is the name of the input of which a string is the whole; empty: it is none.
// With a zero set its end must be the input's, too, not something behind it.
func (t *thread) input(addr uint64, zero bool) string {
	in := t.inputAt(addr, 0, nil)
	if in == nil {
		return ""
	}
	for i := range in.data {
		if t.inputAt(addr+uint64(i), i, in) == nil {
			break
		}
		if zero && in.data[i] == 0 {
			return in.name
		}
	}
	if zero {
		return ""
	}
	return in.name
}

// inputAt is the input of which a byte in memory is number at: the given one, or nil.
func (t *thread) inputAt(addr uint64, at int, in *input) *input {
	var cells [1]cell
	t.x.memory.load(t.space, addr, cells[:])
	if cells[0].term() <= 0 {
		return nil
	}
	n := t.x.terms.node(cells[0].term())
	if n.op != nodeByte || t.x.inputs[n.a].first+int(n.b) != at || in != nil && t.x.inputs[n.a] != in {
		return nil
	}
	return t.x.inputs[n.a]
}

// leave ends the call if the function has returned.
func (t *thread) leave() {
	s := &t.machine.State
	if s.Word(vex.OffsetRAX+8*4) < t.call.stack {
		return
	}
	call := t.call
	t.call = nil
	if s.Word(vex.OffsetRAX+8*4) > call.stack {
		return // a jump over it
	}
	for i, r := range preserved {
		at := vex.OffsetRAX + 8*r
		t.registers.restore(vex.SpanOf(at, 8), call.saved[i][:])
	}
	switch {
	case call.chooses:
		t.x.Summarize(t.space, s.Word(vex.OffsetRAX), call.Summary)
		return
	case call.reads:
		t.search(call)
		return
	case call.opaque != nil:
		t.results(call)
		return
	case call.Result == "lower" || call.Result == "upper":
		t.lettered(call)
		return
	case call.Result == "none":
		return
	}
	if call.bound != 0 {
		t.x.add(t.constraint(call.bound, Bound, call.Function))
	}
	name := fmt.Sprintf("%s(%s)", call.Function, call.input)
	n, at := call.Bits/8, vex.OffsetRAX
	if call.Result == "real" {
		at = vex.OffsetXMM
	}
	v, _ := t.register(at, n)
	t.x.derived[name] = &Derived{call.Summary, call.input}
	t.registers.set(vex.SpanOf(at, n), t.x.symbol(name, call.Bits, v))
}
