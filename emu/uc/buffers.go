package uc

/*
#include <stdlib.h>
#include "buffers.h"

#cgo noescape heddle_buffers_apply
#cgo nocallback heddle_buffers_apply
#cgo noescape heddle_buffers_withdraw
#cgo nocallback heddle_buffers_withdraw
*/
import "C"

import (
	"fmt"
	"unsafe"

	uc "github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"github.com/heddle-dmt/heddle/emu"
)

// buffers is an emu.Buffers. Stores have a hook; loads need no help.
type buffers struct{ cpu *CPU }

// SharedInSnapshot marks that copies of the machine's state share the engine.
func (b *buffers) SharedInSnapshot() {}

// BufferStores implements emu.CPU.
func (c *CPU) BufferStores(capacity int) (emu.Buffers, error) {
	if code := C.heddle_buffers_open(c.c, C.uint32_t(capacity)); code != 0 {
		return nil, fmt.Errorf("observe the guest's stores: %w", uc.UcError(code))
	}
	return &buffers{c}, nil
}

// Apply implements emu.Buffers.
func (b *buffers) Apply(stores []emu.Store) bool {
	var first *C.struct_heddle_store
	if len(stores) > 0 {
		first = (*C.struct_heddle_store)(unsafe.Pointer(&stores[0]))
	}
	return bool(C.heddle_buffers_apply(b.cpu.c, first, C.size_t(len(stores))))
}

// Withdraw implements emu.Buffers.
func (b *buffers) Withdraw(to []emu.Store) []emu.Store {
	n := int(C.heddle_buffers_withdraw(b.cpu.c))
	return append(to, unsafe.Slice((*emu.Store)(unsafe.Pointer(b.cpu.c.buffers.out)), n)...)
}
