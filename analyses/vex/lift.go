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

// library guards libVEX, which works on one block at a time and in memory of
// its own.
var library sync.Mutex

// invalid is more of PUSH ES, which is no instruction any more, than an
// instruction is long: where libVEX finds it, wherever it looks, a block ends.
const invalid = "\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06"

// Lift lifts the code at an address, up to its last whole instruction, the first
// branch or the 99th instruction, whichever comes first; an instruction that
// libVEX does not do as the processor does is a block of its own. It is an error
// if there is not one instruction that can be decoded.
func Lift(code []byte, addr uint64) (*Block, error) {
	if len(code) == 0 {
		return nil, fmt.Errorf("lift the code at %#x: there is none", addr)
	}
	for {
		b, end, err := liftOnce(code, addr)
		if err != nil {
			return nil, err
		}
		// What is cut off in the middle must be lifted again without the rest:
		// libVEX leaves out what later instructions overwrite.
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

// liftOnce lifts code once. End is where to cut the code for another try, or its
// length if the block is right. No block and an end of 0 say that there is no
// instruction.
func liftOnce(code []byte, addr uint64) (b *Block, end int, err error) {
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
			length = undecoded(code[at:])
		}
		in := prefixes(code[at:at+length], m.Addr)
		own := special(in)
		switch {
		case own == nil && !isPushFlags(in) && !isStoreMXCSR(in) && !IsMark(in.code):
		case at > 0:
			return nil, at, nil
		case own != nil:
			return ownBlock(in, own(in)), len(code), nil
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

// undecoded is the length of an instruction that libVEX does not know, if it is
// one that is known here: prefixes and one byte.
func undecoded(code []byte) int {
	in := prefixes(code, 0)
	if len(in.code) == 0 {
		return 0
	}
	return len(code) - len(in.code) + 1
}

// liftBlock has libVEX lift a block. Cut is where the code ends in the middle of
// an instruction, -1 if it does not.
func liftBlock(code []byte, addr uint64) (b *Block, cut int, err error) {
	padded := append(append(make([]byte, 0, len(code)+len(invalid)), code...), invalid...)
	library.Lock()
	defer library.Unlock()
	var words C.struct_heddle_words
	defer func() { C.free(unsafe.Pointer(words.at)) }()
	if C.heddle_lift((*C.uint8_t)(unsafe.Pointer(&padded[0])), C.size_t(len(code)), C.uint64_t(addr), &words) != 0 {
		return nil, 0, fmt.Errorf("lift the code at %#x: libVEX gave up on % x", addr, code[:min(len(code), 15)])
	}
	r := reader{words: unsafe.Slice((*uint64)(unsafe.Pointer(words.at)), int(words.n)), nodes: &made}
	b = r.block()
	b.Addr = addr
	for _, s := range b.Stmts {
		if m, ok := s.(*Mark); ok {
			b.Size = int(m.Addr-addr) + m.Len
		}
	}
	return b, r.int() - int(addr), nil
}

var opNames = sync.OnceValue(func() []string {
	library.Lock()
	defer library.Unlock()
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

// opNumber is the operation of a name that libVEX has.
func opNumber(name string) Op {
	o, ok := opNumbers()[name]
	if !ok {
		panic("bug: no operation " + name)
	}
	return o
}

// Ops is how many operations there are: they are numbered from 0.
func Ops() int { return len(opNames()) }

func (o Op) String() string {
	if names := opNames(); int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("Op%d", uint16(o))
}

// reader takes a block out of the words that lift.c writes.
type reader struct {
	words []uint64
	// reads are those of the temporaries, by number.
	reads []Read
	*nodes
}

// nodes are what is made most, many at a time.
type nodes struct {
	marks      slab[Mark]
	puts       slab[Put]
	assigns    slab[Assign]
	gets       slab[Get]
	operations slab[Operation]
	constants  slab[Const]
	args       []Expr
}

// made are the library's: they are for whoever holds it.
var made nodes

// slab makes things many at a time.
type slab[T any] struct{ free []T }

const slabSize = 128

func (s *slab[T]) add(x T) *T {
	if len(s.free) == 0 {
		s.free = make([]T, slabSize)
	}
	p := &s.free[0]
	s.free = s.free[1:]
	*p = x
	return p
}

func (r *reader) word() uint64 {
	w := r.words[0]
	r.words = r.words[1:]
	return w
}

func (r *reader) int() int { return int(int64(r.word())) }

func (r *reader) typ() Type { return Type(r.word()) }

func (r *reader) block() *Block {
	b := &Block{Types: make([]Type, r.int())}
	r.reads = make([]Read, len(b.Types))
	for i := range b.Types {
		b.Types[i], r.reads[i].Temp = r.typ(), Temp(i)
	}
	n := r.int()
	b.Stmts = make([]Stmt, 0, n)
	for range n {
		if s := r.stmt(); s != nil {
			b.Stmts = append(b.Stmts, s)
		}
	}
	b.Next = r.expr()
	b.Jump = JumpKind(r.word())
	return b
}

// Tags of statements: what IRStmtTag has, counted from Ist_NoOp.
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

func (r *reader) stmt() Stmt {
	switch tag := r.word(); tag {
	case tagNoOp, tagAbiHint:
		return nil
	case tagMark:
		return r.marks.add(Mark{Addr: r.word(), Len: r.int()})
	case tagPut:
		return r.puts.add(Put{Offset: r.int(), Data: r.expr()})
	case tagPutI:
		return &PutI{Array: r.array(), Index: r.expr(), Bias: r.int(), Data: r.expr()}
	case tagAssign:
		return r.assigns.add(Assign{Temp: Temp(r.int()), Data: r.expr()})
	case tagStore:
		return &Store{Addr: r.expr(), Data: r.expr()}
	case tagStoreG:
		return &Store{Guard: r.expr(), Addr: r.expr(), Data: r.expr()}
	case tagLoadG:
		return &LoadG{Temp: Temp(r.int()), Cvt: LoadCvt(r.word()), Guard: r.expr(), Addr: r.expr(), Alt: r.expr()}
	case tagCAS:
		return &CAS{
			OldHi: Temp(r.int()), OldLo: Temp(r.int()), Addr: r.expr(),
			ExpectedHi: r.optional(), ExpectedLo: r.expr(), DataHi: r.optional(), DataLo: r.expr(),
		}
	case tagDirty:
		return r.dirty()
	case tagFence:
		r.word() // libVEX has one kind for x86
		return &Fence{}
	case tagExit:
		s := &Exit{Guard: r.expr()}
		r.typ()
		s.Dst, s.Jump = r.word(), JumpKind(r.word())
		return s
	default:
		panic(fmt.Sprintf("bug: statement tag %d", tag))
	}
}

func (r *reader) dirty() *Dirty {
	d := &Dirty{Temp: Temp(r.int()), Guard: r.expr()}
	d.Callee, d.Args = r.callee()
	d.Effect, d.MemSize, d.MemAddr = effect(r.word()), r.int(), r.optional()
	for range r.int() {
		d.State = append(d.State, StateEffect{
			Effect: effect(r.word()), Offset: r.int(), Size: r.int(), Repeats: r.int(), RepeatLen: r.int(),
		})
	}
	return d
}

// effect converts an IREffect, whose first is Ifx_None, 0x1B00. In fxState it is
// kept in 16 bits.
func effect(w uint64) Effect { return Effect(uint16(w) - 0x1b00) }

func (r *reader) array() Array { return Array{Base: r.int(), Elem: r.typ(), Count: r.int()} }

func (r *reader) callee() (string, []Expr) {
	name := C.GoString(C.heddle_text(C.uint64_t(r.word())))
	return name, r.exprs()
}

func (r *reader) exprs() []Expr {
	n := r.int()
	if len(r.args) < n {
		r.args = make([]Expr, slabSize)
	}
	args := r.args[:n:n]
	r.args = r.args[n:]
	for i := range args {
		args[i] = r.expr()
	}
	return args
}

func (r *reader) optional() Expr {
	if r.word() == 0 {
		return nil
	}
	return r.expr()
}

// Tags of expressions: what IRExprTag has, counted from Iex_Binder.
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

func (r *reader) expr() Expr {
	switch tag := r.word(); tag {
	case tagGet:
		return r.gets.add(Get{Offset: r.int(), Type: r.typ()})
	case tagGetI:
		return &GetI{Array: r.array(), Index: r.expr(), Bias: r.int()}
	case tagRead:
		return &r.reads[r.int()]
	case tagOperation:
		return r.operations.add(Operation{Op: Op(r.word()), Args: r.exprs()})
	case tagLoad:
		return &Load{Type: r.typ(), Addr: r.expr()}
	case tagConst:
		return r.constants.add(Const{Type: r.typ(), Bits: r.word()})
	case tagITE:
		return &ITE{Cond: r.expr(), Then: r.expr(), Else: r.expr()}
	case tagCall:
		c := &Call{Type: r.typ()}
		c.Callee, c.Args = r.callee()
		return c
	case tagVectorResult:
		return &VectorResult{}
	case tagStatePointer:
		return &StatePointer{}
	default:
		panic(fmt.Sprintf("bug: expression tag %d", tag))
	}
}
