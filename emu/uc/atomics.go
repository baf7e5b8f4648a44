package uc

/*
#include "cpu.h"

#cgo noescape heddle_atomics_open
#cgo nocallback heddle_atomics_open
*/
import "C"

import (
	"fmt"
	"unsafe"

	uc "github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// LogAtomics implements emu.CPU. Blocks that have an atomic instruction are executed one instruction
// at a time, at half a microsecond each.
func (c *CPU) LogAtomics() error {
	if code := C.heddle_atomics_open(c.c); code != 0 {
		return fmt.Errorf("log atomic instructions: %w", uc.UcError(code))
	}
	return nil
}

// MuteAtomics implements emu.CPU.
func (c *CPU) MuteAtomics(on bool) { c.c.logs.atomics.muted = C.bool(on) }

// GateAtomics implements emu.CPU.
func (c *CPU) GateAtomics() { c.c.logs.atomics.gated = true }

// AdmitAtomic implements emu.CPU.
func (c *CPU) AdmitAtomic(on bool) { c.c.logs.atomics.admitted = C.bool(on) }

// AtAtomic implements emu.CPU.
func (c *CPU) AtAtomic() bool { return bool(c.c.logs.atomics.at) }

// NextAtomic implements emu.CPU.
func (c *CPU) NextAtomic() (at arch.Addr, compares, sets bool) {
	a := &c.c.logs.atomics
	return arch.Addr(a.where), bool(a.compares), bool(a.sets)
}

// TakeAtomic implements emu.CPU.
func (c *CPU) TakeAtomic(a *emu.Atomic) bool {
	log := &c.c.logs.atomics
	if log.taken == log.n {
		log.taken, log.n = 0, 0
		return false
	}
	e := (*C.struct_heddle_atomic)(unsafe.Add(unsafe.Pointer(log.entries), uintptr(log.taken)*C.sizeof_struct_heddle_atomic))
	log.taken++
	*a = emu.Atomic{
		PC: arch.Addr(e.pc), Addr: arch.Addr(e.addr), Size: uint32(e.size),
		Before: uint64(c.c.run.instructions - e.instructions), Cycles: arch.Cycles(c.c.run.cycles - e.cycles),
	}
	return true
}
