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

// Operands returns the memory that the next instruction of the loaded thread accesses, as far as
// its operands name it: not the accesses of XSAVE, for example, or of gathering loads. A repeated
// instruction is about to execute one iteration.
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

// RepetitionIsOver reports whether the next instruction of the loaded thread is a repeated string
// instruction without iterations left. After its last iteration, it counts once more for leaving.
func (c *CPU) RepetitionIsOver() bool {
	c.applySwitch()
	return bool(C.heddle_cpu_repetition_over(c.c))
}
