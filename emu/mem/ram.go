package mem

/*
#cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -Werror
#include <stdlib.h>
#include "memory.h"

#cgo noescape heddle_ram_alloc
#cgo nocallback heddle_ram_alloc
#cgo noescape heddle_ram_alloc_filled
#cgo nocallback heddle_ram_alloc_filled
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

// Page is the number of a page of physical memory.
type Page uint64

// ZeroPage is the page of zeros that untouched memory reads. It is never written and never freed;
// references to it are not counted.
const ZeroPage Page = 0

// RAM is the machine's physical memory: pages with reference counts in one mapping, all of which
// the engine can access. Pages are allocated and freed by number; an owner of a page with several
// owners must not write it (a Space copies it at the first write).
//
// All snapshots of a machine share a RAM.
//
// Several RAMs may lie in one mapping (NewRAMs), for machines that run at the same time. Each
// allocates, counts and writes pages of its own, and reads those of the others, which their owner
// must not change meanwhile: see Import.
type RAM struct {
	c          *C.struct_heddle_ram
	mapping    *mapping
	generation uint64
	initial    Level
	adopted    map[Page]Page // during an adoption, the copies of others' pages
	exhausted  bool          // there was no room for a copy
	draft      [arch.PageSize]byte
}

// mapping is the host memory of one or more RAMs.
type mapping struct {
	base  *C.uint8_t
	bytes C.uint64_t
	users atomic.Int32
}

// Level is the number of pages in use.
type Level struct{ Used, Tables uint64 }

// NewRAM reserves address space for a number of bytes, 8 KiB or more. Host memory is used as pages
// are first written. It is an error if the host refuses the reservation.
func NewRAM(bytes uint64) (*RAM, error) {
	list, err := NewRAMs(bytes, 1)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// NewRAMs makes count RAMs of the given number of bytes each, in one mapping.
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

// Close frees the memory. Nothing that refers to it may be used again.
func (r *RAM) Close() {
	C.heddle_ram_close(r.c)
	C.free(unsafe.Pointer(r.c))
	r.c = nil
	if r.mapping.users.Add(-1) == 0 {
		C.heddle_unreserve(unsafe.Pointer(r.mapping.base), r.mapping.bytes)
	}
}

// Import starts to read pages of another RAM of the mapping, as they are in a snapshot of its
// machine that was taken in the given generation. The caller keeps the snapshot for as long as this
// RAM's machine refers to its pages. From now on the pages in use are those in use there, at the
// given level, and those that this RAM allocates.
func (r *RAM) Import(generation uint64, at Level) {
	r.generation = max(r.generation, generation) + 1
	r.initial = r.ownLevel()
	r.c.used_elsewhere = C.int64_t(at.Used) - C.int64_t(r.initial.Used)
	r.c.tables_elsewhere = C.int64_t(at.Tables) - C.int64_t(r.initial.Tables)
	r.c.peak = r.c.used
	C.heddle_ram_check_foreign(r.c)
}

// Adopt starts to copy the state of another RAM's machine, whose pages may belong to this RAM, to
// that RAM, or be the page of zeros: CloneTo and Bring copy pages until Adopted.
func (r *RAM) Adopt(generation uint64) {
	r.generation = max(r.generation, generation) + 1
	r.adopted, r.exhausted = map[Page]Page{}, false
	r.c.used_elsewhere = -C.int64_t(r.c.limit) // the pages of the state count already
}

// Adopted ends an adoption, and reports whether there was room for all copies.
func (r *RAM) Adopted() bool {
	r.adopted, r.c.used_elsewhere = nil, 0
	return !r.exhausted
}

// Adopting reports whether an adoption is in progress, between Adopt and Adopted.
func (r *RAM) Adopting() bool { return r.adopted != nil }

// Bring adds an owner to the page that replaces p in an adoption, a copy if p belongs to another
// RAM, and returns that page.
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
		r.exhausted = true
		return ZeroPage
	}
	copy(r.Bytes(own), r.Bytes(p))
	r.adopted[p] = own
	return own
}

// Owns reports whether p is one of the RAM's own pages.
func (r *RAM) Owns(p Page) bool { return uint64(p)-uint64(r.c.first) < uint64(r.c.span) }

// ownLevel returns the number of pages in use in this RAM.
func (r *RAM) ownLevel() Level { return Level{uint64(r.c.used), uint64(r.c.tables)} }

// Level returns the number of pages in use as the guest's limit counts them.
func (r *RAM) Level() Level { return Level{r.Used(), r.Tables()} }

// Grown returns the largest number of own pages in use at one time since Import, minus the number
// at Import.
func (r *RAM) Grown() uint64 { return uint64(r.c.peak) - r.initial.Used }

// BoundInSnapshot marks that copies of the machine's state share the RAM, and that another machine
// has another.
func (r *RAM) BoundInSnapshot() {}

// Full reports whether the limit is reached, so that no page can be allocated. Page tables count
// like pages.
func (r *RAM) Full() bool { return bool(C.heddle_ram_full(r.c)) }

// Alloc allocates a page of zeros with one owner. It returns false if the limit is reached.
func (r *RAM) Alloc() (p Page, ok bool) {
	n := C.heddle_ram_alloc(r.c, true)
	return Page(n), n != C.HEDDLE_NO_PAGE
}

// Draft returns the bytes of a page that AllocFilled is to allocate, which the caller fills in.
func (r *RAM) Draft() *[arch.PageSize]byte { return &r.draft }

// AllocFilled allocates a page with the bytes of Draft and one owner. A page that was freed and has them still is
// preferred, since the engine may have translations of it. It returns false if the limit is reached.
func (r *RAM) AllocFilled() (p Page, ok bool) {
	n := C.heddle_ram_alloc_filled(r.c, (*C.uint8_t)(&r.draft[0]))
	return Page(n), n != C.HEDDLE_NO_PAGE
}

// Ref adds an owner to p.
func (r *RAM) Ref(p Page) { C.heddle_ram_ref(r.c, C.uint64_t(p)) }

// Unref removes an owner from p, and frees p if it was the last.
func (r *RAM) Unref(p Page) { C.heddle_ram_unref(r.c, C.uint64_t(p)) }

// Refs returns the number of owners of p.
func (r *RAM) Refs(p Page) int {
	return int(*(*C.uint32_t)(unsafe.Add(unsafe.Pointer(r.c.refs), 4*uintptr(p))))
}

// Bytes returns the content of p. A caller that changes it calls Written.
func (r *RAM) Bytes(p Page) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(r.c.base), uintptr(p)*arch.PageSize)), arch.PageSize)
}

// Written drops translations of code in p, which was changed through Bytes.
func (r *RAM) Written(p Page) {
	C.heddle_ram_changed(r.c, C.uint64_t(p))
}

// Generation numbers the intervals between snapshots of the machine. Objects of an earlier
// generation may belong to a snapshot.
func (r *RAM) Generation() uint64 { return r.generation }

// NextGeneration starts a new generation: a snapshot was taken or restored.
func (r *RAM) NextGeneration() { r.generation++ }

// Used returns the number of allocated pages.
func (r *RAM) Used() uint64 { return uint64(C.int64_t(r.c.used) + r.c.used_elsewhere) }

// Tables returns the number of pages that page tables take on the host, in addition to the
// allocated ones.
func (r *RAM) Tables() uint64 { return uint64(C.int64_t(r.c.tables) + r.c.tables_elsewhere) }

// Peak returns the largest number of allocated pages at one time.
func (r *RAM) Peak() uint64 { return uint64(r.c.peak) }

// SetPeak changes the largest number: the execution since then was undone.
func (r *RAM) SetPeak(pages uint64) { r.c.peak = max(C.uint64_t(pages), r.c.used) }

// Limit returns the number of pages that can be allocated if there are no page tables.
func (r *RAM) Limit() uint64 { return uint64(r.c.limit) - 1 }

// LogReads sets whether reads of guest memory from now on, other than by the guest itself, are the
// kernel's on behalf of the guest: a log of memory has only those.
func (r *RAM) LogReads(on bool) { r.c.reads_for_guest = C.bool(on) }

// Handle returns the RAM in C, a struct heddle_ram, for engines.
func (r *RAM) Handle() unsafe.Pointer { return unsafe.Pointer(r.c) }
