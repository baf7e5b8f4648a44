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

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// The effects are those of C. A difference does not compile.
const (
	_ = -(uint(emu.OrderLocked) ^ uint(C.HEDDLE_ORDER_LOCKED))
	_ = -(uint(emu.OrderFull) ^ uint(C.HEDDLE_ORDER_FULL))
	_ = -(uint(emu.OrderStores) ^ uint(C.HEDDLE_ORDER_STORES))
	_ = -(uint(emu.OrderWeak) ^ uint(C.HEDDLE_ORDER_WEAK))
)

// OrderAt implements emu.CPU.
func (c *CPU) OrderAt(pc arch.Addr) emu.Order {
	return emu.Order(C.heddle_order_at(c.c, C.uint64_t(pc)))
}

// accessLog is an emu.AccessLog. Runs take at least seven times as long.
type accessLog struct{ c *C.struct_heddle_access_log }

// LogAccesses implements emu.CPU.
func (c *CPU) LogAccesses() (emu.AccessLog, error) {
	l := &accessLog{(*C.struct_heddle_access_log)(C.calloc(1, C.sizeof_struct_heddle_access_log))}
	if code := C.heddle_access_log_open(l.c, c.c); code != 0 {
		l.Close()
		return nil, fmt.Errorf("observe the guest's memory accesses: %w", uc.UcError(code))
	}
	return l, nil
}

// Close implements emu.AccessLog.
func (l *accessLog) Close() {
	C.heddle_access_log_close(l.c)
	C.free(unsafe.Pointer(l.c))
	l.c = nil
}

// Take implements emu.AccessLog.
func (l *accessLog) Take(to []emu.MemoryAccess) (all []emu.MemoryAccess, ok bool) {
	n := min(uint64(l.c.count), C.HEDDLE_ACCESSES)
	for i := range n {
		e := &l.c.entries[i]
		to = append(to, emu.MemoryAccess{Physical: uint64(e.physical), Size: int(e.size), Write: e.write != 0})
	}
	ok = n == uint64(l.c.count)
	l.c.count = 0
	return to, ok
}
