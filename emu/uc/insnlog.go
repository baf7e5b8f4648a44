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

// LogInstructions implements emu.CPU. It has a hook for each instruction, which makes runs several
// times slower.
func (c *CPU) LogInstructions() error {
	if code := C.heddle_insns_start(c.c); code != 0 {
		return fmt.Errorf("log instructions: %w", uc.UcError(code))
	}
	return nil
}

// TakeInstructions implements emu.CPU.
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
