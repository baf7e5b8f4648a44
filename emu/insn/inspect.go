package insn

/*
#include <stdlib.h>

#include "operands.h"
*/
import "C"

import (
	"unsafe"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Order is the effect of an instruction on the order of memory accesses, as bits.
type Order uint32

// Locked instructions read and write atomically, and are full fences. Full ones are MFENCE and instructions that
// serialize; Stores is SFENCE. Weak ones store past the cache, in no order with others.
const (
	Locked Order = C.HEDDLE_ORDER_LOCKED
	Full   Order = C.HEDDLE_ORDER_FULL
	Stores Order = C.HEDDLE_ORDER_STORES
	Weak   Order = C.HEDDLE_ORDER_WEAK
)

// Access is a load or store of an instruction, of Size bytes.
type Access struct {
	At    arch.Addr
	Size  int
	Store bool
}

// accessesMost is the largest number of accesses that Inspect returns.
const accessesMost = 64

// Inspect returns the loads and then the stores that the first instruction of code makes with these
// registers, and its effect on the order of others. Not ok: the bytes are no instruction, or its accesses
// are not those of its operands (FXSAVE, LEAVE, gathering loads), or one has more than 16 bytes.
func Inspect(code []byte, regs *arch.Regs) (accesses []Access, order Order, ok bool) {
	var in C.struct_heddle_insn
	var list [accessesMost]C.struct_heddle_insn_access
	r := (*C.struct_heddle_regs)(C.malloc(C.sizeof_struct_heddle_regs))
	defer C.free(unsafe.Pointer(r))
	*r = *(*C.struct_heddle_regs)(unsafe.Pointer(regs))
	if !C.heddle_insn_decode((*C.uint8_t)(unsafe.Pointer(&code[0])), C.size_t(len(code)), r, &in) {
		return nil, 0, false
	}
	n := C.heddle_insn_accesses(&in, &list[0], accessesMost)
	if n < 0 {
		return nil, 0, false
	}
	for _, a := range list[:n] {
		accesses = append(accesses, Access{arch.Addr(a.at), int(a.size), a.stores != 0})
	}
	return accesses, Order(C.heddle_order_of(&in.in)), true
}
