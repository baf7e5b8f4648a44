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

// Atomic is an atomic instruction (LOCK prefix, or XCHG with memory) or a fence
// (MFENCE, SFENCE, LFENCE) that a run executed.
type Atomic struct {
	PC arch.Addr
	// Addr and Size are the memory that it accessed; Size is 0 of a fence.
	Addr arch.Addr
	Size uint32
	// Before and Cycles tell how many instructions and cycles the run has
	// retired since just before it.
	Before uint64
	Cycles arch.Cycles
}

// LogAtomics begins to log atomic instructions and fences, for the rest of the
// CPU's life. Blocks that have one are stepped through, half a microsecond an
// instruction; what a run does is the same as without. A StopLog asks for the
// log to be read.
func (c *CPU) LogAtomics() error {
	if code := C.heddle_atomics_open(c.c); code != 0 {
		return fmt.Errorf("log atomic instructions: %w", uc.UcError(code))
	}
	return nil
}

// MuteAtomics leaves atomic instructions out of the log from here on, at no
// cost, or puts them in again.
func (c *CPU) MuteAtomics(on bool) { c.c.logs.atomics.muted = C.bool(on) }

// GateAtomics has runs also stop, with StopBreakpoint, before each atomic
// instruction that is logged and was not admitted, where AtAtomic is true, and
// behind it. LogAtomics comes first.
func (c *CPU) GateAtomics() { c.c.logs.atomics.gated = true }

// AdmitAtomic says whether the next atomic instruction may go on without a stop
// before it.
func (c *CPU) AdmitAtomic(on bool) { c.c.logs.atomics.admitted = C.bool(on) }

// AtAtomic tells whether the last run stopped before an atomic instruction that
// was not admitted.
func (c *CPU) AtAtomic() bool { return bool(c.c.logs.atomics.at) }

// NextAtomic is where the atomic instruction acts that the last run stopped before, and
// whether it is a CMPXCHG or an OR.
func (c *CPU) NextAtomic() (at arch.Addr, compares, sets bool) {
	a := &c.c.logs.atomics
	return arch.Addr(a.where), bool(a.compares), bool(a.sets)
}

// TakeAtomic takes the next entry of the log, in the order of execution; false:
// there is none. All entries must be taken after each stop of a run whose atomic
// instructions are logged.
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
