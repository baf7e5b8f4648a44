package exec

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// input is bytes that are symbols: name[first] and so on.
type input struct {
	name  string
	first int
	data  []byte
	// unknown are those of which the value is not known before they are loaded; nil:
	// all are known.
	unknown []bool
}

// named is another symbol.
type named struct {
	name  string
	bits  int
	value symbolic.Value
}

// Recorded is the recorded value of an input's symbol, or of a function's result.
func (x *Executor) Recorded(name string) (symbolic.Value, bool) {
	if at, ok := x.nameOf[name]; ok {
		return x.names[at].value, true
	}
	base := inputOf(name)
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

// inputOf is the input that a byte with a symbol's name is of, or empty.
func inputOf(name string) string {
	open := strings.LastIndexByte(name, '[')
	if open < 0 || !strings.HasSuffix(name, "]") {
		return ""
	}
	return name[:open]
}

// Symbols lists the names of the symbols of inputs, and of results of functions.
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

// Input makes bytes of memory symbols: name[first] and so on. A name that was given
// before is the same input read again.
func (x *Executor) Input(space, addr uint64, name string, first int, data []byte) {
	x.symbols(space, addr, &input{name: name, first: first, data: bytes.Clone(data)})
}

// symbols makes bytes of memory symbols of an input.
func (x *Executor) symbols(space, addr uint64, in *input) {
	n := Term(len(x.inputs))
	x.inputs = append(x.inputs, in)
	x.inputsOf[in.name] = append(x.inputsOf[in.name], int(n))
	for i := range in.data {
		x.memory.store(space, addr+uint64(i), 1, x.terms.add(node{op: nodeByte, bits: 8, a: n, b: Term(i)}))
	}
}

// symbol is the symbol of a name, with its recorded value.
func (x *Executor) symbol(name string, bits int, v symbolic.Value) Term {
	at, known := x.nameOf[name]
	if !known {
		at = len(x.names)
		x.nameOf[name] = at
		x.names = append(x.names, named{name: name, bits: bits})
	}
	x.names[at].value = v
	return x.terms.add(node{op: nodeNamed, bits: uint8(bits), a: Term(at)})
}

// learn takes the values of bytes that are loaded for the first time, of inputs
// that are not known before.
func (x *Executor) learn(space, addr uint64, p []byte) {
	var cells [16]cell
	x.memory.load(space, addr, cells[:len(p)])
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
