package concolic

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// summarizedCall is a call that a summary stands for.
type summarizedCall struct {
	Summary
	stack uint64 // the stack pointer after the return
	// isResolver is set if the function is the resolver.
	isResolver bool
	input      string
	saved      [len(preservedRegisters)][8]cell
	args       [3]uint64
	// reads is set if loads are recorded in loads; touched, if some of them depend on
	// inputs. Second is the lowest byte of the second argument, if it depends on inputs.
	reads, touched bool
	loads          []loadedBytes
	second         cell
	bound          Term // that a number is as long as recorded
	// opaque has the stores of an opaque function, letter the argument of one that changes
	// the case of a letter.
	opaque *opaqueCall
	letter Term
}

// preservedRegisters are the registers that a function preserves: rbx, rbp and r12 to r15.
var preservedRegisters = [...]int{3, 5, 12, 13, 14, 15}

// Registers of arguments, in the order of the System V ABI.
var argumentRegisters = []int{7, 6, 2, 1, 8, 9}

func (t *thread) argumentValue(n int) uint64 {
	return t.machine.State.Word(vex.OffsetRAX + 8*argumentRegisters[n])
}

// enterCall begins a call if a block begins a function that has a summary.
func (t *thread) enterCall(b *block) {
	if b.lookupVersion != t.x.functions {
		b.lookupVersion = t.x.functions
		at := location{t.space, b.Addr}
		_, b.isSummarized = t.x.summaries[at]
		_, b.isResolver = t.x.resolvers[at]
	}
	if b.isSummarized || b.isResolver {
		t.beginCall(location{t.space, b.Addr}, !b.isSummarized)
	}
}

// beginCall begins a call of a function that has a summary, or of a resolver that chooses
// one.
func (t *thread) beginCall(at location, chooses bool) {
	call := &summarizedCall{Summary: t.x.summaries[at], stack: t.machine.State.Word(vex.OffsetRAX+8*4) + 8, isResolver: chooses}
	if chooses {
		call.Summary = t.x.resolvers[at]
	}
	if !call.isResolver && !t.prepareSummary(call) {
		return
	}
	for i, r := range preservedRegisters {
		copy(call.saved[i][:], t.registers.cells[vex.OffsetRAX+8*r:])
	}
	call.opaque = t.newOpaqueCall(&call.Summary)
	t.call = call
}

// prepareSummary prepares the summary of a call that begins and fixes arguments as it
// requires. It returns false if the summary does not apply.
func (t *thread) prepareSummary(c *summarizedCall) bool {
	if c.Null > 0 && t.argumentValue(c.Null-1) != 0 || c.Base > 0 && uint32(t.argumentValue(c.Base-1)) != 10 {
		return false
	}
	switch c.Result {
	case "none", "opaque":
		return true
	case "lower", "upper":
		t.recordLetter(c)
		return true
	case "copy":
		t.fixArguments(0, 1, 2)
		return false
	case "number", "unsigned", "real":
		text := t.inputText(t.argumentValue(0))
		c.input = text.name
		switch {
		case text.name == "" || !text.whole && (c.Result == "real" || !EndsNumber(text.bytes)):
			return false
		case c.End > 0 && t.argumentValue(c.End-1) != 0 && !t.boundNumber(c, text.bytes):
			return false
		}
		t.fixArguments(0)
		return true
	case "length":
		if text := t.inputText(t.argumentValue(0)); c.Size == 0 && text.whole {
			c.input = text.name
			t.fixArguments(0)
			return true
		}
	}
	for i := range c.args {
		c.args[i] = t.argumentValue(i)
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
		v, e := t.registerTerm(at, 8)
		t.fixOutsideBlock(v, e, Address, "")
		t.registers.setTerm(vex.SpanOf(at, 8), 0)
	}
}

// inputText is a string of which the bytes are those of an input.
type inputText struct {
	// name is "argv[1]", "argv[1][2:]" if the string begins at a later byte, or "stdin[2:9]" if the bytes of the
	// input end where the string may not; empty: the first byte is none of an input.
	name  string
	bytes []byte // as recorded, without the zero
	whole bool   // it ends where the argument or variable ends
}

// inputText returns the string at an address.
func (t *thread) inputText(addr uint64) inputText {
	in, first := t.inputByte(addr)
	if in == nil {
		return inputText{}
	}
	var text inputText
	for {
		other, at := t.inputByte(addr + uint64(len(text.bytes)))
		if other == nil || other.name != in.name || at != first+len(text.bytes) {
			break
		}
		b := other.data[at-other.first]
		if text.whole = b == 0 && isText(in.name); text.whole {
			break
		}
		text.bytes = append(text.bytes, b)
	}
	switch text.name = in.name; {
	case !text.whole:
		text.name = fmt.Sprintf("%s[%d:%d]", in.name, first, first+len(text.bytes))
	case first > 0:
		text.name = fmt.Sprintf("%s[%d:]", in.name, first)
	}
	return text
}

