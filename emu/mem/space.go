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

// PTE is a page table entry: the page at an address, and the rights. The zero PTE means that the
// address has no entry.
type PTE uint64

// MakePTE makes an entry. A shared page is written in place through every entry; another page is
// copied at the first write while it has other owners.
func MakePTE(p Page, perm arch.Perm, shared bool) PTE {
	e := PTE(p)<<12 | PTE(perm) | C.HEDDLE_PTE_PRESENT
	if shared {
		e |= C.HEDDLE_PTE_SHARED
	}
	return e
}

// With returns the entry with another page and other rights.
func (e PTE) With(p Page, perm arch.Perm) PTE {
	const others = 1<<12 - 1 - C.HEDDLE_PTE_PERM
	return e&others | PTE(p)<<12 | PTE(perm)
}

// Noted reports whether the entry has the mark that the owner of the space may give it. Changes of
// rights keep the mark.
func (e PTE) Noted() bool { return e&C.HEDDLE_PTE_NOTED != 0 }

// Note returns the entry with or without the mark.
func (e PTE) Note(on bool) PTE {
	if on {
		return e | C.HEDDLE_PTE_NOTED
	}
	return e &^ C.HEDDLE_PTE_NOTED
}

// Present reports whether there is an entry.
func (e PTE) Present() bool { return e != 0 }

// Page returns the page of a present entry.
func (e PTE) Page() Page { return Page(e >> 12) }

// Perm returns the rights of a present entry.
func (e PTE) Perm() arch.Perm { return arch.Perm(e) & (arch.Read | arch.Write | arch.Exec) }

// Shared reports whether the page is written in place.
func (e PTE) Shared() bool { return e&C.HEDDLE_PTE_SHARED != 0 }

// Space is an address space: a tree of page table entries. Cloning costs one increment; clones
// share the tree and the pages, and each copies the parts that it changes. A space has a reference
// to each page that it maps.
type Space struct {
	ram *RAM
	c   *C.struct_heddle_space
}

// NewSpace makes an empty address space in r.
func NewSpace(r *RAM) *Space {
	s := &Space{ram: r, c: (*C.struct_heddle_space)(C.calloc(1, C.sizeof_struct_heddle_space))}
	C.heddle_space_init(s.c, r.c)
	return s
}

// RAM returns the physical memory of the space.
func (s *Space) RAM() *RAM { return s.ram }

// Clone makes an independent copy of s, as for fork. Shared entries stay shared between the two.
func (s *Space) Clone() *Space {
	n := &Space{ram: s.ram, c: (*C.struct_heddle_space)(C.calloc(1, C.sizeof_struct_heddle_space))}
	C.heddle_space_clone(n.c, s.c)
	return n
}

// CloneForSnapshot is Clone for a snapshot, or for the space that is restored from one. Engines use their
// translations for both, so that one of the two is released before the other one is run.
func (s *Space) CloneForSnapshot() *Space {
	n := &Space{ram: s.ram, c: (*C.struct_heddle_space)(C.calloc(1, C.sizeof_struct_heddle_space))}
	C.heddle_space_clone_snapshot(n.c, s.c)
	return n
}

// CloneTo makes a copy of s in another RAM of the mapping (RAM.Import). S must stay unchanged while
// the copy is used, except that it may be released. In an adoption (RAM.Adopt) the copy shares
// nothing with s.
func (s *Space) CloneTo(r *RAM) *Space {
	if r.Adopting() {
		return s.adoptTo(r)
	}
	n := &Space{ram: r, c: (*C.struct_heddle_space)(C.calloc(1, C.sizeof_struct_heddle_space))}
	C.heddle_space_import(n.c, r.c, s.c)
	return n
}

// adoptTo is CloneTo in an adoption.
func (s *Space) adoptTo(r *RAM) *Space {
	n := NewSpace(r)
	for _, m := range s.Mappings(0, arch.UserEnd) {
		n.Set(m.Addr, m.PTE.With(r.Bring(m.PTE.Page()), m.PTE.Perm()))
	}
	n.c.peak = s.c.peak
	return n
}

// Release gives up the space and its references. No other method may be called afterwards.
func (s *Space) Release() {
	if s.c == nil {
		return
	}
	C.heddle_space_clear_all(s.c)
	C.free(unsafe.Pointer(s.c))
	s.c = nil
}

// Get returns the entry of the page of va.
func (s *Space) Get(va arch.Addr) PTE {
	return PTE(C.heddle_space_get(s.c, C.uint64_t(va)))
}

