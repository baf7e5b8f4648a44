package uc

/*
#include <stdlib.h>
#include "accesses.h"

#cgo noescape heddle_order_at
#cgo nocallback heddle_order_at
*/
import "C"

import (
	"fmt"
	"unsafe"

	uc "github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Order is the effect of an instruction on the order of memory accesses (Intel SDM volume 3,
// section 8.2).
type Order uint8

// Effects on the order. Locked instructions (LOCK prefix, XCHG with memory) read and write
// atomically and are full fences; Full are MFENCE and CPUID, which serializes; Stores is SFENCE;
// Weak are non-temporal stores, which other stores may overtake.
const (
	OrderLocked Order = C.HEDDLE_ORDER_LOCKED
	OrderFull   Order = C.HEDDLE_ORDER_FULL
	OrderStores Order = C.HEDDLE_ORDER_STORES
	OrderWeak   Order = C.HEDDLE_ORDER_WEAK
)

// OrderAt returns the Order of the instruction at pc in the loaded thread's space.
func (c *CPU) OrderAt(pc arch.Addr) Order { return Order(C.heddle_order_at(c.c, C.uint64_t(pc))) }

// MemoryAccess is a load or store as the engine makes it: by physical address, possibly one of
// several parts of an access.
type MemoryAccess struct {
	Physical uint64
	Size     int
	Write    bool
}

// AccessLog logs the memory accesses of all runs of a CPU, which take at least seven times as long.
// Its owner calls Close before closing the CPU.
type AccessLog struct{ c *C.struct_heddle_access_log }

// LogAccesses starts to log memory accesses.
func (c *CPU) LogAccesses() (*AccessLog, error) {
	l := &AccessLog{(*C.struct_heddle_access_log)(C.calloc(1, C.sizeof_struct_heddle_access_log))}
	if code := C.heddle_access_log_open(l.c, c.c); code != 0 {
		l.Close()
		return nil, fmt.Errorf("observe the guest's memory accesses: %w", uc.UcError(code))
	}
	return l, nil
}

// Close stops logging.
func (l *AccessLog) Close() {
	C.heddle_access_log_close(l.c)
	C.free(unsafe.Pointer(l.c))
	l.c = nil
}

// Take appends the accesses since the last call to to, in their order. It returns false if there
// were too many to keep.
func (l *AccessLog) Take(to []MemoryAccess) (all []MemoryAccess, ok bool) {
	n := min(uint64(l.c.count), C.HEDDLE_ACCESSES)
	for i := range n {
		e := &l.c.entries[i]
		to = append(to, MemoryAccess{uint64(e.physical), int(e.size), e.write != 0})
	}
	ok = n == uint64(l.c.count)
	l.c.count = 0
	return to, ok
}