// isText reports whether an input is an argument or the value of a variable, which a zero ends.
func isText(name string) bool {
	return strings.HasPrefix(name, "argv[") || strings.HasPrefix(name, "env[")
}

// inputByte returns the input a byte of which is at an address of memory, or nil, and the byte's position in it.
func (t *thread) inputByte(addr uint64) (in *input, at int) {
	var cells [1]cell
	t.x.memory.loadCells(t.space, addr, cells[:])
	if cells[0].term() <= 0 {
		return nil, 0
	}
	b := t.x.terms.lowByte(t.x.terms.byteTerm(cells[0], 0))
	if b <= 0 || t.x.terms.node(b).op != nodeByte {
		return nil, 0
	}
	n := t.x.terms.node(b)
	in = t.x.inputs[n.a]
	return in, in.first + int(n.b)
}

// leaveCall ends the call if the function has returned.
func (t *thread) leaveCall() {
	s := &t.machine.State
	if s.Word(vex.OffsetRAX+8*4) < t.call.stack {
		return
	}
	call := t.call
	t.call = nil
	if s.Word(vex.OffsetRAX+8*4) > call.stack {
		return // a jump skipped the return
	}
	for i, r := range preservedRegisters {
		at := vex.OffsetRAX + 8*r
		t.registers.restoreWord(vex.SpanOf(at, 8), call.saved[i][:])
	}
	switch {
	case call.isResolver:
		t.x.Summarize(t.space, s.Word(vex.OffsetRAX), call.Summary)
		return
	case call.reads:
		t.setSearchResult(call)
		return
	case call.opaque != nil:
		t.setOpaqueResults(call)
		return
	case call.Result == "lower" || call.Result == "upper":
		t.setCaseResult(call)
		return
	case call.Result == "none":
		return
	}
	if call.bound != 0 {
		t.x.addConstraint(t.newConstraint(call.bound, Bound, call.Function))
	}
	name := fmt.Sprintf("%s(%s)", call.Function, call.input)
	n, at := call.Bits/8, vex.OffsetRAX
	if call.Result == "real" {
		at = vex.OffsetXMM
	}
	v, _ := t.registerTerm(at, n)
	derived := &Derived{call.Summary, call.input}
	t.x.derived[name] = derived
	of, _, _ := derived.Range()
	t.registers.setTerm(vex.SpanOf(at, n), t.x.namedTerm(name, of, call.Bits, v))
}

// maxDigits is the number of digits of a number that does not overflow.
const maxDigits = 18

// boundNumber builds the bound of a call that returns the end of a number: the bytes before
// its digits are the same, its digits are digits, and the byte after them is no digit. It
// reports whether there is a number.
func (t *thread) boundNumber(c *summarizedCall, text []byte) bool {
	addr := t.argumentValue(0)
	text = append(bytes.Clone(text), 0)
	n, digits := numberDigits(text)
	if digits == 0 || digits > maxDigits {
		return false
	}
	var cells [1]cell
	for i := range n + digits + 1 {
		t.x.memory.loadCells(t.space, addr+uint64(i), cells[:])
		c.requireByte(t.x.terms, t.x.terms.byteTerm(cells[0], text[i]), text[i], i >= n)
	}
	return true
}

// requireByte adds to the bound that a byte is the recorded one, or a digit, or no digit,
// as recorded.
func (c *summarizedCall) requireByte(t *termStore, b Term, was byte, digit bool) {
	if b < 0 {
		return
	}
	is := t.equalTerm(b, t.constantTerm(symbolic.Value{Lo: uint64(was)}, 8))
	if digit {
		wide := t.fitSize(b, 32)
		is = t.operationTerm(opNumber("CmpLT32U"), 1, t.operationTerm(opNumber("Sub32"), 32, wide, t.constantTerm(symbolic.Value{Lo: '0'}, 32), 0),
			t.constantTerm(symbolic.Value{Lo: 10}, 32), 0)
		if was-'0' >= 10 {
			is = t.notTerm(is)
		}
	}
	if c.bound != 0 {
		is = t.addNode(termNode{op: nodeAnd, bits: 1, a: c.bound, b: is})
	}
	c.bound = is
}
