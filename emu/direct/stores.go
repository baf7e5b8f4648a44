package direct

/*
#include "engine.h"
*/
import "C"

import (
	"errors"
	"unsafe"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/emu/stores"
)

func (c *CPU) insides() stores.Insides { return stores.NewInsides(unsafe.Pointer(&c.c.inside)) }

// Interrupted implements emu.CPU.
func (c *CPU) Interrupted() (arch.Interrupted, bool) { return c.insides().Interrupted() }

// Commit implements emu.CPU.
func (c *CPU) Commit(in *arch.Interrupted, s *mem.Space) { c.insides().Commit(in, s) }

// BufferStores implements emu.CPU.
func (c *CPU) BufferStores(capacity int) (emu.Buffers, error) {
	if !C.direct_buffers_open(c.c, C.uint32_t(capacity)) {
		return nil, errors.New("stores cannot be buffered after the first run, or twice")
	}
	return stores.NewBuffers(unsafe.Pointer(c.c.buffers)), nil
}

// UsePrivatePages implements emu.CPU.
func (c *CPU) UsePrivatePages() (emu.PrivatePages, error) {
	if !C.direct_private_open(c.c) {
		return nil, errors.New("cores cannot have private pages after the first run, twice, or with other observers of memory")
	}
	return stores.NewPrivatePages(unsafe.Pointer(c.c.private_pages), c.ram), nil
}
