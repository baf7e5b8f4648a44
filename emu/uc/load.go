package uc

/*
#include "cpu.h"

#cgo noescape heddle_cpu_switch
#cgo nocallback heddle_cpu_switch
#cgo noescape uc_context_save
#cgo nocallback uc_context_save
*/
import "C"

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// Unload implements emu.CPU.
func (c *CPU) Unload() {
	if c.inEngine != nil {
		C.uc_context_save(c.engineHandle(), c.inEngine.c)
		c.inEngine = nil
	}
	if c.current != nil {
		c.current.pc = c.pc
		c.current, c.pc = nil, programCounter{}
	}
}

// Load implements emu.CPU.
func (c *CPU) Load(of arch.Context, s *mem.Space) {
	x := of.(*Context)
	c.c.space = spaceInC(s)
	if c.current == x {
		return
	}
	if c.current != nil {
		c.current.pc = c.pc
	}
	c.current, c.pc = x, x.pc
}

// applySwitch puts the loaded thread's registers into the engine. Load leaves that to Run, which
// does it together with the run at a lower cost.
func (c *CPU) applySwitch() {
	if from, to := c.takeSwitch(); to != nil {
		C.heddle_cpu_switch(c.c, from, to)
	}
}

// takeSwitch returns the contexts to save and to load, each possibly nil, and marks the
// switch as done.
func (c *CPU) takeSwitch() (from, to *C.uc_context) {
	if c.inEngine == c.current || c.current == nil {
		return nil, nil
	}
	if c.inEngine != nil {
		from = c.inEngine.c
	}
	c.inEngine = c.current
	return from, c.current.c
}

func ramInC(r *mem.RAM) *C.struct_heddle_ram { return (*C.struct_heddle_ram)(r.Handle()) }

func spaceInC(s *mem.Space) *C.struct_heddle_space { return (*C.struct_heddle_space)(s.Handle()) }
