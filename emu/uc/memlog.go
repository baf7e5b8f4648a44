package uc

/*
#include <stdlib.h>
#include "cpu.h"

#cgo noescape heddle_mem_open
#cgo nocallback heddle_mem_open
#cgo noescape heddle_mem_swap
#cgo nocallback heddle_mem_swap
#cgo noescape heddle_mem_forget
#cgo nocallback heddle_mem_forget
*/
import "C"

import (
	"fmt"
	"unsafe"

	uc "github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// MemoryKind says what a MemoryEntry is.
type MemoryKind uint8

const (
	// MemoryLoad and MemoryStore are an access of the guest: at Addr, Size
	// bytes with Value, by the instruction at PC, after Branches branches. The
	// value of one with more than 8 bytes goes on in the next entry, a
	// MemoryHigh.
	MemoryLoad  MemoryKind = C.HEDDLE_MEM_LOAD
	MemoryStore MemoryKind = C.HEDDLE_MEM_STORE
	MemoryHigh  MemoryKind = C.HEDDLE_MEM_HIGH
	// MemoryMap tells that accesses to the page at Addr go to page PC from now
	// on. It comes before the first of them in a run.
	MemoryMap MemoryKind = C.HEDDLE_MEM_MAP
	// MemoryKernel tells that the kernel has written Branches bytes at Addr, in
	// page PC: Bytes, unless Flags has FlagLater. Then they may lie in the pages
	// that follow, too, and the next access to each is preceded by its content.
	MemoryKernel MemoryKind = C.HEDDLE_MEM_KERNEL
	// MemoryKernel with FlagBuffered is the same of store buffers: what the core that
	// runs sees from now on, or a commit that all see.
	//
	// MemoryContent tells that page PC contains Bytes, MemoryZero that it is
	// all zeros, and MemoryCopy that it contains what page Value does.
	MemoryContent MemoryKind = C.HEDDLE_MEM_CONTENT
	MemoryZero    MemoryKind = C.HEDDLE_MEM_ZERO
	MemoryCopy    MemoryKind = C.HEDDLE_MEM_COPY
	// MemoryRead tells that the kernel has read Branches bytes at Addr, in page PC:
	// see RAM.LogReads.
	MemoryRead MemoryKind = C.HEDDLE_MEM_READ
	// MemoryPart tells that the load or store that comes next is access number PC, from 0, of
	// the Addr accesses of an instruction between which other cores have acted.
	MemoryPart MemoryKind = C.HEDDLE_MEM_PART
)

// Flags of entries.
const (
	// FlagAtomic marks the accesses of an instruction that reads and writes as
	// one: with a LOCK prefix, or XCHG.
	FlagAtomic = C.HEDDLE_MEM_ATOMIC
	// FlagLater marks a MemoryKernel without bytes.
	FlagLater = C.HEDDLE_MEM_LATER
	// FlagBuffered marks a MemoryKernel of store buffers.
	FlagBuffered = C.HEDDLE_MEM_BUFFERED
)

// MemoryEntry is an entry of the memory log; see MemoryKind.
type MemoryEntry struct {
	Addr     arch.Addr
	Value    uint64
	PC       uint64
	Branches uint32 // the low bits
	Size     uint16
	Kind     MemoryKind
	Flags    uint8
}

// The layout is C's. A difference does not compile.
const (
	_ = uint(unsafe.Sizeof(MemoryEntry{}) - C.sizeof_struct_heddle_mem_entry)
	_ = uint(C.sizeof_struct_heddle_mem_entry - unsafe.Sizeof(MemoryEntry{}))
	_ = -(unsafe.Offsetof(MemoryEntry{}.Branches) ^ unsafe.Offsetof(C.struct_heddle_mem_entry{}.branches))
	_ = -(unsafe.Offsetof(MemoryEntry{}.Size) ^ unsafe.Offsetof(C.struct_heddle_mem_entry{}.size))
	_ = -(unsafe.Offsetof(MemoryEntry{}.Kind) ^ unsafe.Offsetof(C.struct_heddle_mem_entry{}.kind))
	_ = -(unsafe.Offsetof(MemoryEntry{}.Flags) ^ unsafe.Offsetof(C.struct_heddle_mem_entry{}.flags))
)

// AddrRange is the addresses from Start up to, but without, End.
type AddrRange struct{ Start, End arch.Addr }

// MemoryFilter chooses accesses: those that touch one of Data, by instructions
// in one of Code. No ranges mean all addresses. Partial tells that runs will be
// left out (MuteMemory).
type MemoryFilter struct {
	Data, Code []AddrRange
	Partial    bool
}

// MemoryBuffer is a part of the memory log. It must be closed.
type MemoryBuffer struct{ c *C.struct_heddle_mem_buffer }

// NewMemoryBuffer makes an empty buffer.
func NewMemoryBuffer() *MemoryBuffer {
	b := &MemoryBuffer{C.heddle_mem_new_buffer()}
	if b.c == nil {
		panic("bug: no memory for a log")
	}
	return b
}

// Close frees the buffer.
func (b *MemoryBuffer) Close() { C.heddle_mem_free_buffer(b.c) }

// SharedInSnapshot marks that a buffer is no part of the machine's state.
func (b *MemoryBuffer) SharedInSnapshot() {}

// Entries are the entries in order.
func (b *MemoryBuffer) Entries() []MemoryEntry {
	return unsafe.Slice((*MemoryEntry)(unsafe.Pointer(b.c.entries)), int(b.c.n))
}

// Bytes are those of an entry, if it has any.
func (b *MemoryBuffer) Bytes(e *MemoryEntry) []byte {
	n := 0
	switch {
	case e.Kind == MemoryContent:
		n = arch.PageSize
	case e.Kind == MemoryKernel && e.Flags&FlagLater == 0:
		n = int(e.Branches)
	}
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(b.c.bytes), e.Value)), n)
}

