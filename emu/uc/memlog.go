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

// MemoryKind is the kind of a MemoryEntry.
type MemoryKind uint8

const (
	// MemoryLoad and MemoryStore are an access of the guest: Size bytes at Addr with Value, by the
	// instruction at PC, after Branches branches. If there are more than 8 bytes, the next entry, a
	// MemoryHigh, has the others.
	MemoryLoad  MemoryKind = C.HEDDLE_MEM_LOAD
	MemoryStore MemoryKind = C.HEDDLE_MEM_STORE
	MemoryHigh  MemoryKind = C.HEDDLE_MEM_HIGH
	// MemoryMap: accesses to the page at Addr are to page PC from now on. It precedes the first of
	// them in a run.
	MemoryMap MemoryKind = C.HEDDLE_MEM_MAP
	// MemoryKernel: the kernel has written Branches bytes at Addr, in page PC: Bytes, unless Flags
	// has FlagLater. Then they may continue in the following pages, and the next access to each is
	// preceded by its content.
	MemoryKernel MemoryKind = C.HEDDLE_MEM_KERNEL
	// MemoryKernel with FlagBuffered: store buffers have written, either stores that the running
	// core sees from now on, or a commit that all cores see.
	//
	// MemoryContent: page PC contains Bytes. MemoryZero: it is all zeros. MemoryCopy: its content
	// is that of page Value.
	MemoryContent MemoryKind = C.HEDDLE_MEM_CONTENT
	MemoryZero    MemoryKind = C.HEDDLE_MEM_ZERO
	MemoryCopy    MemoryKind = C.HEDDLE_MEM_COPY
	// MemoryRead: the kernel has read Branches bytes at Addr, in page PC. See RAM.LogReads.
	MemoryRead MemoryKind = C.HEDDLE_MEM_READ
	// MemoryPart: the next load or store is number PC, from 0, of the Addr accesses of an
	// instruction between which other cores have run.
	MemoryPart MemoryKind = C.HEDDLE_MEM_PART
)

// Flags of a MemoryEntry.
const (
	// FlagAtomic marks the accesses of an instruction with a LOCK prefix, or XCHG, which reads and
	// writes atomically.
	FlagAtomic = C.HEDDLE_MEM_ATOMIC
	// FlagLater marks a MemoryKernel without bytes.
	FlagLater = C.HEDDLE_MEM_LATER
	// FlagBuffered marks a MemoryKernel by store buffers.
	FlagBuffered = C.HEDDLE_MEM_BUFFERED
)

// MemoryEntry is an entry of the memory log. MemoryKind defines the fields of each kind.
type MemoryEntry struct {
	Addr     arch.Addr
	Value    uint64
	PC       uint64
	Branches uint32 // the low bits
	Size     uint16
	Kind     MemoryKind
	Flags    uint8
}

// The layout is that of C. A difference does not compile.
const (
	_ = uint(unsafe.Sizeof(MemoryEntry{}) - C.sizeof_struct_heddle_mem_entry)
	_ = uint(C.sizeof_struct_heddle_mem_entry - unsafe.Sizeof(MemoryEntry{}))
	_ = -(unsafe.Offsetof(MemoryEntry{}.Branches) ^ unsafe.Offsetof(C.struct_heddle_mem_entry{}.branches))
	_ = -(unsafe.Offsetof(MemoryEntry{}.Size) ^ unsafe.Offsetof(C.struct_heddle_mem_entry{}.size))
	_ = -(unsafe.Offsetof(MemoryEntry{}.Kind) ^ unsafe.Offsetof(C.struct_heddle_mem_entry{}.kind))
	_ = -(unsafe.Offsetof(MemoryEntry{}.Flags) ^ unsafe.Offsetof(C.struct_heddle_mem_entry{}.flags))
)

// AddrRange is the addresses [Start, End).
type AddrRange struct{ Start, End arch.Addr }

// MemoryFilter selects accesses to one of Data by instructions in one of Code. No ranges mean all
// addresses. Partial must be set if runs will be left out (MuteMemory).
type MemoryFilter struct {
	Data, Code []AddrRange
	Partial    bool
}

// MemoryBuffer is a part of the memory log. Its owner calls Close.
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

// SharedInSnapshot marks that a buffer does not belong to the machine's state.
func (b *MemoryBuffer) SharedInSnapshot() {}

// Entries returns the entries in order, valid until the buffer is swapped or closed.
func (b *MemoryBuffer) Entries() []MemoryEntry {
	return unsafe.Slice((*MemoryEntry)(unsafe.Pointer(b.c.entries)), int(b.c.n))
}

// Bytes returns the bytes of an entry; nil: it has none.
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

// LogMemory starts to log the guest's loads and stores, and the other changes of memory that its
// loads can read, for the rest of the CPU's life. It comes before the first run; later it is an
// error. It does not change the effect of a run, which takes six times as long.
//
// An access has one entry, when its instruction has completed, even if the engine makes it in
// parts: accesses of 10 and 16 bytes, and those that lie in two pages. Instructions that Intel's
// manual describes as several accesses (string instructions, ENTER, FXSAVE, CALL with an operand in
// memory) have several.
//
// A model of memory that follows the log has the value of every load at the selected addresses. If
// instructions or runs are left out, the log has only loads and stores.
func (c *CPU) LogMemory(f MemoryFilter) error {
	data, code := rangesInC(f.Data), rangesInC(f.Code)
	err := C.heddle_mem_open(c.c, unsafe.SliceData(data), C.size_t(len(data)), unsafe.SliceData(code), C.size_t(len(code)), C.bool(f.Partial))
	if err != 0 {
		return fmt.Errorf("log memory accesses: %w", uc.UcError(err))
	}
	return nil
}

func rangesInC(list []AddrRange) []C.struct_heddle_mem_range {
	out := make([]C.struct_heddle_mem_range, len(list))
	for i, r := range list {
		out[i] = C.struct_heddle_mem_range{start: C.uint64_t(r.Start), end: C.uint64_t(r.End)}
	}
	return out
}

// MuteMemory leaves the accesses of the next runs out of the log, or logs them again.
func (c *CPU) MuteMemory(mute bool) { c.c.logs.memory.muted = C.bool(mute) }

// SwapMemory moves the entries since the last call into b. The log continues in the previous memory
// of b.
func (c *CPU) SwapMemory(b *MemoryBuffer) { C.heddle_mem_swap(c.c, b.c) }

// LoggedMemory returns the number of entries in the memory log.
func (c *CPU) LoggedMemory() int {
	if c.c.logs.memory.to == nil {
		return 0 // no log
	}
	return int(c.c.logs.memory.to.n)
}

// CountedBranches returns the number of branches in all runs since LogMemory, LogBranches or
// CountBranches, of the kinds that event.Stamp counts.
func (c *CPU) CountedBranches() uint64 { return uint64(c.c.logs.flow.branches) }

// ForgetMemory empties the memory log because the machine has returned to an earlier state.
func (c *CPU) ForgetMemory() { C.heddle_mem_forget(c.c) }
