package mem

/*
#cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -Werror
#include <stdlib.h>
#include "memory.h"

#cgo noescape heddle_ram_alloc
#cgo nocallback heddle_ram_alloc
#cgo noescape heddle_ram_ref
#cgo nocallback heddle_ram_ref
#cgo noescape heddle_ram_unref
#cgo nocallback heddle_ram_unref
#cgo noescape heddle_ram_full
#cgo nocallback heddle_ram_full
#cgo noescape heddle_ram_changed
#cgo nocallback heddle_ram_changed
#cgo noescape heddle_ram_check_foreign
#cgo nocallback heddle_ram_check_foreign
*/
import "C"

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Page numbers a page of physical memory.
type Page uint64

// ZeroPage is the one page of zeros that untouched memory reads from. It is
// never written and never freed; references to it are not counted.
const ZeroPage Page = 0

// RAM is the machine's physical memory: pages with reference counts in one
// mapping that the engine sees as a whole. Pages are handed out and taken back
// by number; a page with several owners must not be written by one of them
// (spaces copy at the first write).
//
// A RAM is shared by all snapshots of a machine.
//
// Several RAMs may lie in one mapping (NewRAMs), for machines that run at the
// same time. Each hands out, counts and writes pages of its own, and reads those
// of the others, which their owner must keep as they are meanwhile: Import says
// how.
type RAM struct {
	c          *C.struct_heddle_ram
	mapping    *mapping
	generation uint64
	outset     Level
	adopted    map[Page]Page // during an adoption, what stands for others' pages
	short      bool          // there was no room for one
}

// mapping is the memory in which RAMs lie.
type mapping struct {
	base  *C.uint8_t
	bytes C.uint64_t
	users atomic.Int32
}

// Level is how full a RAM is, in pages.
type Level struct{ Used, Tables uint64 }

