package direct

/*
#include "engine.h"

#cgo noescape direct_operands
#cgo nocallback direct_operands
#cgo noescape direct_repetition_over
#cgo nocallback direct_repetition_over
#cgo noescape direct_order_at
#cgo nocallback direct_order_at
*/
import "C"

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// Operands implements emu.CPU.
func (c *CPU) Operands() []arch.Operand {
	var list [C.HEDDLE_OPERANDS]C.struct_heddle_operand
	n := C.direct_operands(c.c, &list[0])
	all := make([]arch.Operand, n)
	for i := range all {
		o := &list[i]
		all[i] = arch.Operand{Addr: arch.Addr(o.at), Size: int(o.size), Write: o.writes != 0}
	}
	return all
}

// RepetitionIsOver implements emu.CPU.
func (c *CPU) RepetitionIsOver() bool { return bool(C.direct_repetition_over(c.c)) }

// OrderAt implements emu.CPU.
func (c *CPU) OrderAt(pc arch.Addr) emu.Order {
	return emu.Order(C.direct_order_at(c.c, C.uint64_t(pc)))
}
