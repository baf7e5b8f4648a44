package direct

/*
#include "engine.h"

#cgo noescape direct_log_atomics
#cgo nocallback direct_log_atomics
*/
import "C"

import (
	"errors"
	"unsafe"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// LogAtomics implements emu.CPU. Atomic instructions are units, with a log or without one.
func (c *CPU) LogAtomics() error {
	if C.direct_log_atomics(c.c) != 0 {
		return errors.New("log atomic instructions: the host has no memory for it")
	}
	return nil
}

// MuteAtomics implements emu.CPU.
func (c *CPU) MuteAtomics(on bool) { c.c.log.atomics.muted = C.bool(on) }

// GateAtomics implements emu.CPU.
func (c *CPU) GateAtomics() { c.c.log.atomics.gated = true }

// AdmitAtomic implements emu.CPU.
func (c *CPU) AdmitAtomic(on bool) { c.c.log.atomics.admitted = C.bool(on) }

// AtAtomic implements emu.CPU.
func (c *CPU) AtAtomic() bool { return bool(c.c.log.atomics.at) }

// NextAtomic implements emu.CPU.
func (c *CPU) NextAtomic() (at arch.Addr, compares, sets bool) {
	a := &c.c.log.atomics
	return arch.Addr(a.where), bool(a.compares), bool(a.sets)
}

// TakeAtomic implements emu.CPU.
func (c *CPU) TakeAtomic(a *emu.Atomic) bool {
	log := &c.c.log.atomics
	if log.taken == log.n {
		log.taken, log.n = 0, 0
		return false
	}
	e := (*C.struct_direct_atomic)(unsafe.Add(unsafe.Pointer(log.entries), uintptr(log.taken)*C.sizeof_struct_direct_atomic))
	log.taken++
	*a = emu.Atomic{
		PC: arch.Addr(e.pc), Addr: arch.Addr(e.addr), Size: uint32(e.size),
		Before: uint64(c.c.instructions - e.instructions), Cycles: arch.Cycles(c.c.cycles - e.cycles),
	}
	return true
}
