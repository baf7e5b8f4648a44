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

// Store is a store in a core's buffer, which other cores cannot see yet. A Store of size 0 is a
// fence: the stores after it wait for those before it.
//
// A store that the engine makes in several parts is several stores: 16 bytes of an SSE register are
// two. So is a store into two cache lines.
type Store struct {
	Addr arch.Addr
	Data [8]byte
	// Made is the core's clock at the start of the run that made the store, since the time within
	// the run depends on how the engine executes it.
	Made arch.Cycles
	Size uint32
	// Weak is 1 for a non-temporal store.
	Weak uint32
}

// Buffers keeps the stores of the running core apart from the memory that all cores see, by the
// method of docs/memory-models.md: while a core runs, guest memory has the values that this core
// sees, and the bytes that its stores hide are saved. Apply writes the core's stores to memory,
// Withdraw removes them. Loads need no help.
type Buffers struct{ cpu *CPU }

// SharedInSnapshot marks that copies of the machine's state share the engine.
func (b *Buffers) SharedInSnapshot() {}

// BufferStores starts to buffer the stores of all later runs. It comes before the first run; later
// it is an error. A full buffer commits its oldest store for each new one; with capacity 0, none is
// ever full.
func (c *CPU) BufferStores(capacity int) (*Buffers, error) {
	if code := C.heddle_buffers_open(c.c, C.uint32_t(capacity)); code != 0 {
		return nil, fmt.Errorf("observe the guest's stores: %w", uc.UcError(code))
	}
	return &Buffers{c}, nil
}

// Apply writes the stores of a core, oldest first, over memory, in the space of the loaded thread,
// which is about to run on the core. It returns false if it left some out because there is no
// longer a page at their address.
func (b *Buffers) Apply(stores []Store) bool {
	var first *C.struct_heddle_store
	if len(stores) > 0 {
		first = (*C.struct_heddle_store)(unsafe.Pointer(&stores[0]))
	}
	return bool(C.heddle_buffers_apply(b.cpu.c, first, C.size_t(len(stores))))
}

// Withdraw removes the stores of the core that has run from memory, and appends them to to, oldest
// first.
func (b *Buffers) Withdraw(to []Store) []Store {
	n := int(C.heddle_buffers_withdraw(b.cpu.c))
	return append(to, unsafe.Slice((*Store)(unsafe.Pointer(b.cpu.c.buffers.out)), n)...)
}