// Set replaces the entry of the page of va with e, and takes over the caller's reference to the
// page.
func (s *Space) Set(va arch.Addr, e PTE) {
	if !C.heddle_space_set(s.c, C.uint64_t(va), C.uint64_t(e)) {
		panic(fmt.Sprintf("bug: page table entry for %#x, which is not a user address", va))
	}
}

// FillZero puts the page of zeros, with the rights perm, at the addresses of [start, end) that have
// no entry, so that a later write succeeds without the owner of the space. It reports whether there
// was room for the page tables.
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

// Move moves the entries of [from, from+size) to the empty range at to, which must not overlap it.
func (s *Space) Move(from, to arch.Addr, size uint64) {
	if !C.heddle_space_move(s.c, C.uint64_t(from), C.uint64_t(to), C.uint64_t(size)) {
		panic(fmt.Sprintf("bug: move of pages to %#x, which is not a user address", to))
	}
}

// Resident returns the number of entries.
func (s *Space) Resident() uint64 { return uint64(s.c.resident) }

// Zeros returns the number of entries for ZeroPage.
func (s *Space) Zeros() uint64 { return uint64(s.c.zeros) }

// PeakUsed returns the largest number of entries for pages other than ZeroPage at one time, in s
// and in the spaces that it was cloned from.
func (s *Space) PeakUsed() uint64 { return uint64(s.c.peak) }

// ReadAt copies guest memory at va to b, and returns the number of bytes before a fault and the
// kind of the fault.
func (s *Space) ReadAt(b []byte, va arch.Addr) (int, arch.FaultKind) {
	if len(b) == 0 {
		return 0, arch.NoFault
	}
	var done C.size_t
	w := C.heddle_space_read(s.c, C.uint64_t(va), unsafe.Pointer(&b[0]), C.size_t(len(b)), &done)
	return int(done), arch.FaultKind(w)
}

// WriteAt copies b to guest memory at va with the guest's rights, and returns the number of bytes
// before a fault and the kind of the fault.
func (s *Space) WriteAt(b []byte, va arch.Addr) (int, arch.FaultKind) {
	if len(b) == 0 {
		return 0, arch.NoFault
	}
	var done C.size_t
	w := C.heddle_space_write(s.c, C.uint64_t(va), unsafe.Pointer(&b[0]), C.size_t(len(b)), &done)
	return int(done), arch.FaultKind(w)
}

// ReadString copies bytes at va to b up to and including the first zero byte. It returns their
// number and the kind of fault that ended the copy, if any.
func (s *Space) ReadString(b []byte, va arch.Addr) (int, arch.FaultKind) {
	if len(b) == 0 {
		return 0, arch.NoFault
	}
	var why uint32
	n := C.heddle_space_read_string(s.c, C.uint64_t(va), (*C.char)(unsafe.Pointer(&b[0])), C.size_t(len(b)), &why)
	return int(n), arch.FaultKind(why)
}

// Walk translates va for an access as the engine does, and copies a page with other owners before a
// write.
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

// Mappings returns the entries of [start, end) by ascending address.
func (s *Space) Mappings(start, end arch.Addr) []Mapping {
	if start >= end {
		return nil
	}
	return collectPairs(min(int(s.c.resident), int((end-start)/arch.PageSize)+1), func(out *C.uint64_t, max C.size_t) C.size_t {
		return C.heddle_space_entries(s.c, C.uint64_t(start), C.uint64_t(end), out, max)
	})
}

// Changed returns the addresses at which s and before have different pages, ascending: those
// written, mapped or unmapped since one was cloned from the other. A missing entry equals one for
// the page of zeros. The time is proportional to the differences, not to the size of the spaces.
func (s *Space) Changed(before *Space) []Mapping {
	return collectPairs(64, func(out *C.uint64_t, max C.size_t) C.size_t {
		return C.heddle_space_diff(before.c, s.c, out, max)
	})
}

// collectPairs calls list with room for pairs, and again with more room if there are more pairs.
func collectPairs(room int, list func(out *C.uint64_t, max C.size_t) C.size_t) []Mapping {
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

// Seen returns the entry of the page of va as the running thread, if there is one, sees it.
func (s *Space) Seen(va arch.Addr) PTE { return PTE(C.heddle_space_seen(s.c, C.uint64_t(va))) }

// Handle returns the space in C, a struct heddle_space, for engines.
func (s *Space) Handle() unsafe.Pointer { return unsafe.Pointer(s.c) }
