package concolic

import (
	"bytes"

	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/internal/zydis"
)

type blockKey struct {
	space, pc uint64
	most      int // instructions, 0 for no limit
}

// block is lifted code.
type block struct {
	*vex.Block
	flat *vex.Flat
	// constants are the terms of flat's constants; 0: not made yet.
	constants []Term
	key       blockKey
	number    int
	code      []byte
	// piece is the piece of a run in which the code was last compared with memory.
	piece        uint64
	instructions int
	// countsBranch is set if it ends with a branch of the kinds that event.Stamp counts.
	countsBranch bool
	// storesStatus is set if it stores or loads MXCSR, or all of the x87.
	storesStatus bool
	// isMark is set for a mark of heddle.h.
	isMark bool
	// isSummarized is set if a function with a summary begins here; isResolver, if a
	// function that chooses one with a summary does. Both are valid if lookupVersion is
	// Executor.functions.
	isSummarized, isResolver bool
	lookupVersion            int
	// reads and written are the words of the guest state that it reads and writes, writes
	// the bytes that it writes.
	reads, written [2]uint64
	writes         []vex.Span
}

const maxBlockBytes = 200

// blockAt returns the block at a location, limited to a number of instructions.
func (x *Executor) blockAt(k blockKey, piece uint64) (*block, error) {
	slot := &x.latest[(k.pc^k.pc>>12)%uint64(len(x.latest))]
	if *slot == nil || (*slot).key != k {
		*slot = x.blocks[k]
	}
	b := *slot
	if b != nil && b.piece == piece {
		return b, nil
	}
	code := x.bytes[:]
	if b != nil {
		if n := x.readCode(k.space, k.pc, code[:len(b.code)]); bytes.Equal(code[:n], b.code) {
			b.piece = piece
			return b, nil
		}
	}
	n := x.readCode(k.space, k.pc, code)
	b, err := newBlock(code[:n], k)
	if err != nil {
		return nil, err
	}
	b.key, b.piece, b.number = k, piece, x.count
	x.count++
	x.blocks[k], *slot = b, b
	return b, nil
}

func newBlock(code []byte, k blockKey) (*block, error) {
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
	b.isMark = vex.IsMark(b.code)
	b.storesStatus = bytes.Contains(b.code, []byte{0x0f, 0xae})
	run := zydis.Walk(b.code, make([]byte, len(b.code)))
	switch run.Kind {
	case zydis.Conditional, zydis.IndirectJump, zydis.IndirectCall, zydis.Return:
		b.countsBranch = true
	}
	for i := range b.flat.Steps {
		b.noteStep(&b.flat.Steps[i], b.Stmts[i])
	}
	for _, w := range b.writes {
		addWords(&b.written, wordMask(w))
	}
	return b, nil
}

// addWords adds words to a mask.
func addWords(mask *[2]uint64, more [2]uint64) {
	mask[0] |= more[0]
	mask[1] |= more[1]
}

func (b *block) noteStateRead(s vex.Span) { addWords(&b.reads, wordMask(s)) }

// noteStep records the parts of the guest state that a step reads and writes.
func (b *block) noteStep(step *vex.Step, s vex.Stmt) {
	switch step.Kind {
	case vex.StepMark:
		if step.Size > 0 {
			b.instructions++
		}
	case vex.StepGet:
		b.noteStateRead(vex.SpanOf(int(step.Offset), int(step.Size)))
	case vex.StepPut:
		b.writes = append(b.writes, vex.SpanOf(int(step.Offset), int(step.Size)))
	case vex.StepOther:
		b.noteStatement(s)
	}
}

// noteStatement does the same for a statement that has no step.
func (b *block) noteStatement(s vex.Stmt) {
	switch s := s.(type) {
	case *vex.PutI:
		b.writes = append(b.writes, s.Array.Span())
	case *vex.Assign:
		vex.StateRead(s.Data, b.noteStateRead)
	case *vex.Dirty:
		for _, fx := range s.State {
			for _, at := range fx.Spans() {
				if fx.Effect.Reads() {
					b.noteStateRead(at)
				}
				if fx.Effect.Writes() {
					b.writes = append(b.writes, at)
				}
			}
		}
	}
}
