package concolic

import (
	"fmt"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// MarkKind is the kind of a mark of heddle.h.
type MarkKind uint8

// Kinds of marks, by heddle.h's numbers.
const (
	// MarkInput: the bytes at an address are an input.
	MarkInput MarkKind = 1 + iota
	// MarkBegin and MarkEnd bound a task.
	MarkBegin
	MarkEnd
	// MarkRange: a number is in a range.
	MarkRange
)

// Mark is a mark that a thread has executed.
type Mark struct {
	Kind   MarkKind
	Thread arch.ThreadID
	PC     arch.Addr
	// Args are the mark's arguments: address and size, or number, least and greatest value.
	Args [3]uint64
}

// handleMark carries out a mark.
func (x *Executor) handleMark(t *thread, b *block) {
	s := &t.machine.State
	m := &Mark{
		Kind: MarkKind(b.code[3]), Thread: t.id, PC: arch.Addr(b.Addr),
		Args: [3]uint64{s.Word(vex.OffsetRAX + 8*7), s.Word(vex.OffsetRAX + 8*6), s.Word(vex.OffsetRAX + 8*2)},
	}
	if m.Kind == MarkInput && t.call == nil && !x.NoInputMarks {
		x.marks[t.id]++
		// The values of the bytes are learnt when they are loaded.
		n := m.Args[1]
		in := &input{name: fmt.Sprintf("input#%d.%d", t.id, x.marks[t.id]), data: make([]byte, n), unknown: slices.Repeat([]bool{true}, int(n))}
		x.addInput(t.space, m.Args[0], in)
	}
	if x.OnMark != nil {
		x.OnMark(m)
	}
}
