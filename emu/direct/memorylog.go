package direct

/*
#include "engine.h"

#cgo noescape direct_log_memory
#cgo nocallback direct_log_memory
#cgo noescape heddle_mem_swap
#cgo nocallback heddle_mem_swap
#cgo noescape heddle_mem_forget
#cgo nocallback heddle_mem_forget
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/heddle-dmt/heddle/emu/memlog"
)

// LogMemory implements emu.CPU.
func (c *CPU) LogMemory(f memlog.Filter) error {
	data, code := rangesInC(f.Data), rangesInC(f.Code)
	if C.direct_log_memory(c.c, unsafe.SliceData(data), C.size_t(len(data)), unsafe.SliceData(code), C.size_t(len(code)), C.bool(f.Partial)) != 0 {
		return fmt.Errorf("log memory accesses: %w", errStarted)
	}
	return nil
}

func rangesInC(list []memlog.Range) []C.struct_heddle_mem_range {
	out := make([]C.struct_heddle_mem_range, len(list))
	for i, r := range list {
		out[i] = C.struct_heddle_mem_range{start: C.uint64_t(r.Start), end: C.uint64_t(r.End)}
	}
	return out
}

// PassMemory has a consumer take the log of the runs from now on.
func (c *CPU) PassMemory(to memlog.Consumer) {
	c.c.log.memory.consumer = (*C.struct_heddle_mem_consumer)(to)
}

// MuteMemory implements emu.CPU.
func (c *CPU) MuteMemory(mute bool) { c.c.log.memory.muted = C.bool(mute) }

// SwapMemory implements emu.CPU.
func (c *CPU) SwapMemory(b *memlog.Buffer) {
	C.heddle_mem_swap(&c.c.log.memory, (*C.struct_heddle_mem_buffer)(b.Handle()))
}

// LoggedMemory implements emu.CPU.
func (c *CPU) LoggedMemory() int {
	if c.c.log.memory.to == nil {
		return 0 // no log
	}
	return int(c.c.log.memory.to.n)
}

// ForgetMemory implements emu.CPU.
func (c *CPU) ForgetMemory() { C.heddle_mem_forget(&c.c.log.memory) }
