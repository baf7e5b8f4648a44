package emu

/*
#include "cpu.h"

#cgo noescape heddle_inside_commit
#cgo nocallback heddle_inside_commit
*/
import "C"

import (
	"iter"
	"unsafe"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Inside is where inside an instruction a run may end: between two of its accesses to
// memory, so that other cores act there. The zero value means nowhere.
//
// The accesses of an instruction are its loads, then its stores; one that lies in two cache
// lines is two. Instructions that are atomic (LOCK, XCHG) have no place inside, nor have
// those with operands of more than 16 bytes and a few with accesses that their operands do
// not name (ENTER, LEAVE, XLAT, MASKMOVDQU, far branches). Where stores wait in buffers,
// there is no place between two stores of an instruction: they become visible apart by
// commits.
type Inside uint32

// InsideAfter is the place after so many accesses of the instruction before which the budget
// of instructions ends.
func InsideAfter(accesses uint8) Inside { return C.HEDDLE_INSIDE_EXACTLY | Inside(accesses) }

// InsideByChance leaves the place to a random number, for which the place before the
// instruction and those inside it are equally likely. A thread that is inside an instruction
// already stays there for one access more one time in four. A budget of cycles ends inside an
// instruction if there is time for some of its accesses and not for all of it.
func InsideByChance(random uint32) Inside {
	return Inside(random&^uint32(C.HEDDLE_INSIDE_EXACTLY)) | insideAtAll
}

// insideAtAll makes each random number one that is not 0.
const insideAtAll = 1 << 30

// Interrupted is a thread that is inside an instruction. It is plain data.
//
// Until a store is done, the thread's registers are those before the instruction, and what was
// loaded is kept. If the thread is interrupted (its program counter is another when it runs
// again), the instruction begins anew. Once a store is done the registers are those after
// the instruction, which counts as retired when all stores are done.
type Interrupted struct {
	PC       event.Addr
	pieces   uint32
	loads    uint32
	places   uint32
	done     uint32
	stored   uint32
	_        uint32
	cost     uint32
	paid     uint32
	branch   uint64
	before   Regs
	accesses [C.HEDDLE_PIECES]access
}

// access is a load or store, or the part of one that lies in a cache line.
type access struct {
	addr   event.Addr
	bytes  [16]byte
	size   uint32
	stores uint32
}

// The layout is C's. A difference does not compile.
const (
	_ = -(event.LineSize ^ uint(C.HEDDLE_LINE_SIZE))
	_ = uint(unsafe.Sizeof(Interrupted{}) - C.sizeof_struct_heddle_inside)
	_ = uint(C.sizeof_struct_heddle_inside - unsafe.Sizeof(Interrupted{}))
	_ = -(unsafe.Offsetof(Interrupted{}.branch) ^ unsafe.Offsetof(C.struct_heddle_inside{}.branches))
	_ = -(unsafe.Offsetof(Interrupted{}.accesses) ^ unsafe.Offsetof(C.struct_heddle_inside{}.pieces))
)

// Done is how many accesses of the instruction are done.
func (i *Interrupted) Done() uint8 { return uint8(i.done) }

// HasStored reports whether the instruction has stored something already, so that it must be
// completed before anything else happens to its thread.
func (i *Interrupted) HasStored() bool { return i.stored != 0 }

// Before are the registers before the instruction, if it has stored something: those of the
// thread are the ones after it then.
func (i *Interrupted) Before() (Regs, bool) { return i.before, i.HasStored() }

// Stores iterates over the stores of the instruction that are not done yet, if it has done one:
// where they go, and the bytes.
func (i *Interrupted) Stores() iter.Seq2[event.Addr, []byte] {
	return func(yield func(event.Addr, []byte) bool) {
		for k := i.done; i.HasStored() && k < i.pieces; k++ {
			a := &i.accesses[k]
			if !yield(a.addr, a.bytes[:a.size]) {
				return
			}
		}
	}
}

// Interrupted is the instruction that the run which has ended left the loaded thread inside;
// false: none.
func (c *CPU) Interrupted() (Interrupted, bool) {
	in := *(*Interrupted)(unsafe.Pointer(&c.c.within))
	return in, in.pieces != 0
}

// Commit does the stores of the instruction that are not done yet, in the thread's space, which
// need not be loaded. Only the next run counts the instruction.
func (c *CPU) Commit(in *Interrupted, s *Space) {
	C.heddle_inside_commit(c.c, s.c, (*C.struct_heddle_inside)(unsafe.Pointer(in)), C.uint32_t(in.pieces))
}
