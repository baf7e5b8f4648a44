package stores

/*
#include "buffers.h"

#cgo noescape heddle_buffers_apply
#cgo nocallback heddle_buffers_apply
#cgo noescape heddle_buffers_withdraw
#cgo nocallback heddle_buffers_withdraw
*/
import "C"

import (
	"unsafe"

	"github.com/heddle-dmt/heddle/emu"
)

// Buffers is an emu.Buffers. The engine reports each store before it makes it; loads need no help.
type Buffers struct{ c *C.struct_heddle_buffers }

var _ emu.Buffers = (*Buffers)(nil)

// NewBuffers returns the buffers of an engine, a struct heddle_buffers that it keeps.
func NewBuffers(ofEngine unsafe.Pointer) *Buffers {
	return &Buffers{(*C.struct_heddle_buffers)(ofEngine)}
}

// SharedInSnapshot marks that copies of the machine's state share the engine.
func (b *Buffers) SharedInSnapshot() {}

// Apply implements emu.Buffers.
func (b *Buffers) Apply(stores []emu.Store) bool {
	var first *C.struct_heddle_store
	if len(stores) > 0 {
		first = (*C.struct_heddle_store)(unsafe.Pointer(&stores[0]))
	}
	return bool(C.heddle_buffers_apply(b.c, first, C.size_t(len(stores))))
}

// Withdraw implements emu.Buffers.
func (b *Buffers) Withdraw(to []emu.Store) []emu.Store {
	n := int(C.heddle_buffers_withdraw(b.c))
	return append(to, unsafe.Slice((*emu.Store)(unsafe.Pointer(b.c.out)), n)...)
}

// The layout is C's. A difference does not compile.
const (
	_ = -(unsafe.Sizeof(emu.Store{}) ^ C.sizeof_struct_heddle_store)
	_ = -(unsafe.Offsetof(emu.Store{}.Weak) ^ unsafe.Offsetof(C.struct_heddle_store{}.weak))
)
