package exec

import (
	"bytes"

	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/internal/zydis"
)

type blockPlace struct {
	space, pc uint64
	most      int // instructions, 0 for no limit
}

// block is code with what it is lifted to.
type block struct {
	*vex.Block
	flat *vex.Flat
	// constants are the terms of flat's constants; 0: not made.
	constants []Term
	place     blockPlace
	number    int
	code      []byte
	// piece is the piece of a run in which the code was last looked at.
	piece        uint64
	instructions int
	// branch tells that it ends with a branch that is counted.
	branch bool
	// status tells that it stores or loads MXCSR, or all of the x87.
	status bool
	// mark tells that it is a mark of heddle.h.
	mark bool
	// function tells that a function with a summary begins here, chooses that one
	// does which chooses such a function, when Executor.functions was looked.
	function, chooses bool
	looked            int
	// reads and written are the words of the state that it reads and writes, and
	// writes the bytes.
	reads, written [2]uint64
	writes         []vex.Span
}

const longest = 200

// block returns the block at a place of no more than so many instructions.
func (x *Executor) block(k blockPlace, piece uint64) (*block, error) {
	slot := &x.latest[(k.pc^k.pc>>12)%uint64(len(x.latest))]
	if *slot == nil || (*slot).place != k {
		*slot = x.blocks[k]
	}
	b := *slot
	if b != nil && b.piece == piece {
		return b, nil
	}
	code := x.bytes[:]
	if b != nil {
		if n := x.code(k.space, k.pc, code[:len(b.code)]); bytes.Equal(code[:n], b.code) {
			b.piece = piece
			return b, nil
		}
	}
	n := x.code(k.space, k.pc, code)
	b, err := newBlock(code[:n], k)
	if err != nil {
		return nil, err
	}
	b.place, b.piece, b.number = k, piece, x.count
	x.count++
	x.blocks[k], *slot = b, b
	return b, nil
}

func newBlock(code []byte, k blockPlace) (*block, error) {
	if k.most > 0 {
		lengths := make([]byte, k.most)
		code = code[:zydis.Walk(code, lengths).Bytes]
	}
	lifted, err := vex.Lift(code, k.pc)
	if err != nil {
		return nil, err
	}
	b := &block{Block: lifted, flat: lifted.Flat(), code: bytes.Clone(code[:lifted.Size])}
	b.constants = make([]Term, len(b.flat.Constants))
	b.mark = vex.IsMark(b.code)
	b.status = bytes.Contains(b.code, []byte{0x0f, 0xae})
	run := zydis.Walk(b.code, make([]byte, len(b.code)))
	switch run.Kind {
	case zydis.Conditional, zydis.IndirectJump, zydis.IndirectCall, zydis.Return:
		b.branch = true
	}
	for i := range b.flat.Steps {
		b.note(&b.flat.Steps[i], b.Stmts[i])
	}
	for _, w := range b.writes {
		add(&b.written, maskOf(w))
	}
	return b, nil
}

// add adds words to a mask.
func add(mask *[2]uint64, more [2]uint64) {
	mask[0] |= more[0]
	mask[1] |= more[1]
}

func (b *block) noteRead(s vex.Span) { add(&b.reads, maskOf(s)) }

// note notes what a step reads and writes of the state.
func (b *block) note(step *vex.Step, s vex.Stmt) {
	switch step.Kind {
	case vex.StepMark:
		if step.Size > 0 {
			b.instructions++
		}
	case vex.StepGet:
		b.noteRead(vex.SpanOf(int(step.Offset), int(step.Size)))
	case vex.StepPut:
		b.writes = append(b.writes, vex.SpanOf(int(step.Offset), int(step.Size)))
	case vex.StepOther:
		b.noteOther(s)
	}
}

// noteOther is note for a statement that has no step.
func (b *block) noteOther(s vex.Stmt) {
	switch s := s.(type) {
	case *vex.PutI:
		b.writes = append(b.writes, s.Array.Span())
	case *vex.Assign:
		vex.StateRead(s.Data, b.noteRead)
	case *vex.Dirty:
		for _, fx := range s.State {
			for _, at := range fx.Spans() {
				if fx.Effect.Reads() {
					b.noteRead(at)
				}
				if fx.Effect.Writes() {
					b.writes = append(b.writes, at)
				}
			}
		}
	}
}
