package uc

/*
#include "cpu.h"
*/
import "C"

import (
	"fmt"

	uc "github.com/unicorn-engine/unicorn/bindings/go/unicorn"
)

// CountBranches implements emu.CPU.
func (c *CPU) CountBranches() error {
	if code := C.heddle_cpu_count_branches(c.c); code != 0 {
		return fmt.Errorf("count branches: %w", uc.UcError(code))
	}
	return nil
}
