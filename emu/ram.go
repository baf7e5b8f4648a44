package emu

/*
#cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -Werror
#include <stdlib.h>
#include "memlog.h"
#include "memory.h"

#cgo noescape heddle_ram_alloc
#cgo nocallback heddle_ram_alloc
#cgo noescape heddle_ram_ref
#cgo nocallback heddle_ram_ref
#cgo noescape heddle_ram_unref
#cgo nocallback heddle_ram_unref
#cgo noescape heddle_ram_full
#cgo nocallback heddle_ram_full
#cgo noescape heddle_ram_written
#cgo nocallback heddle_ram_written
#cgo noescape heddle_mem_changed
#cgo nocallback heddle_mem_changed
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// PageSize is the size of a page of guest memory in bytes.
const PageSize = 1 << 12

// UserEnd is the first address that is no user address: 47 bits, as in Linux.
const UserEnd = 1 << 47

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
type RAM struct {
	c          *C.struct_heddle_ram
	generation uint64
}

// NewRAM reserves address space for the given number of bytes; host memory is
// used as pages are first written.
func NewRAM(bytes uint64) (*RAM, error) {
	pages := bytes / PageSize
	if pages < 2 || pages > 1<<32-1 {
		return nil, fmt.Errorf("physical memory of %d bytes: must be between 8 KiB and 16 TiB", bytes)
	}
	r := &RAM{c: (*C.struct_heddle_ram)(C.calloc(1, C.sizeof_struct_heddle_ram))}
	if C.heddle_ram_init(r.c, C.uint64_t(pages)) != 0 {
		C.free(unsafe.Pointer(r.c))
		return nil, fmt.Errorf("reserve %d bytes for the guest's memory: the host refuses", bytes)
	}
	return r, nil
}

// Close gives the memory back. Nothing that refers to it may be used again.
func (r *RAM) Close() {
	C.heddle_ram_close(r.c)
	C.free(unsafe.Pointer(r.c))
	r.c = nil
}

// SharedInSnapshot marks that copies of the machine's state share the RAM.
func (r *RAM) SharedInSnapshot() {}

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
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(r.c.base), uintptr(p)*PageSize)), PageSize)
}

// Written tells that p was changed through Bytes, so that no outdated
// translation of code in it is run.
func (r *RAM) Written(p Page) {
	C.heddle_ram_written(r.c, C.uint64_t(p))
	C.heddle_mem_changed(r.c, C.uint64_t(p))
}

// Generation numbers the time between two snapshots of the machine. What was
// made in an earlier generation may be part of a snapshot.
func (r *RAM) Generation() uint64 { return r.generation }

// NextGeneration begins a new generation: a snapshot was taken or restored.
func (r *RAM) NextGeneration() { r.generation++ }

// Used is the number of pages handed out.
func (r *RAM) Used() uint64 { return uint64(r.c.used) }

// Tables is the number of pages that page tables take on the host, besides
// those handed out.
func (r *RAM) Tables() uint64 { return uint64(r.c.tables) }

// Peak is the largest number of pages that were handed out at once.
func (r *RAM) Peak() uint64 { return uint64(r.c.peak) }

// Limit is the number of pages that can be handed out, less those that page
// tables take.
func (r *RAM) Limit() uint64 { return uint64(r.c.limit) - 1 }
