package exec

import (
	"fmt"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// MarkKind says what a mark of heddle.h says.
type MarkKind uint8

// Kinds of marks, by heddle.h's numbers.
const (
	// MarkInput: the bytes at an address are an input.
	MarkInput MarkKind = 1 + iota
	// MarkBegin and MarkEnd are those of a task.
	MarkBegin
	MarkEnd
	// MarkRange: a number is in a range.
	MarkRange
)

// Mark is a mark that a thread has come to.
type Mark struct {
	Kind   MarkKind
	Thread event.ThreadID
	PC     event.Addr
	// Args are the mark's: address and size, or number, least and greatest.
	Args [3]uint64
}

// mark does what a mark says.
func (x *Executor) mark(t *thread, b *block) {
	s := &t.machine.State
	m := &Mark{
		Kind: MarkKind(b.code[3]), Thread: t.id, PC: event.Addr(b.Addr),
		Args: [3]uint64{s.Word(vex.OffsetRAX + 8*7), s.Word(vex.OffsetRAX + 8*6), s.Word(vex.OffsetRAX + 8*2)},
	}
	if m.Kind == MarkInput && t.call == nil {
		x.marks[t.id]++
		// What the bytes are is known when they are loaded.
		n := m.Args[1]
		in := &input{name: fmt.Sprintf("input#%d.%d", t.id, x.marks[t.id]), data: make([]byte, n), unknown: slices.Repeat([]bool{true}, int(n))}
		x.symbols(t.space, m.Args[0], in)
	}
	if x.Marked != nil {
		x.Marked(m)
	}
}