// LogMemory begins to log the guest's loads and stores, and what else its loads
// can see, for the rest of the CPU's life. It comes before the first run. What a
// run does is the same as without, at a sixth of the speed.
//
// An access comes once, when its instruction has completed, also where the
// engine makes several of it: those of 10 and 16 bytes, and those that lie in
// two pages. Instructions that Intel's manual describes as several accesses
// (string instructions, ENTER, FXSAVE, CALL with an operand in memory) have
// several.
//
// A model of memory that does what the log says sees the value of every load at
// the addresses that are chosen. That is not so if instructions or runs are left
// out: then there are loads and stores only.
func (c *CPU) LogMemory(f MemoryFilter) error {
	data, code := ranges(f.Data), ranges(f.Code)
	err := C.heddle_mem_open(c.c, unsafe.SliceData(data), C.size_t(len(data)), unsafe.SliceData(code), C.size_t(len(code)), C.bool(f.Partial))
	if err != 0 {
		return fmt.Errorf("log memory accesses: %w", uc.UcError(err))
	}
	return nil
}

func ranges(list []AddrRange) []C.struct_heddle_mem_range {
	out := make([]C.struct_heddle_mem_range, len(list))
	for i, r := range list {
		out[i] = C.struct_heddle_mem_range{start: C.uint64_t(r.Start), end: C.uint64_t(r.End)}
	}
	return out
}

// MuteMemory leaves the accesses of the next runs out of the log, or not.
func (c *CPU) MuteMemory(mute bool) { c.c.logs.memory.muted = C.bool(mute) }

// SwapMemory puts what was logged since the last call into b, and has the log go
// on in what b was.
func (c *CPU) SwapMemory(b *MemoryBuffer) { C.heddle_mem_swap(c.c, b.c) }

// LoggedMemory is how many entries the memory log has.
func (c *CPU) LoggedMemory() int {
	if c.c.logs.memory.to == nil {
		return 0 // there is none
	}
	return int(c.c.logs.memory.to.n)
}

// CountedBranches is how many branches there
// were in all runs since LogMemory or LogBranches, of the kinds that event.Stamp
// counts.
func (c *CPU) CountedBranches() uint64 { return uint64(c.c.logs.flow.branches) }

// ForgetMemory empties the memory log, since the machine is back at an earlier
// state: what the log said since then is not true of it.
func (c *CPU) ForgetMemory() { C.heddle_mem_forget(c.c) }
