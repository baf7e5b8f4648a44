package concolic

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// input is bytes that are symbols: name[first] and following.
type input struct {
	name  string
	first int
	data  []byte
	// unknown marks the bytes whose value is learnt when they are loaded; nil: all are
	// known.
	unknown []bool
	// number is that of the input among those that may be pinned.
	number uint8
}

// namedSymbol is a symbol that is no byte of an input.
type namedSymbol struct {
	name  string
	bits  int
	value symbolic.Value
	// number is that of the input from which it is derived.
	number uint8
}

// Recorded returns the recorded value of a symbol; false: there is no such symbol, or its
// value is not known.
func (x *Executor) Recorded(name string) (symbolic.Value, bool) {
	if at, ok := x.nameOf[name]; ok {
		return x.names[at].value, true
	}
	base := inputName(name)
	if base == "" {
		return symbolic.Value{}, false
	}
	n, err := strconv.Atoi(name[len(base)+1 : len(name)-1])
	if err != nil {
		return symbolic.Value{}, false
	}
	list := x.inputsOf[base]
	for i := len(list) - 1; i >= 0; i-- {
		in := x.inputs[list[i]]
		if at := n - in.first; at >= 0 && at < len(in.data) && (in.unknown == nil || !in.unknown[at]) {
			return symbolic.Value{Lo: uint64(in.data[at])}, true
		}
	}
	return symbolic.Value{}, false
}

// inputName returns the input of a byte, given the byte's symbol, or the empty string.
func inputName(name string) string {
	open := strings.LastIndexByte(name, '[')
	if open < 0 || !strings.HasSuffix(name, "]") {
		return ""
	}
	return name[:open]
}

// Symbols lists the names of all symbols: bytes of inputs and results of functions.
func (x *Executor) Symbols() []string {
	var list []string
	for _, in := range x.inputs {
		for i := range in.data {
			if in.unknown == nil || !in.unknown[i] {
				list = append(list, symbolName(in.name, in.first+i))
			}
		}
	}
	for _, n := range x.names {
		list = append(list, n.name)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Input makes bytes of memory symbols: name[first] and following. A name given before means
// that the same input was read again.
func (x *Executor) Input(space, addr uint64, name string, first int, data []byte) {
	x.addInput(space, addr, &input{name: name, first: first, data: bytes.Clone(data), number: x.numberInput(name)})
}

// InputRegister makes the bytes of a general register of a thread that was resumed symbols: name[first] and following.
func (x *Executor) InputRegister(id arch.ThreadID, register int, name string, first int) {
	t, at := x.threads[id], vex.OffsetRAX+8*register
	in := &input{name: name, first: first, data: bytes.Clone(t.machine.State[at : at+8]), number: x.numberInput(name)}
	n := x.appendInput(in)
	for i := range in.data {
		t.registers.setTerm(vex.SpanOf(at+i, 1), x.terms.addNode(termNode{op: nodeByte, bits: 8, a: n, b: Term(i)}))
	}
}

func (x *Executor) appendInput(in *input) Term {
	n := len(x.inputs)
	x.inputs = append(x.inputs, in)
	x.inputsOf[in.name] = append(x.inputsOf[in.name], n)
	return Term(n)
}

// addInput makes bytes of memory symbols of an input.
func (x *Executor) addInput(space, addr uint64, in *input) {
	n := x.appendInput(in)
	if x.pinned>>in.number&1 != 0 {
		x.memory.storeTerm(space, addr, len(in.data), 0)
		return
	}
	if set := inputSet(1) << in.number; x.untracked&set != 0 {
		for i := range in.data {
			x.memory.storeTerm(space, addr+uint64(i), 1, x.terms.untrackedTerm(set, 8))
		}
		return
	}
	for i := range in.data {
		x.memory.storeTerm(space, addr+uint64(i), 1, x.terms.addNode(termNode{op: nodeByte, bits: 8, a: n, b: Term(i)}))
	}
}

// namedTerm is the symbol of a name, with its recorded value, that is derived from an input; 0: the input is pinned.
func (x *Executor) namedTerm(name, of string, bits int, v symbolic.Value) Term {
	if x.isPinned(of) {
		return 0
	}
	at, known := x.nameOf[name]
	if !known {
		at = len(x.names)
		x.nameOf[name] = at
		x.names = append(x.names, namedSymbol{name: name, bits: bits, number: x.numberInput(of)})
	}
	x.names[at].value = v
	if x.untracked == allInputs {
		return x.terms.untrackedTerm(1<<x.names[at].number, bits)
	}
	return x.terms.addNode(termNode{op: nodeNamed, bits: uint8(bits), a: Term(at)})
}

// learnValues sets the values of bytes of inputs that were not known before their first
// load.
func (x *Executor) learnValues(space, addr uint64, p []byte) {
	var cells [16]cell
	x.memory.loadCells(space, addr, cells[:len(p)])
	for i, c := range cells[:len(p)] {
		if c.term() <= 0 {
			continue
		}
		n := x.terms.node(c.term())
		if n.op != nodeByte {
			continue
		}
		if in := x.inputs[n.a]; in.unknown != nil && in.unknown[n.b] {
			in.unknown[n.b], in.data[n.b] = false, p[i]
		}
	}
}
