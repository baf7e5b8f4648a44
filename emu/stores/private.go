package stores

/*
#include <stdlib.h>
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
#cgo noescape heddle_private_view
#cgo nocallback heddle_private_view
*/
import "C"

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// PrivatePages is an emu.PrivatePages. There are no hooks: the costs are faults at the first stores
// to shared pages, and address translations that are dropped when another thread runs.
type PrivatePages struct {
	c   *C.struct_heddle_private_pages
	ram *mem.RAM
}

var _ emu.PrivatePages = (*PrivatePages)(nil)

// NewPrivatePages returns the private pages of an engine, a struct heddle_private_pages that it
// keeps.
func NewPrivatePages(ofEngine unsafe.Pointer, ram *mem.RAM) *PrivatePages {
	return &PrivatePages{(*C.struct_heddle_private_pages)(ofEngine), ram}
}

// SharedInSnapshot marks that copies of the machine's state share the engine.
func (p *PrivatePages) SharedInSnapshot() {}

// Begin implements emu.PrivatePages.
func (p *PrivatePages) Begin(k arch.CoreID, t arch.ThreadID) {
	C.heddle_private_begin(p.c, C.uint32_t(k), C.uint32_t(t))
}

// End implements emu.PrivatePages.
func (p *PrivatePages) End() (drains bool) {
	return bool(C.heddle_private_end(p.c))
}

// Drain implements emu.PrivatePages.
func (p *PrivatePages) Drain(k arch.CoreID) {
	C.heddle_private_drain(p.c, C.uint32_t(k))
}

// Waiting implements emu.PrivatePages.
func (p *PrivatePages) Waiting(k arch.CoreID) (pages int, made arch.Cycles) {
	c := p.corePages(int(k))
	return int(c.n), arch.Cycles(c.made)
}

func (p *PrivatePages) corePages(k int) *C.struct_heddle_core_pages {
	return (*C.struct_heddle_core_pages)(unsafe.Add(unsafe.Pointer(p.c.cores), uintptr(k)*C.sizeof_struct_heddle_core_pages))
}

// UseViews implements emu.PrivatePages.
func (p *PrivatePages) UseViews() { C.heddle_private_use_views(p.c) }

// View implements emu.PrivatePages.
func (p *PrivatePages) View(k arch.CoreID, t arch.ThreadID, s *mem.Space) {
	C.heddle_private_view(p.c, C.uint32_t(k), C.uint32_t(t), (*C.struct_heddle_space)(s.Handle()))
}

// Discard implements emu.PrivatePages.
func (p *PrivatePages) Discard(k arch.CoreID) { C.heddle_private_discard(p.c, C.uint32_t(k)) }

// ViewCounts implements emu.PrivatePages.
func (p *PrivatePages) ViewCounts() emu.ViewCounts {
	return emu.ViewCounts{Faults: uint64(p.c.faults), Published: uint64(p.c.published), Overflowed: bool(p.c.overflowed)}
}

// savedPages is an emu.SavedPages.
type savedPages struct {
	pages  *PrivatePages
	state  []uint32
	copies []savedPage
	views  []savedView
}

// savedView is a core that is a view.
type savedView struct {
	core   arch.CoreID
	thread arch.ThreadID
}

// savedPage is a core's copy of a page.
type savedPage struct {
	core   arch.CoreID
	thread arch.ThreadID
	made   arch.Cycles
	page   C.struct_heddle_private_page
}

// Save implements emu.PrivatePages.
func (p *PrivatePages) Save() emu.SavedPages {
	c := p.c
	s := &savedPages{pages: p}
	fresh := int(p.c.ram.fresh)
	s.state = slices.Clone(unsafe.Slice((*uint32)(unsafe.Pointer(c.state)), fresh))
	copies := unsafe.Slice(c.copies, int(c.ncopies))
	for k := range int(c.ncores) {
		core := p.corePages(k)
		if core.view {
			s.views = append(s.views, savedView{arch.CoreID(k), arch.ThreadID(core.thread)})
		}
		for _, i := range unsafe.Slice(core.copies, int(core.n)) {
			s.copies = append(s.copies, savedPage{arch.CoreID(k), arch.ThreadID(core.thread), arch.Cycles(core.made), copies[i]})
			p.ram.Ref(mem.Page(copies[i].own))
			if copies[i].twin != 0 {
				p.ram.Ref(mem.Page(copies[i].twin))
			}
		}
	}
	return s
}

// CopyForSnapshot makes another one of the same state.
func (s *savedPages) CopyForSnapshot(*deepcopy.Copier) any {
	n := &savedPages{s.pages, slices.Clone(s.state), slices.Clone(s.copies), slices.Clone(s.views)}
	for i := range n.copies {
		s.pages.ram.Ref(mem.Page(n.copies[i].page.own))
		if twin := n.copies[i].page.twin; twin != 0 {
			s.pages.ram.Ref(mem.Page(twin))
		}
	}
	return n
}

// Release implements emu.SavedPages.
func (s *savedPages) Release() {
	for i := range s.copies {
		C.heddle_private_unref(s.pages.c, s.copies[i].page.own)
		if twin := s.copies[i].page.twin; twin != 0 {
			C.heddle_private_unref(s.pages.c, twin)
		}
	}
	s.copies = nil
}

// Load implements emu.SavedPages.
func (s *savedPages) Load(space func(arch.ThreadID) *mem.Space) {
	c := s.pages.c
	C.heddle_private_reset(c, (*C.uint32_t)(unsafe.Pointer(&s.state[0])), C.size_t(len(s.state)))
	for _, v := range s.views {
		s.pages.View(v.core, v.thread, space(v.thread))
	}
	for i := range s.copies {
		p := &s.copies[i]
		if !C.heddle_private_restore(c, C.uint32_t(p.core), C.uint32_t(p.thread), C.uint64_t(p.made), (*C.struct_heddle_space)(space(p.thread).Handle()), &p.page) {
			panic(fmt.Sprintf("bug: no page at %#x, of which a snapshot has a private copy", uint64(p.page.va)))
		}
	}
}
