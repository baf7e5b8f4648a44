package uc

/*
#include <stdlib.h>
#include "cpu.h"
#include "views.h"

#cgo noescape heddle_views_begin
#cgo nocallback heddle_views_begin
#cgo noescape heddle_views_end
#cgo nocallback heddle_views_end
#cgo noescape heddle_views_drain
#cgo nocallback heddle_views_drain
#cgo noescape heddle_views_reset
#cgo nocallback heddle_views_reset
#cgo noescape heddle_views_hold
#cgo nocallback heddle_views_hold
#cgo noescape heddle_views_unref
#cgo nocallback heddle_views_unref
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

// Views makes each core see a copy of its own of the pages that it has stored to
// since its buffer was drained, by the method of docs/memory-models.md. A core's
// buffer is drained all at once, which makes its copies the pages that all see.
// There are no hooks: what is left of the price are faults at the first stores to
// shared pages, and forgotten translations when another thread runs.
type Views struct{ cpu *CPU }

// SharedInSnapshot marks that copies of the machine's state share the engine.
func (v *Views) SharedInSnapshot() {}

// SeparateViews begins to keep what cores store apart, by pages, which nothing
// that runs later gets around; nothing may have run before. It cannot be used
// together with BufferStores and memory logs.
func (c *CPU) SeparateViews() (*Views, error) {
	if code := C.heddle_views_open(c.c); code != 0 {
		return nil, fmt.Errorf("keep the pages of cores apart: %w", uc.UcError(code))
	}
	return &Views{c}, nil
}

// Begin makes the loaded thread, t, see what its core k sees. A core's buffer must
// be drained before another thread runs on it, and before its thread runs on
// another core.
func (v *Views) Begin(k arch.CoreID, t arch.ThreadID) {
	C.heddle_views_begin(v.cpu.c.views, C.uint32_t(k), C.uint32_t(t))
}

// End makes all see what is shared again, and tells whether the run since Begin
// did what drains the buffer of its core: then that must be drained before
// anything else happens.
func (v *Views) End() (drains bool) { return bool(C.heddle_views_end(v.cpu.c.views)) }

// Drain makes what waits in a core's buffer seen by all.
func (v *Views) Drain(k arch.CoreID) { C.heddle_views_drain(v.cpu.c.views, C.uint32_t(k)) }

// Waiting is the number of pages in a core's buffer, and the core's clock at the
// start of the run that made the first of them.
func (v *Views) Waiting(k arch.CoreID) (pages int, made arch.Cycles) {
	c := v.core(int(k))
	return int(c.n), arch.Cycles(c.made)
}

func (v *Views) core(k int) *C.struct_heddle_view {
	return (*C.struct_heddle_view)(unsafe.Add(unsafe.Pointer(v.cpu.c.views.cores), uintptr(k)*C.sizeof_struct_heddle_view))
}

// SavedViews is what Views were at some time. It must be released.
type SavedViews struct {
	views *Views
	state []uint32
	holds []savedHold
}

// savedHold is a page of a core's own.
type savedHold struct {
	core   arch.CoreID
	thread arch.ThreadID
	made   arch.Cycles
	hold   C.struct_heddle_hold
}

// Save keeps what waits in all buffers, and what is known of pages. No thread may
// be running.
func (v *Views) Save() *SavedViews {
	c := v.cpu.c.views
	s := &SavedViews{views: v}
	fresh := int(ramOf(v.cpu.ram).fresh)
	s.state = slices.Clone(unsafe.Slice((*uint32)(unsafe.Pointer(c.state)), fresh))
	holds := unsafe.Slice(c.holds, int(c.nholds))
	for k := range int(c.ncores) {
		view := v.core(k)
		for _, i := range unsafe.Slice(view.holds, int(view.n)) {
			s.holds = append(s.holds, savedHold{arch.CoreID(k), arch.ThreadID(view.thread), arch.Cycles(view.made), holds[i]})
			v.cpu.ram.Ref(mem.Page(holds[i].own))
		}
	}
	return s
}

// CopyForSnapshot copies what was saved.
func (s *SavedViews) CopyForSnapshot(*deepcopy.Copier) any {
	n := &SavedViews{s.views, slices.Clone(s.state), slices.Clone(s.holds)}
	for i := range n.holds {
		s.views.cpu.ram.Ref(mem.Page(n.holds[i].hold.own))
	}
	return n
}

// Release gives up what was saved.
func (s *SavedViews) Release() {
	for i := range s.holds {
		C.heddle_views_unref(s.views.cpu.c.views, s.holds[i].hold.own)
	}
	s.holds = nil
}

// Load makes the views what they were when s was saved. Space gives the address
// space of a thread.
func (s *SavedViews) Load(space func(arch.ThreadID) *mem.Space) {
	c := s.views.cpu.c.views
	C.heddle_views_reset(c, (*C.uint32_t)(unsafe.Pointer(&s.state[0])), C.size_t(len(s.state)))
	for i := range s.holds {
		h := &s.holds[i]
		if !C.heddle_views_hold(c, C.uint32_t(h.core), C.uint32_t(h.thread), C.uint64_t(h.made), spaceOf(space(h.thread)), &h.hold) {
			panic(fmt.Sprintf("bug: no page at %#x, where a snapshot has one of a core's own", uint64(h.hold.va)))
		}
	}
}
