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

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Atomic is an atomic instruction (LOCK prefix, or XCHG with memory) or a fence (MFENCE, SFENCE,
// LFENCE) that a run has executed.
type Atomic struct {
	PC arch.Addr
	// Addr and Size are the accessed memory; Size is 0 for a fence.
	Addr arch.Addr
	Size uint32
	// Before and Cycles are the instructions and cycles of the run from just before it to the run's
	// end.
	Before uint64
	Cycles arch.Cycles
}

// LogAtomics starts to log atomic instructions and fences, for the rest of the CPU's life. Blocks
// that have one are executed one instruction at a time, at half a microsecond each; the effect of a
// run does not change. A run ends with StopLog when the log must be read.
func (c *CPU) LogAtomics() error {
	if code := C.heddle_atomics_open(c.c); code != 0 {
		return fmt.Errorf("log atomic instructions: %w", uc.UcError(code))
	}
	return nil
}

// MuteAtomics leaves atomic instructions out of the log from now on, at no cost, or logs them
// again.
func (c *CPU) MuteAtomics(on bool) { c.c.logs.atomics.muted = C.bool(on) }

// GateAtomics makes runs also stop, with StopBreakpoint, before each logged atomic instruction that
// is not admitted, where AtAtomic is true, and after it. LogAtomics comes first.
func (c *CPU) GateAtomics() { c.c.logs.atomics.gated = true }

// AdmitAtomic sets whether the next atomic instruction is executed without a stop before it.
func (c *CPU) AdmitAtomic(on bool) { c.c.logs.atomics.admitted = C.bool(on) }

// AtAtomic reports whether the last run stopped before an atomic instruction that was not admitted.
func (c *CPU) AtAtomic() bool { return bool(c.c.logs.atomics.at) }

// NextAtomic returns the operand's address of the atomic instruction that the last run stopped
// before, and whether it is a CMPXCHG or an OR.
func (c *CPU) NextAtomic() (at arch.Addr, compares, sets bool) {
	a := &c.c.logs.atomics
	return arch.Addr(a.where), bool(a.compares), bool(a.sets)
}

// TakeAtomic removes the first entry of the log, in the order of execution, and returns whether
// there was one. The caller takes all entries after each stop of a run whose atomic instructions
// are logged.
func (c *CPU) TakeAtomic(a *Atomic) bool {
	log := &c.c.logs.atomics
	if log.taken == log.n {
		log.taken, log.n = 0, 0
		return false
	}
	e := (*C.struct_heddle_atomic)(unsafe.Add(unsafe.Pointer(log.entries), uintptr(log.taken)*C.sizeof_struct_heddle_atomic))
	log.taken++
	*a = Atomic{
		PC: arch.Addr(e.pc), Addr: arch.Addr(e.addr), Size: uint32(e.size),
		Before: uint64(c.c.run.instructions - e.instructions), Cycles: arch.Cycles(c.c.run.cycles - e.cycles),
	}
	return true
}
