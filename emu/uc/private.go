package uc

/*
#include <stdlib.h>
#include "cpu.h"
#include "private.h"

#cgo noescape heddle_private_begin
#cgo nocallback heddle_private_begin
#cgo noescape heddle_private_end
#cgo nocallback heddle_private_end
#cgo noescape heddle_private_drain
#cgo nocallback heddle_private_drain
#cgo noescape heddle_private_reset
#cgo nocallback heddle_private_reset
#cgo noescape heddle_private_restore
#cgo nocallback heddle_private_restore
#cgo noescape heddle_private_unref
#cgo nocallback heddle_private_unref
*/
import "C"

import (
	"fmt"
	"slices"
	"unsafe"

	uc "github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// PrivatePages gives each core copies of its own of the pages that it has stored to since its
// buffer was drained, by the method of docs/memory-models.md. Draining a core's buffer makes
// all of its copies visible to the other cores at once. There are no hooks: the costs are
// faults at the first stores to shared pages, and address translations that are dropped when
// another thread runs.
type PrivatePages struct{ cpu *CPU }

// SharedInSnapshot marks that copies of the machine's state share the engine.
func (p *PrivatePages) SharedInSnapshot() {}

// UsePrivatePages gives cores private pages, for the rest of the CPU's life. It is an error
// after the first run, and together with BufferStores or LogMemory.
func (c *CPU) UsePrivatePages() (*PrivatePages, error) {
	if code := C.heddle_private_open(c.c); code != 0 {
		return nil, fmt.Errorf("give cores private pages: %w", uc.UcError(code))
	}
	return &PrivatePages{c}, nil
}

// Begin makes the loaded thread, t, see what core k sees. The core's buffer must be drained
// before another thread runs on the core, and before its thread runs on another core.
func (p *PrivatePages) Begin(k arch.CoreID, t arch.ThreadID) {
	C.heddle_private_begin(p.cpu.c.private_pages, C.uint32_t(k), C.uint32_t(t))
}

// End makes the shared pages visible again. It reports whether the run since Begin executed
// an instruction that drains the buffer of its core: then the caller must drain that buffer
// before anything else.
func (p *PrivatePages) End() (drains bool) {
	return bool(C.heddle_private_end(p.cpu.c.private_pages))
}

// Drain makes the stores in a core's buffer visible to all cores.
func (p *PrivatePages) Drain(k arch.CoreID) {
	C.heddle_private_drain(p.cpu.c.private_pages, C.uint32_t(k))
}

// Waiting returns the number of pages in a core's buffer, and the core's clock at the start
// of the run that made the first of them.
func (p *PrivatePages) Waiting(k arch.CoreID) (pages int, made arch.Cycles) {
	c := p.corePages(int(k))
	return int(c.n), arch.Cycles(c.made)
}

func (p *PrivatePages) corePages(k int) *C.struct_heddle_core_pages {
	return (*C.struct_heddle_core_pages)(unsafe.Add(unsafe.Pointer(p.cpu.c.private_pages.cores), uintptr(k)*C.sizeof_struct_heddle_core_pages))
}

// SavedPages is the state of PrivatePages at some time. Its owner calls Release.
type SavedPages struct {
	pages  *PrivatePages
	state  []uint32
	copies []savedPage
}

// savedPage is a core's copy of a page.
type savedPage struct {
	core   arch.CoreID
	thread arch.ThreadID
	made   arch.Cycles
	page   C.struct_heddle_private_page
}

// Save keeps the stores in all buffers, and which threads have accessed each page. No thread
// may be running.
func (p *PrivatePages) Save() *SavedPages {
	c := p.cpu.c.private_pages
	s := &SavedPages{pages: p}
	fresh := int(ramInC(p.cpu.ram).fresh)
	s.state = slices.Clone(unsafe.Slice((*uint32)(unsafe.Pointer(c.state)), fresh))
	copies := unsafe.Slice(c.copies, int(c.ncopies))
	for k := range int(c.ncores) {
		core := p.corePages(k)
		for _, i := range unsafe.Slice(core.copies, int(core.n)) {
			s.copies = append(s.copies, savedPage{arch.CoreID(k), arch.ThreadID(core.thread), arch.Cycles(core.made), copies[i]})
			p.cpu.ram.Ref(mem.Page(copies[i].own))
		}
	}
	return s
}

// CopyForSnapshot makes another SavedPages of the same state.
func (s *SavedPages) CopyForSnapshot(*deepcopy.Copier) any {
	n := &SavedPages{s.pages, slices.Clone(s.state), slices.Clone(s.copies)}
	for i := range n.copies {
		s.pages.cpu.ram.Ref(mem.Page(n.copies[i].page.own))
	}
	return n
}

// Release gives up the saved state and its references to pages.
func (s *SavedPages) Release() {
	for i := range s.copies {
		C.heddle_private_unref(s.pages.cpu.c.private_pages, s.copies[i].page.own)
	}
	s.copies = nil
}

// Load restores the private pages to the saved state. Space returns the address space of a
// thread, which must be that of the same time.
func (s *SavedPages) Load(space func(arch.ThreadID) *mem.Space) {
	c := s.pages.cpu.c.private_pages
	C.heddle_private_reset(c, (*C.uint32_t)(unsafe.Pointer(&s.state[0])), C.size_t(len(s.state)))
	for i := range s.copies {
		p := &s.copies[i]
		if !C.heddle_private_restore(c, C.uint32_t(p.core), C.uint32_t(p.thread), C.uint64_t(p.made), spaceInC(space(p.thread)), &p.page) {
			panic(fmt.Sprintf("bug: no page at %#x, of which a snapshot has a private copy", uint64(p.page.va)))
		}
	}
}
