package mem

/*
#include <stdlib.h>
#include "memory.h"

#cgo noescape heddle_space_get
#cgo nocallback heddle_space_get
#cgo noescape heddle_space_set
#cgo nocallback heddle_space_set
#cgo noescape heddle_space_fill_zero
#cgo nocallback heddle_space_fill_zero
#cgo noescape heddle_space_unmap
#cgo nocallback heddle_space_unmap
#cgo noescape heddle_space_protect
#cgo nocallback heddle_space_protect
#cgo noescape heddle_space_move
#cgo nocallback heddle_space_move
#cgo noescape heddle_space_walk
#cgo nocallback heddle_space_walk
#cgo noescape heddle_space_read
#cgo nocallback heddle_space_read
#cgo noescape heddle_space_write
#cgo nocallback heddle_space_write
#cgo noescape heddle_space_read_string
#cgo nocallback heddle_space_read_string
#cgo noescape heddle_space_entries
#cgo nocallback heddle_space_entries
#cgo noescape heddle_space_seen
#cgo nocallback heddle_space_seen
#cgo noescape heddle_space_import
#cgo nocallback heddle_space_import
#cgo noescape heddle_space_diff
#cgo nocallback heddle_space_diff
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// PTE is a page table entry: which page is behind an address, with which
// rights. The zero PTE is the absence of one.
type PTE uint64

// MakePTE makes an entry. A shared page is written in place by everyone who
// maps it; any other is copied at the first write while it has other owners.
func MakePTE(p Page, perm arch.Perm, shared bool) PTE {
	e := PTE(p)<<12 | PTE(perm) | C.HEDDLE_PTE_PRESENT
	if shared {
		e |= C.HEDDLE_PTE_SHARED
	}
	return e
}

// With is the entry with another page and other rights.
func (e PTE) With(p Page, perm arch.Perm) PTE {
	const others = 1<<12 - 1 - C.HEDDLE_PTE_PERM
	return e&others | PTE(p)<<12 | PTE(perm)
}

// Noted is a mark that the owner of the space may give an entry, and that changes of
// rights leave alone.
func (e PTE) Noted() bool { return e&C.HEDDLE_PTE_NOTED != 0 }

// Note is the entry with the mark, or without it.
func (e PTE) Note(on bool) PTE {
	if on {
		return e | C.HEDDLE_PTE_NOTED
	}
	return e &^ C.HEDDLE_PTE_NOTED
}

// Present tells whether there is an entry.
func (e PTE) Present() bool { return e != 0 }

// Page is the page of a present entry.
func (e PTE) Page() Page { return Page(e >> 12) }

// Perm is the rights of a present entry.
func (e PTE) Perm() arch.Perm { return arch.Perm(e) & (arch.Read | arch.Write | arch.Exec) }

// Shared tells whether the page is written in place.
func (e PTE) Shared() bool { return e&C.HEDDLE_PTE_SHARED != 0 }

// Space is an address space: a tree of page table entries. Cloning one costs a
// counter; clones share the tree and the pages, and each copies what it
// changes. A space holds a reference to each page it maps.
type Space struct {
	ram *RAM
	c   *C.struct_heddle_space
}

// NewSpace makes an empty address space over r.
func NewSpace(r *RAM) *Space {
	s := &Space{ram: r, c: (*C.struct_heddle_space)(C.calloc(1, C.sizeof_struct_heddle_space))}
	C.heddle_space_init(s.c, r.c)
	return s
}

// RAM is the physical memory of the space.
func (s *Space) RAM() *RAM { return s.ram }

// Clone makes an independent copy of s: what fork and snapshots need. Shared
// entries stay shared between the two.
func (s *Space) Clone() *Space {
	n := &Space{ram: s.ram, c: (*C.struct_heddle_space)(C.calloc(1, C.sizeof_struct_heddle_space))}
	C.heddle_space_clone(n.c, s.c)
	return n
}

// CloneTo makes a copy of s in another RAM of the mapping (RAM.Import). S must be
// kept as it is for as long as the copy is used, but for its release.
// During an adoption (RAM.Adopt) the copy has nothing in common with s.
func (s *Space) CloneTo(r *RAM) *Space {
	if r.Adopting() {
		return s.broughtTo(r)
	}
	n := &Space{ram: r, c: (*C.struct_heddle_space)(C.calloc(1, C.sizeof_struct_heddle_space))}
	C.heddle_space_import(n.c, r.c, s.c)
	return n
}

// broughtTo is CloneTo in an adoption.
func (s *Space) broughtTo(r *RAM) *Space {
	n := NewSpace(r)
	for _, m := range s.Mappings(0, arch.UserEnd) {
		n.Set(m.Addr, m.PTE.With(r.Bring(m.PTE.Page()), m.PTE.Perm()))
	}
	n.c.peak = s.c.peak
	return n
}

// Release gives up the space and its references. Nothing but Release may be
// called afterwards.
func (s *Space) Release() {
	if s.c == nil {
		return
	}
	C.heddle_space_clear_all(s.c)
	C.free(unsafe.Pointer(s.c))
	s.c = nil
}

// Get returns the entry of the page that holds va.
func (s *Space) Get(va arch.Addr) PTE {
	return PTE(C.heddle_space_get(s.c, C.uint64_t(va)))
}

// Set puts e at va's page, in place of any entry there, and takes over the
// caller's reference to the page.
func (s *Space) Set(va arch.Addr, e PTE) {
	if !C.heddle_space_set(s.c, C.uint64_t(va), C.uint64_t(e)) {
		panic(fmt.Sprintf("bug: page table entry for %#x, which is no user address", va))
	}
}

// FillZero puts the page of zeros, with the rights perm, at the addresses of
// [start, end) that have no entry: a later write then needs no help from the
// owner of the space. It tells whether there was room for the page tables.
func (s *Space) FillZero(start, end arch.Addr, perm arch.Perm) bool {
	return bool(C.heddle_space_fill_zero(s.c, C.uint64_t(start), C.uint64_t(end), C.unsigned(perm)))
}

// Unmap removes the entries of [start, end).
func (s *Space) Unmap(start, end arch.Addr) {
	C.heddle_space_unmap(s.c, C.uint64_t(start), C.uint64_t(end))
}

// Protect gives the entries that exist in [start, end) new rights.
func (s *Space) Protect(start, end arch.Addr, perm arch.Perm) {
	C.heddle_space_protect(s.c, C.uint64_t(start), C.uint64_t(end), C.unsigned(perm))
}

// Move moves the entries of [from, from+size) to the empty range at to, which
// must not overlap it.
func (s *Space) Move(from, to arch.Addr, size uint64) {
	if !C.heddle_space_move(s.c, C.uint64_t(from), C.uint64_t(to), C.uint64_t(size)) {
		panic(fmt.Sprintf("bug: move of pages to %#x, which is no user address", to))
	}
}

// Resident is the number of entries.
func (s *Space) Resident() uint64 { return uint64(s.c.resident) }

// Zeros is the number of entries for ZeroPage.
func (s *Space) Zeros() uint64 { return uint64(s.c.zeros) }

// PeakUsed is the largest number of entries for other pages than ZeroPage that
// there was at once, in s and in the spaces that it was cloned from.
func (s *Space) PeakUsed() uint64 { return uint64(s.c.peak) }

// ReadAt copies guest memory at va to b and returns how many bytes were
// readable before a fault.
func (s *Space) ReadAt(b []byte, va arch.Addr) (int, arch.FaultKind) {
	if len(b) == 0 {
		return 0, arch.NoFault
	}
	var done C.size_t
	w := C.heddle_space_read(s.c, C.uint64_t(va), unsafe.Pointer(&b[0]), C.size_t(len(b)), &done)
	return int(done), arch.FaultKind(w)
}

// WriteAt copies b to guest memory at va, as the guest itself would write it,
// and returns how many bytes were writable before a fault.
func (s *Space) WriteAt(b []byte, va arch.Addr) (int, arch.FaultKind) {
	if len(b) == 0 {
		return 0, arch.NoFault
	}
	var done C.size_t
	w := C.heddle_space_write(s.c, C.uint64_t(va), unsafe.Pointer(&b[0]), C.size_t(len(b)), &done)
	return int(done), arch.FaultKind(w)
}

// ReadString copies bytes at va to b up to and including the first zero byte,
// and returns how many were copied and the fault that ended it, if any.
func (s *Space) ReadString(b []byte, va arch.Addr) (int, arch.FaultKind) {
	if len(b) == 0 {
		return 0, arch.NoFault
	}
	var why uint32
	n := C.heddle_space_read_string(s.c, C.uint64_t(va), (*C.char)(unsafe.Pointer(&b[0])), C.size_t(len(b)), &why)
	return int(n), arch.FaultKind(why)
}

// Walk translates va for an access as the engine would, copying a page with
// other owners before a write.
func (s *Space) Walk(va arch.Addr, access arch.Access) (PTE, arch.FaultKind) {
	var e C.uint64_t
	w := C.heddle_space_walk(s.c, C.uint64_t(va), uint32(access), true, &e)
	return PTE(e), arch.FaultKind(w)
}

// Mapping is an address with its entry.
type Mapping struct {
	Addr arch.Addr
	PTE  PTE
}

// Mappings lists the entries of [start, end) by address.
func (s *Space) Mappings(start, end arch.Addr) []Mapping {
	if start >= end {
		return nil
	}
	return collect(min(int(s.c.resident), int((end-start)/arch.PageSize)+1), func(out *C.uint64_t, max C.size_t) C.size_t {
		return C.heddle_space_entries(s.c, C.uint64_t(start), C.uint64_t(end), out, max)
	})
}

// Changed lists the addresses at which s has another page than before, by
// address: what was written, mapped or unmapped since before was cloned from s
// (or s from before). Absence is no difference to the page of zeros. It costs
// time for what differs, not for what there is.
func (s *Space) Changed(before *Space) []Mapping {
	return collect(64, func(out *C.uint64_t, max C.size_t) C.size_t {
		return C.heddle_space_diff(before.c, s.c, out, max)
	})
}

// collect calls list with room for pairs, again with more room if need be.
func collect(room int, list func(out *C.uint64_t, max C.size_t) C.size_t) []Mapping {
	for {
		out := make([]Mapping, room+1)
		n := int(list((*C.uint64_t)(unsafe.Pointer(&out[0])), C.size_t(len(out))))
		if n <= len(out) {
			return out[:n:n]
		}
		room = n
	}
}

// CommitAt is WriteAt for a store that a store buffer commits.
func (s *Space) CommitAt(b []byte, va arch.Addr) (int, arch.FaultKind) {
	s.ram.c.commits = true
	defer func() { s.ram.c.commits = false }()
	return s.WriteAt(b, va)
}

// Seen is the entry of the page that holds va as the running thread, if one runs, sees it.
func (s *Space) Seen(va arch.Addr) PTE { return PTE(C.heddle_space_seen(s.c, C.uint64_t(va))) }

// Handle is the space in C, a struct heddle_space, for engines.
func (s *Space) Handle() unsafe.Pointer { return unsafe.Pointer(s.c) }