// NewRAM reserves address space for the given number of bytes; host memory is
// used as pages are first written.
func NewRAM(bytes uint64) (*RAM, error) {
	list, err := NewRAMs(bytes, 1)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// NewRAMs makes so many RAMs of the given number of bytes each, in one mapping.
func NewRAMs(bytes uint64, count int) ([]*RAM, error) {
	pages := bytes / arch.PageSize
	if span := uint64(C.heddle_ram_span(C.uint64_t(pages))); pages < 2 || span > (1<<32-1)/uint64(count) {
		return nil, fmt.Errorf("physical memory of %d bytes, %d times: must be between 8 KiB and 16 TiB in all", bytes, count)
	}
	m := &mapping{bytes: C.heddle_ram_span(C.uint64_t(pages)) * C.uint64_t(count) * arch.PageSize}
	if m.base = (*C.uint8_t)(C.heddle_reserve(m.bytes)); m.base == nil {
		return nil, fmt.Errorf("reserve %d bytes for the guest's memory: the host refuses", bytes)
	}
	C.heddle_advise_huge(unsafe.Pointer(m.base), m.bytes)
	list := make([]*RAM, count)
	for i := range list {
		r := &RAM{c: (*C.struct_heddle_ram)(C.calloc(1, C.sizeof_struct_heddle_ram)), mapping: m}
		m.users.Add(1)
		if C.heddle_ram_init(r.c, m.base, C.uint64_t(pages), C.unsigned(i), C.unsigned(count)) != 0 {
			for _, made := range append(list[:i], r) {
				made.Close()
			}
			return nil, fmt.Errorf("reserve the tables for %d bytes of guest memory: the host refuses", bytes)
		}
		list[i] = r
	}
	return list, nil
}

// Close gives the memory back. Nothing that refers to it may be used again.
func (r *RAM) Close() {
	C.heddle_ram_close(r.c)
	C.free(unsafe.Pointer(r.c))
	r.c = nil
	if r.mapping.users.Add(-1) == 0 {
		C.heddle_unreserve(unsafe.Pointer(r.mapping.base), r.mapping.bytes)
	}
}

// Import begins to read pages of another RAM of the mapping, as they are in a
// snapshot of its machine that was taken in the generation given. The snapshot must
// be kept for as long as this RAM's machine uses what refers to them; that may be
// released later. From here on what counts as used is what did
// there, at the level given, and what this RAM hands out.
func (r *RAM) Import(generation uint64, at Level) {
	r.generation = max(r.generation, generation) + 1
	r.outset = r.level()
	r.c.used_elsewhere = C.int64_t(at.Used) - C.int64_t(r.outset.Used)
	r.c.tables_elsewhere = C.int64_t(at.Tables) - C.int64_t(r.outset.Tables)
	r.c.peak = r.c.used
	C.heddle_ram_check_foreign(r.c)
}

// Adopt begins to copy the state of another RAM's machine, in which pages may be
// this RAM's own, that RAM's, or the page of zeros: CloneTo and Bring copy pages
// until Adopted.
func (r *RAM) Adopt(generation uint64) {
	r.generation = max(r.generation, generation) + 1
	r.adopted, r.short = map[Page]Page{}, false
	r.c.used_elsewhere = -C.int64_t(r.c.limit) // the state has its pages already
}

// Adopted ends it, and tells whether there was room for all.
func (r *RAM) Adopted() bool {
	r.adopted, r.c.used_elsewhere = nil, 0
	return !r.short
}

// Adopting tells that pages are copied: between Adopt and Adopted.
func (r *RAM) Adopting() bool { return r.adopted != nil }

// Bring adds an owner to what stands for a page in an adoption: a copy of a page
// that is another RAM's.
func (r *RAM) Bring(p Page) Page {
	if own, ok := r.adopted[p]; ok {
		p = own
	}
	if p == ZeroPage || r.Owns(p) {
		r.Ref(p)
		return p
	}
	own, ok := r.Alloc()
	if !ok {
		r.short = true
		return ZeroPage
	}
	copy(r.Bytes(own), r.Bytes(p))
	r.adopted[p] = own
	return own
}

// Owns tells whether p is one of the RAM's own pages.
func (r *RAM) Owns(p Page) bool { return uint64(p)-uint64(r.c.first) < uint64(r.c.span) }

// level is how full the RAM itself is.
func (r *RAM) level() Level { return Level{uint64(r.c.used), uint64(r.c.tables)} }

// Level is how full the RAM is for the guest.
func (r *RAM) Level() Level { return Level{r.Used(), r.Tables()} }

// Grown is the largest number of pages that were handed out at once since Import,
// besides those from before.
func (r *RAM) Grown() uint64 { return uint64(r.c.peak) - r.outset.Used }

// BoundInSnapshot marks that copies of the machine's state share the RAM, and
// that another machine has another.
func (r *RAM) BoundInSnapshot() {}

// Full tells that the limit is reached: no page can be handed out. Page tables
// count like pages.
func (r *RAM) Full() bool { return bool(C.heddle_ram_full(r.c)) }

// Alloc hands out a page of zeros with one owner; ok is false when the limit is
// reached.
func (r *RAM) Alloc() (p Page, ok bool) {
	n := C.heddle_ram_alloc(r.c, true)
	return Page(n), n != C.HEDDLE_NO_PAGE
}

// Ref adds an owner to p.
func (r *RAM) Ref(p Page) { C.heddle_ram_ref(r.c, C.uint64_t(p)) }

// Unref takes an owner from p, and p back when it was the last.
func (r *RAM) Unref(p Page) { C.heddle_ram_unref(r.c, C.uint64_t(p)) }

// Refs is the number of owners of p.
func (r *RAM) Refs(p Page) int {
	return int(*(*C.uint32_t)(unsafe.Add(unsafe.Pointer(r.c.refs), 4*uintptr(p))))
}

// Bytes is the content of p. Whoever writes to it calls Written.
func (r *RAM) Bytes(p Page) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(r.c.base), uintptr(p)*arch.PageSize)), arch.PageSize)
}

// Written tells that p was changed through Bytes, so that no outdated
// translation of code in it is run.
func (r *RAM) Written(p Page) {
	C.heddle_ram_changed(r.c, C.uint64_t(p))
}

// Generation numbers the time between two snapshots of the machine. What was
// made in an earlier generation may be part of a snapshot.
func (r *RAM) Generation() uint64 { return r.generation }

// NextGeneration begins a new generation: a snapshot was taken or restored.
func (r *RAM) NextGeneration() { r.generation++ }

// Used is the number of pages handed out.
func (r *RAM) Used() uint64 { return uint64(C.int64_t(r.c.used) + r.c.used_elsewhere) }

// Tables is the number of pages that page tables take on the host, besides
// those handed out.
func (r *RAM) Tables() uint64 { return uint64(C.int64_t(r.c.tables) + r.c.tables_elsewhere) }

// Peak is the largest number of pages that were handed out at once.
func (r *RAM) Peak() uint64 { return uint64(r.c.peak) }

// SetPeak has the largest number be another one: what was done since did not
// happen.
func (r *RAM) SetPeak(pages uint64) { r.c.peak = max(C.uint64_t(pages), r.c.used) }

// Limit is the number of pages that can be handed out, less those that page
// tables take.
func (r *RAM) Limit() uint64 { return uint64(r.c.limit) - 1 }

// LogReads sets whether guest memory that is read from now on, other than by the guest
// itself, is read by the kernel on behalf of the guest: then a log of memory has it.
func (r *RAM) LogReads(on bool) { r.c.reads_for_guest = C.bool(on) }

// Handle is the RAM in C, a struct heddle_ram, for engines.
func (r *RAM) Handle() unsafe.Pointer { return unsafe.Pointer(r.c) }
