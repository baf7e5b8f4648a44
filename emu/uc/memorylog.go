package uc

/*
#include <stdlib.h>
#include "cpu.h"

#cgo noescape heddle_mem_open
#cgo nocallback heddle_mem_open
#cgo noescape heddle_mem_swap
#cgo nocallback heddle_mem_swap
#cgo noescape heddle_mem_forget
#cgo nocallback heddle_mem_forget
*/
import "C"

import (
	"fmt"
	"unsafe"

	uc "github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"github.com/heddle-dmt/heddle/emu/memlog"
)

// LogMemory implements emu.CPU. A run takes six times as long, and every access has an entry.
func (c *CPU) LogMemory(f memlog.Filter) error {
	data, code := rangesInC(f.Data), rangesInC(f.Code)
	err := C.heddle_mem_open(c.c, unsafe.SliceData(data), C.size_t(len(data)), unsafe.SliceData(code), C.size_t(len(code)), C.bool(f.Partial))
	if err != 0 {
		return fmt.Errorf("log memory accesses: %w", uc.UcError(err))
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

// MuteMemory implements emu.CPU.
func (c *CPU) MuteMemory(mute bool) { c.c.logs.memory.core.muted = C.bool(mute) }

// SwapMemory implements emu.CPU.
func (c *CPU) SwapMemory(b *memlog.Buffer) {
	C.heddle_mem_swap(&c.c.logs.memory.core, (*C.struct_heddle_mem_buffer)(b.Handle()))
}

// LoggedMemory implements emu.CPU.
func (c *CPU) LoggedMemory() int {
	if c.c.logs.memory.core.to == nil {
		return 0 // no log
	}
	return int(c.c.logs.memory.core.to.n)
}

// CountedBranches implements emu.CPU.
func (c *CPU) CountedBranches() uint64 { return uint64(c.c.logs.flow.branches) }

// ForgetMemory implements emu.CPU.
func (c *CPU) ForgetMemory() { C.heddle_mem_forget(&c.c.logs.memory.core) }
