package uc

/*
#include "cpu.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	uc "github.com/unicorn-engine/unicorn/bindings/go/unicorn"
)

// LogInstructions starts to log every instruction, with a hook of its own, so that tests can
// compare it with branch traces. It comes before the first run, makes runs several times slower and
// has no other effect.
func (c *CPU) LogInstructions() error {
	if code := C.heddle_insns_start(c.c); code != 0 {
		return fmt.Errorf("log instructions: %w", uc.UcError(code))
	}
	return nil
}

// TakeInstructions returns the addresses of the instructions completed since the last call, a
// repeated string instruction once, and empties the log. Completed is their number by the counts of
// the stops (Stop.Instructions without Stop.Repeated, which requires LogBranches); it is an error
// if the log has another number. The addresses are valid until the next run.
func (c *CPU) TakeInstructions(completed uint64) ([]uint64, error) {
	log := &c.c.logs.instructions
	pcs := unsafe.Slice((*uint64)(unsafe.Pointer(log.pcs)), int(log.n))
	C.heddle_insns_empty(c.c)
	// The last one faulted, or is a repeated one that has not completed.
	if uint64(len(pcs)) == completed+1 {
		pcs = pcs[:completed]
	}
	if uint64(len(pcs)) != completed {
		return pcs, fmt.Errorf("the log has %d instructions, %d have completed", len(pcs), completed)
	}
	return pcs, nil
}
