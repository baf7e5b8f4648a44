// Package memlog has the entries of the memory log, which engines write: the guest's loads and
// stores, and the other changes of memory that its loads can read.
//
// An access has one entry, when its instruction has completed, even if the engine makes it in
// parts: accesses of 10 and 16 bytes, and those that lie in two pages. Instructions that Intel's
// manual describes as several accesses (string instructions, ENTER, FXSAVE, CALL with an operand in
// memory) have several.
//
// An access of 32 bytes is two of 16.
//
// A model of memory that follows the log has the value of every load at the selected addresses. If
// instructions or runs are left out, the log has only loads and stores.
//
// Engines agree in the loads and stores and in their order. How often a Map is repeated, and how long before
// the first access a Map, a Content or a Zero is, depends on the engine's own tables of pages: it may look a
// page up for an access that then faults, or before another access of the same instruction. What holds for
// all: a page's Map is before the first access to it in a run in its space, and its content is known
// before. FXSAVE and the like have as many accesses as the engine makes.
package memlog

/*
#cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -Werror -I${SRCDIR}/../mem
#include "memlog.h"
*/
import "C"

import (
	"unsafe"

	"github.com/heddle-dmt/heddle/emu/arch"
	_ "github.com/heddle-dmt/heddle/emu/mem" // core.c calls its functions
)

// Kind is the kind of an Entry.
type Kind uint8

const (
	// Load and Store are an access of the guest: Size bytes at Addr with Value, by the instruction
	// at PC, after Branches branches. If there are more than 8 bytes, the next entry, a High, has
	// the others.
	Load  Kind = C.HEDDLE_MEM_LOAD
	Store Kind = C.HEDDLE_MEM_STORE
	High  Kind = C.HEDDLE_MEM_HIGH
	// Map: accesses to the page at Addr are to page PC from now on. It precedes the first of them in
	// a run.
	Map Kind = C.HEDDLE_MEM_MAP
	// Kernel: the kernel has written Branches bytes at Addr, in page PC: Bytes, unless Flags has
	// FlagLater. Then they may continue in the following pages, and the next access to each is
	// preceded by its content.
	Kernel Kind = C.HEDDLE_MEM_KERNEL
	// Kernel with FlagBuffered: store buffers have written, either stores that the running core sees
	// from now on, or a commit that all cores see.
	//
	// Content: page PC contains Bytes. Zero: it is all zeros. Copy: its content is that of page
	// Value.
	Content Kind = C.HEDDLE_MEM_CONTENT
	Zero    Kind = C.HEDDLE_MEM_ZERO
	Copy    Kind = C.HEDDLE_MEM_COPY
	// Read: the kernel has read Branches bytes at Addr, in page PC. See RAM.LogReads.
	Read Kind = C.HEDDLE_MEM_READ
	// Part: the next load or store is number PC, from 0, of the Addr accesses of an instruction
	// between which other cores have run.
	Part Kind = C.HEDDLE_MEM_PART
)

// Flags of an Entry.
const (
	// FlagAtomic marks the accesses of an instruction with a LOCK prefix, or XCHG, which reads and
	// writes atomically.
	FlagAtomic = C.HEDDLE_MEM_ATOMIC
	// FlagLater marks a Kernel without bytes.
	FlagLater = C.HEDDLE_MEM_LATER
	// FlagBuffered marks a Kernel by store buffers.
	FlagBuffered = C.HEDDLE_MEM_BUFFERED
)

// Entry is an entry of the memory log. Kind defines the fields of each kind.
type Entry struct {
	Addr     arch.Addr
	Value    uint64
	PC       uint64
	Branches uint32 // the low bits
	Size     uint16
	Kind     Kind
	Flags    uint8
}

// The layout is that of C. A difference does not compile.
const (
	_ = uint(unsafe.Sizeof(Entry{}) - C.sizeof_struct_heddle_mem_entry)
	_ = uint(C.sizeof_struct_heddle_mem_entry - unsafe.Sizeof(Entry{}))
	_ = -(unsafe.Offsetof(Entry{}.Branches) ^ unsafe.Offsetof(C.struct_heddle_mem_entry{}.branches))
	_ = -(unsafe.Offsetof(Entry{}.Size) ^ unsafe.Offsetof(C.struct_heddle_mem_entry{}.size))
	_ = -(unsafe.Offsetof(Entry{}.Kind) ^ unsafe.Offsetof(C.struct_heddle_mem_entry{}.kind))
	_ = -(unsafe.Offsetof(Entry{}.Flags) ^ unsafe.Offsetof(C.struct_heddle_mem_entry{}.flags))
)

// Range is the addresses [Start, End).
type Range struct{ Start, End arch.Addr }

// Filter selects accesses to one of Data by instructions in one of Code. No ranges mean all
// addresses. Partial must be set if runs will be left out (MuteMemory of the engine).
type Filter struct {
	Data, Code []Range
	Partial    bool
}

// Consumer takes the log while the engine runs: a struct heddle_mem_consumer, or nil.
type Consumer unsafe.Pointer

// Discard returns a consumer that keeps nothing, to measure what the log itself costs.
func Discard() Consumer { return Consumer(unsafe.Pointer(C.heddle_mem_discard())) }

// Buffer is a part of the memory log. Its owner calls Close.
type Buffer struct{ c *C.struct_heddle_mem_buffer }

// NewBuffer makes an empty buffer.
func NewBuffer() *Buffer {
	b := &Buffer{C.heddle_mem_new_buffer()}
	if b.c == nil {
		panic("bug: no memory for a log")
	}
	return b
}

// Close frees the buffer.
func (b *Buffer) Close() { C.heddle_mem_free_buffer(b.c) }

// Handle returns the struct heddle_mem_buffer, for engines.
func (b *Buffer) Handle() unsafe.Pointer { return unsafe.Pointer(b.c) }

// SharedInSnapshot marks that a buffer does not belong to the machine's state.
func (b *Buffer) SharedInSnapshot() {}

// Entries returns the entries in order, valid until the buffer is swapped or closed.
func (b *Buffer) Entries() []Entry {
	return unsafe.Slice((*Entry)(unsafe.Pointer(b.c.entries)), int(b.c.n))
}

// AllBytes returns the bytes of all entries, valid as long as the entries.
func (b *Buffer) AllBytes() []byte { return unsafe.Slice((*byte)(b.c.bytes), int(b.c.nbytes)) }

// Bytes returns the bytes of an entry; nil: it has none.
func (b *Buffer) Bytes(e *Entry) []byte {
	n := 0
	switch {
	case e.Kind == Content:
		n = arch.PageSize
	case e.Kind == Kernel && e.Flags&FlagLater == 0:
		n = int(e.Branches)
	}
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(b.c.bytes), e.Value)), n)
}
