package uc

/*
#include "cpu.h"
*/
import "C"

import (
	"fmt"

	uc "github.com/unicorn-engine/unicorn/bindings/go/unicorn"
)

// CountBranches starts to count branches (CountedBranches) without logging them. It comes before
// the first run, and not together with LogBranches or LogMemory, which count as well.
func (c *CPU) CountBranches() error {
	if code := C.heddle_cpu_count_branches(c.c); code != 0 {
		return fmt.Errorf("count branches: %w", uc.UcError(code))
	}
	return nil
}
