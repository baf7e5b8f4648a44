package symtrace

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/vex"
)

// block is code with its lifted form.
type block struct {
	*vex.Block
	key           blockKey
	code          []byte
	instructions  int
	last          uint64     // its last instruction
	repeats       bool       // which is a string instruction that repeats
	reads, writes []vex.Span // of the state
	// locked are the instructions with a locked access, by number from 1.
	locked []bool
	// accesses counts the loads and stores of each instruction, by number from 1.
	accesses []int
	stub     *lazyStub // that begins with it, or nil
}

type blockKey struct {
	pc           uint64
	instructions int
}

// liftBlock returns the block of at most the given number of instructions at an address.
func (b *pass) liftBlock(pc uint64, instructions, size int) (*block, error) {
	k := blockKey{pc, instructions}
	recent := &b.recentBlocks[(pc^uint64(instructions))%uint64(len(b.recentBlocks))]
	if *recent != nil && (*recent).key == k {
		return *recent, nil
	}
	if known := b.blocks[k]; known != nil {
		*recent = known
		return known, nil
	}
	code := make([]byte, size)
	if n := b.image.peekChanged(pc, code); n < size {
		return nil, fmt.Errorf("there is no code at %#x", pc)
	}
	lifted, err := vex.Lift(code, pc)
	if err != nil {
		return nil, err
	}
	x := &block{Block: lifted, key: k, code: code[:lifted.Size], stub: b.image.lazyStubAt(pc)}
	x.scanStatements()
	b.blocks[k] = x
	return x, nil
}

// scanStatements notes which parts of the state the statements read and write, and counts
// instructions.
func (x *block) scanStatements() {
	x.locked, x.accesses = []bool{false}, []int{0}
	for _, s := range x.Stmts {
		switch s := s.(type) {
		case *vex.Mark:
			if s.Len > 0 {
				x.instructions++
				x.locked, x.accesses = append(x.locked, false), append(x.accesses, 0)
			}
			x.last = s.Addr
		case *vex.CAS:
			x.locked[x.instructions] = true
		case *vex.Put:
			x.writes = append(x.writes, vex.SpanOf(s.Offset, x.TypeOf(s.Data).Bytes()))
		case *vex.PutI:
			x.writes = append(x.writes, s.Array.Span())
		case *vex.Store, *vex.LoadG:
			x.accesses[x.instructions]++
		case *vex.Assign:
			if _, loads := s.Data.(*vex.Load); loads {
				x.accesses[x.instructions]++
			}
			vex.StateRead(s.Data, func(at vex.Span) { x.reads = append(x.reads, at) })
		case *vex.Dirty:
			for _, e := range s.State {
				x.reads, x.writes = append(x.reads, e.Spans()...), append(x.writes, e.Spans()...)
			}
		}
	}
	if at := int(x.last - x.Addr); at < len(x.code) {
		first := x.code[at]
		x.repeats = first == 0xf2 || first == 0xf3
	}
}
