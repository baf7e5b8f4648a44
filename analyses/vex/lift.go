package vex

/*
#cgo CFLAGS: -std=gnu11 -Wall -Wextra -Werror -O2
#cgo LDFLAGS: -L/usr/lib/x86_64-linux-gnu/valgrind -lvex-amd64-linux -lgcc-sup-amd64-linux
#include <stdlib.h>
#include "lift.h"

#cgo noescape heddle_lift
#cgo nocallback heddle_lift
#cgo noescape heddle_op_name
#cgo nocallback heddle_op_name
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"
)

// libraryMutex guards libVEX, which works on one block at a time and in memory of its own.
var libraryMutex sync.Mutex

// invalidCode is the opcode of PUSH ES, which is invalid in 64-bit mode, more times than an
// instruction is long: wherever libVEX decodes it, a block ends.
const invalidCode = "\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06"

// Lift lifts the code at an address, up to its last whole instruction, the first branch or
// the 99th instruction, whichever comes first. An instruction that libVEX treats
// differently from the processor becomes a block of its own. It returns an error if no
// instruction can be decoded.
func Lift(code []byte, addr uint64) (*Block, error) {
	if len(code) == 0 {
		return nil, fmt.Errorf("lift the code at %#x: there is none", addr)
	}
	for {
		b, end, err := liftUpTo(code, addr)
		if err != nil {
			return nil, err
		}
		// Code that is cut in the middle must be lifted again without the rest: libVEX
		// leaves out writes that later instructions overwrite.
		if end < len(code) && end > 0 {
			code = code[:end]
			continue
		}
		if end == 0 && b == nil {
			return nil, fmt.Errorf("lift the code at %#x: libVEX does not know % x", addr, code[:min(len(code), 15)])
		}
		return b, nil
	}
}

// liftUpTo lifts code. End is where to cut the code for another try, or its length if the
// block is right. If there is no instruction, it returns no block and an end of 0.
func liftUpTo(code []byte, addr uint64) (b *Block, end int, err error) {
	b, cut, err := liftBlock(code, addr)
	if err != nil {
		return nil, 0, err
	}
	if cut >= 0 && cut < len(code) && b.Size > 0 {
		return nil, cut, nil
	}
	for _, s := range b.Stmts {
		m, ok := s.(*Mark)
		if !ok {
			continue
		}
		at := int(m.Addr - addr)
		length := m.Len
		if length == 0 {
			length = undecodedLength(code[at:])
		}
		in := splitPrefixes(code[at:at+length], m.Addr)
		own := specialMaker(in)
		switch {
		case own == nil && !isPushFlags(in) && !isStoreMXCSR(in) && !IsMark(in.code):
		case at > 0:
			return nil, at, nil
		case own != nil:
			return specialBlock(in, own(in)), len(code), nil
		case len(code) > length:
			return nil, length, nil
		case isPushFlags(in):
			withConstantFlags(b)
		}
	}
	if b.Size == 0 {
		return nil, 0, nil
	}
	return b, len(code), nil
}

// undecodedLength is the length of an instruction that libVEX does not know, if this
// package knows it: prefixes and one byte.
func undecodedLength(code []byte) int {
	in := splitPrefixes(code, 0)
	if len(in.code) == 0 {
		return 0
	}
	return len(code) - len(in.code) + 1
}

// liftBlock has libVEX lift a block. Cut is where the code ends in the middle of an
// instruction, -1 if it does not.
func liftBlock(code []byte, addr uint64) (b *Block, cut int, err error) {
	padded := append(append(make([]byte, 0, len(code)+len(invalidCode)), code...), invalidCode...)
	libraryMutex.Lock()
	defer libraryMutex.Unlock()
	var words C.struct_heddle_words
	defer func() { C.free(unsafe.Pointer(words.at)) }()
	if C.heddle_lift((*C.uint8_t)(unsafe.Pointer(&padded[0])), C.size_t(len(code)), C.uint64_t(addr), &words) != 0 {
		return nil, 0, fmt.Errorf("lift the code at %#x: libVEX gave up on % x", addr, code[:min(len(code), 15)])
	}
	r := blockReader{words: unsafe.Slice((*uint64)(unsafe.Pointer(words.at)), int(words.n)), nodeSlabs: &libraryNodes}
	b = r.readBlock()
	b.Addr = addr
	for _, s := range b.Stmts {
		if m, ok := s.(*Mark); ok {
			b.Size = int(m.Addr-addr) + m.Len
		}
	}
	return b, r.readInt() - int(addr), nil
}

var opNames = sync.OnceValue(func() []string {
	libraryMutex.Lock()
	defer libraryMutex.Unlock()
	names := make([]string, int(C.heddle_op_count()))
	var text [64]byte
	for i := range names {
		n := C.heddle_op_name(C.int(i), (*C.char)(unsafe.Pointer(&text[0])), C.size_t(len(text)))
		names[i] = string(text[:n])
	}
	return names
})

// opNumbers has the operations by name.
var opNumbers = sync.OnceValue(func() map[string]Op {
	numbers := map[string]Op{}
	for i, name := range opNames() {
		numbers[name] = Op(i)
	}
	return numbers
})

// opNumber is the number of one of libVEX's operations.
func opNumber(name string) Op {
	o, ok := opNumbers()[name]
	if !ok {
		panic("bug: no operation " + name)
	}
	return o
}

// NumOps is the number of operations; they are numbered from 0.
func NumOps() int { return len(opNames()) }

func (o Op) String() string {
	if names := opNames(); int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("Op%d", uint16(o))
}

// blockReader reads a block from the words that lift.c writes.
type blockReader struct {
	words []uint64
	// reads are the Reads of the temporaries, by number.
	reads []Read
	*nodeSlabs
}

// nodeSlabs allocates the most frequent nodes, many at a time.
type nodeSlabs struct {
	marks      slab[Mark]
	puts       slab[Put]
	assigns    slab[Assign]
	gets       slab[Get]
	operations slab[Operation]
	constants  slab[Const]
	args       []Expr
}

// libraryNodes are guarded by libraryMutex.
var libraryNodes nodeSlabs

// slab allocates many values at a time.
type slab[T any] struct{ free []T }

const slabSize = 128

func (s *slab[T]) allocate(x T) *T {
	if len(s.free) == 0 {
		s.free = make([]T, slabSize)
	}
	p := &s.free[0]
	s.free = s.free[1:]
	*p = x
	return p
}

func (r *blockReader) readWord() uint64 {
	w := r.words[0]
	r.words = r.words[1:]
	return w
}

func (r *blockReader) readInt() int { return int(int64(r.readWord())) }

func (r *blockReader) readType() Type { return Type(r.readWord()) }

func (r *blockReader) readBlock() *Block {
	b := &Block{Types: make([]Type, r.readInt())}
	r.reads = make([]Read, len(b.Types))
	for i := range b.Types {
		b.Types[i], r.reads[i].Temp = r.readType(), Temp(i)
	}
	n := r.readInt()
	b.Stmts = make([]Stmt, 0, n)
	for range n {
		if s := r.readStatement(); s != nil {
			b.Stmts = append(b.Stmts, s)
		}
	}
	b.Next = r.readExpr()
	b.Jump = JumpKind(r.readWord())
	return b
}

// Tags of statements: IRStmtTag, counted from Ist_NoOp.
const (
	tagNoOp = iota
	tagMark
	tagAbiHint
	tagPut
	tagPutI
	tagAssign
	tagStore
	tagLoadG
	tagStoreG
	tagCAS
	tagLLSC
	tagDirty
	tagFence
	tagExit
)

func (r *blockReader) readStatement() Stmt {
	switch tag := r.readWord(); tag {
	case tagNoOp, tagAbiHint:
		return nil
	case tagMark:
		return r.marks.allocate(Mark{Addr: r.readWord(), Len: r.readInt()})
	case tagPut:
		return r.puts.allocate(Put{Offset: r.readInt(), Data: r.readExpr()})
	case tagPutI:
		return &PutI{Array: r.readArray(), Index: r.readExpr(), Bias: r.readInt(), Data: r.readExpr()}
	case tagAssign:
		return r.assigns.allocate(Assign{Temp: Temp(r.readInt()), Data: r.readExpr()})
	case tagStore:
		return &Store{Addr: r.readExpr(), Data: r.readExpr()}
	case tagStoreG:
		return &Store{Guard: r.readExpr(), Addr: r.readExpr(), Data: r.readExpr()}
	case tagLoadG:
		return &LoadG{Temp: Temp(r.readInt()), Cvt: LoadCvt(r.readWord()), Guard: r.readExpr(), Addr: r.readExpr(), Alt: r.readExpr()}
	case tagCAS:
		return &CAS{
			OldHi: Temp(r.readInt()), OldLo: Temp(r.readInt()), Addr: r.readExpr(),
			ExpectedHi: r.readOptional(), ExpectedLo: r.readExpr(), DataHi: r.readOptional(), DataLo: r.readExpr(),
		}
	case tagDirty:
		return r.readDirty()
	case tagFence:
		r.readWord() // libVEX has one kind for x86
		return &Fence{}
	case tagExit:
		s := &Exit{Guard: r.readExpr()}
		r.readType()
		s.Dst, s.Jump = r.readWord(), JumpKind(r.readWord())
		return s
	default:
		panic(fmt.Sprintf("bug: statement tag %d", tag))
	}
}

func (r *blockReader) readDirty() *Dirty {
	d := &Dirty{Temp: Temp(r.readInt()), Guard: r.readExpr()}
	d.Callee, d.Args = r.readCallee()
	d.Effect, d.MemSize, d.MemAddr = effectOf(r.readWord()), r.readInt(), r.readOptional()
	for range r.readInt() {
		d.State = append(d.State, StateEffect{
			Effect: effectOf(r.readWord()), Offset: r.readInt(), Size: r.readInt(), Repeats: r.readInt(), RepeatLen: r.readInt(),
		})
	}
	return d
}

// effectOf converts an IREffect, whose first value is Ifx_None, 0x1B00. In fxState it is
// kept in 16 bits.
func effectOf(w uint64) Effect { return Effect(uint16(w) - 0x1b00) }

func (r *blockReader) readArray() Array {
	return Array{Base: r.readInt(), Elem: r.readType(), Count: r.readInt()}
}

func (r *blockReader) readCallee() (string, []Expr) {
	name := C.GoString(C.heddle_text(C.uint64_t(r.readWord())))
	return name, r.readExprs()
}

func (r *blockReader) readExprs() []Expr {
	n := r.readInt()
	if len(r.args) < n {
		r.args = make([]Expr, slabSize)
	}
	args := r.args[:n:n]
	r.args = r.args[n:]
	for i := range args {
		args[i] = r.readExpr()
	}
	return args
}

func (r *blockReader) readOptional() Expr {
	if r.readWord() == 0 {
		return nil
	}
	return r.readExpr()
}

// Tags of expressions: IRExprTag, counted from Iex_Binder.
const (
	tagBinder = iota
	tagGet
	tagGetI
	tagRead
	tagQop
	tagTriop
	tagBinop
	tagOperation // Iex_Unop
	tagLoad
	tagConst
	tagITE
	tagCall
	tagVectorResult
	tagStatePointer
)

func (r *blockReader) readExpr() Expr {
	switch tag := r.readWord(); tag {
	case tagGet:
		return r.gets.allocate(Get{Offset: r.readInt(), Type: r.readType()})
	case tagGetI:
		return &GetI{Array: r.readArray(), Index: r.readExpr(), Bias: r.readInt()}
	case tagRead:
		return &r.reads[r.readInt()]
	case tagOperation:
		return r.operations.allocate(Operation{Op: Op(r.readWord()), Args: r.readExprs()})
	case tagLoad:
		return &Load{Type: r.readType(), Addr: r.readExpr()}
	case tagConst:
		return r.constants.allocate(Const{Type: r.readType(), Bits: r.readWord()})
	case tagITE:
		return &ITE{Cond: r.readExpr(), Then: r.readExpr(), Else: r.readExpr()}
	case tagCall:
		c := &Call{Type: r.readType()}
		c.Callee, c.Args = r.readCallee()
		return c
	case tagVectorResult:
		return &VectorResult{}
	case tagStatePointer:
		return &StatePointer{}
	default:
		panic(fmt.Sprintf("bug: expression tag %d", tag))
	}
}
