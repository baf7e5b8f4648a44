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

// LogInstructions begins to log every instruction, by a hook of the engine's
// that nothing else uses: what tests hold against branch traces. It comes before
// the first run, makes runs several times slower and changes nothing else.
func (c *CPU) LogInstructions() error {
	if code := C.heddle_insns_start(c.c); code != 0 {
		return fmt.Errorf("log instructions: %w", uc.UcError(code))
	}
	return nil
}

// TakeInstructions returns the addresses of the instructions completed since the
// last call, a repeated string instruction once, and empties the log. Completed
// is how many those are by the counts of the stops (Stop.Instructions without
// Stop.Repeated, which needs LogBranches); an error says that the engine came by
// another number. The addresses are valid until the next run.
func (c *CPU) TakeInstructions(completed uint64) ([]uint64, error) {
	log := &c.c.logs.instructions
	pcs := unsafe.Slice((*uint64)(unsafe.Pointer(log.pcs)), int(log.n))
	C.heddle_insns_empty(c.c)
	// The last one faulted, or is a repeated one that has not come to its end.
	if uint64(len(pcs)) == completed+1 {
		pcs = pcs[:completed]
	}
	if uint64(len(pcs)) != completed {
		return pcs, fmt.Errorf("%d instructions were met, %d completed", len(pcs), completed)
	}
	return pcs, nil
}
