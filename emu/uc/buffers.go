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

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Store is a store in a core's buffer: it was made and other cores cannot see
// it. A Store of size 0 is a fence, which the stores behind it wait for.
//
// What the engine does in several pieces are several stores: 16 bytes of an SSE
// register are two. So is a store into two cache lines.
type Store struct {
	Addr arch.Addr
	Data [8]byte
	// Made is the clock of the core at the start of the run that made the store:
	// it must not depend on how the engine runs what is between.
	Made arch.Cycles
	Size uint32
	// Weak is 1 for a non-temporal store.
	Weak uint32
}

// Buffers makes the CPU keep the stores of the running core apart from the
// memory that all cores see, by the method of docs/memory-models.md: while a
// core runs, guest memory holds what this core sees, with the bytes that its
// stores hide saved; Apply puts its stores in, Withdraw takes them out. Loads need no
// help.
type Buffers struct{ cpu *CPU }

// SharedInSnapshot marks that copies of the machine's state share the engine.
func (b *Buffers) SharedInSnapshot() {}

// BufferStores begins to buffer stores, which nothing that runs later gets
// around; nothing may have run before. A buffer that is full commits its oldest
// store for each new one; capacity 0 means that none is ever full.
func (c *CPU) BufferStores(capacity int) (*Buffers, error) {
	if code := C.heddle_buffers_open(c.c, C.uint32_t(capacity)); code != 0 {
		return nil, fmt.Errorf("watch the guest's stores: %w", uc.UcError(code))
	}
	return &Buffers{c}, nil
}

// Apply puts the stores of a core, oldest first, over memory in the space of the
// thread that is loaded, which is about to run on the core. It returns false
// when it left some out since there is no page at their address any more.
func (b *Buffers) Apply(stores []Store) bool {
	var first *C.struct_heddle_store
	if len(stores) > 0 {
		first = (*C.struct_heddle_store)(unsafe.Pointer(&stores[0]))
	}
	return bool(C.heddle_buffers_apply(b.cpu.c, first, C.size_t(len(stores))))
}

// Withdraw takes the stores of the core that ran out of memory, and appends them to
// to, oldest first.
func (b *Buffers) Withdraw(to []Store) []Store {
	n := int(C.heddle_buffers_withdraw(b.cpu.c))
	return append(to, unsafe.Slice((*Store)(unsafe.Pointer(b.cpu.c.buffers.out)), n)...)
}
