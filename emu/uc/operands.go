package uc

/*
#include "cpu.h"

#cgo noescape heddle_cpu_repetition_over
#cgo nocallback heddle_cpu_repetition_over
#cgo noescape heddle_cpu_operands
#cgo nocallback heddle_cpu_operands
*/
import "C"
import "github.com/heddle-dmt/heddle/emu/arch"

// Operands implements emu.CPU.
func (c *CPU) Operands() []arch.Operand {
	c.applySwitch()
	var list [C.HEDDLE_OPERANDS]C.struct_heddle_operand
	n := C.heddle_cpu_operands(c.c, &list[0])
	all := make([]arch.Operand, n)
	for i := range all {
		o := &list[i]
		all[i] = arch.Operand{Addr: arch.Addr(o.at), Size: int(o.size), Write: o.writes != 0}
	}
	return all
}

// RepetitionIsOver implements emu.CPU.
func (c *CPU) RepetitionIsOver() bool {
	c.applySwitch()
	return bool(C.heddle_cpu_repetition_over(c.c))
}
