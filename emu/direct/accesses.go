package direct

/*
#include <stdlib.h>
#include "engine.h"
*/
import "C"

import (
	"unsafe"

	"github.com/heddle-dmt/heddle/emu"
)

// accessLog is an emu.AccessLog. While there is one, every instruction is executed on its own.
type accessLog struct {
	cpu *CPU
	c   *C.struct_direct_physical_log
}

// LogAccesses implements emu.CPU. There is one such log at a time.
func (c *CPU) LogAccesses() (emu.AccessLog, error) {
	l := &accessLog{c, (*C.struct_direct_physical_log)(C.calloc(1, C.sizeof_struct_direct_physical_log))}
	C.direct_log_physical(c.c, l.c)
	return l, nil
}

// Close implements emu.AccessLog.
func (l *accessLog) Close() {
	C.direct_log_physical(l.cpu.c, nil)
	C.free(unsafe.Pointer(l.c))
	l.c = nil
}

// Take implements emu.AccessLog.
func (l *accessLog) Take(to []emu.MemoryAccess) (all []emu.MemoryAccess, ok bool) {
	n := min(uint64(l.c.count), C.PHYSICALS)
	for i := range n {
		e := &l.c.entries[i]
		to = append(to, emu.MemoryAccess{Physical: uint64(e.at), Size: int(e.size), Write: e.store != 0})
	}
	ok = n == uint64(l.c.count)
	l.c.count = 0
	return to, ok
}
