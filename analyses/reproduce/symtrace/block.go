package symtrace

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/vex"
)

// block is code with what it is lifted to.
type block struct {
	*vex.Block
	code          []byte
	instructions  int
	last          uint64 // its last instruction
	repeats       bool   // which is a string instruction that repeats
	reads, writes []span // of the state
	// locked are the instructions with a locked access, by number from 1.
	locked []bool
}

// span is bytes of the state.
type span struct{ from, to int }

type blockKey struct {
	pc           uint64
	instructions int
}

// lift finds the block of no more than so many instructions at an address.
func (b *builder) lift(pc uint64, instructions, size int) (*block, error) {
	k := blockKey{pc, instructions}
	if known := b.blocks[k]; known != nil {
		return known, nil
	}
	code := make([]byte, size)
	if n := b.image.Peek(pc, code); n < size {
		return nil, fmt.Errorf("there is no code at %#x", pc)
	}
	lifted, err := vex.Lift(code, pc)
	if err != nil {
		return nil, err
	}
	x := &block{Block: lifted, code: code[:lifted.Size]}
	x.scan()
	b.blocks[k] = x
	return x, nil
}

// scan notes what statements read and write of the state, and counts instructions.
func (x *block) scan() {
	x.locked = []bool{false}
	for _, s := range x.Stmts {
		switch s := s.(type) {
		case *vex.Mark:
			if s.Len > 0 {
				x.instructions++
				x.locked = append(x.locked, false)
			}
			x.last = s.Addr
		case *vex.CAS:
			x.locked[x.instructions] = true
		case *vex.Put:
			x.writes = append(x.writes, span{s.Offset, s.Offset + x.typeOf(s.Data).Bytes()})
		case *vex.PutI:
			x.writes = append(x.writes, arraySpan(s.Array))
		case *vex.Assign:
			x.scanExpr(s.Data)
		case *vex.Dirty:
			for _, e := range s.State {
				for i := 0; i <= e.Repeats; i++ {
					from := e.Offset + i*e.RepeatLen
					x.reads, x.writes = append(x.reads, span{from, from + e.Size}), append(x.writes, span{from, from + e.Size})
				}
			}
		}
	}
	if at := int(x.last - x.Addr); at < len(x.code) {
		first := x.code[at]
		x.repeats = first == 0xf2 || first == 0xf3
	}
}

func (x *block) scanExpr(e vex.Expr) {
	switch e := e.(type) {
	case *vex.Get:
		x.reads = append(x.reads, span{e.Offset, e.Offset + e.Type.Bytes()})
	case *vex.GetI:
		x.reads = append(x.reads, arraySpan(e.Array))
	case *vex.Operation:
		for _, a := range e.Args {
			x.scanExpr(a)
		}
	case *vex.Call:
		for _, a := range e.Args {
			x.scanExpr(a)
		}
	case *vex.Load:
		x.scanExpr(e.Addr)
	}
}

func arraySpan(a vex.Array) span { return span{a.Base, a.Base + a.Count*a.Elem.Bytes()} }

// typeOf is the type of an operand.
func (x *block) typeOf(e vex.Expr) vex.Type {
	switch e := e.(type) {
	case *vex.Read:
		return x.Types[e.Temp]
	case *vex.Const:
		return e.Type
	case *vex.Get:
		return e.Type
	case *vex.GetI:
		return e.Array.Elem
	case *vex.Load:
		return e.Type
	case *vex.Call:
		return e.Type
	}
	return vex.I64
}
