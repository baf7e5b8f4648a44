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

// Unload puts the loaded thread's registers into its context.
func (c *CPU) Unload() {
	if c.in != nil {
		C.uc_context_save(c.handle(), c.in.c)
		c.in = nil
	}
	if c.current != nil {
		c.current.pc = c.pc
		c.current, c.pc = nil, programCounter{}
	}
}

// Load makes the thread of a context, which must be of this engine, the one that Run, Regs and
// the like act on, in the address space s.
func (c *CPU) Load(of arch.Context, s *mem.Space) {
	x := of.(*Context)
	c.c.space = spaceOf(s)
	if c.current == x {
		return
	}
	if c.current != nil {
		c.current.pc = c.pc
	}
	c.current, c.pc = x, x.pc
}

// settle puts the loaded thread's registers into the engine: Load does not, since Run
// does it for less.
func (c *CPU) settle() {
	if from, to := c.pending(); to != nil {
		C.heddle_cpu_switch(c.c, from, to)
	}
}

// pending returns the contexts to save, if any, and to load, if any, and notes that it
// is done.
func (c *CPU) pending() (from, to *C.uc_context) {
	if c.in == c.current || c.current == nil {
		return nil, nil
	}
	if c.in != nil {
		from = c.in.c
	}
	c.in = c.current
	return from, c.current.c
}

func ramOf(r *mem.RAM) *C.struct_heddle_ram { return (*C.struct_heddle_ram)(r.Handle()) }

func spaceOf(s *mem.Space) *C.struct_heddle_space { return (*C.struct_heddle_space)(s.Handle()) }
