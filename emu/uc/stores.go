package uc

/*
#include "storehook.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	uc "github.com/unicorn-engine/unicorn/bindings/go/unicorn"

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
	if code := C.heddle_store_hook_open(c.c, C.uint32_t(capacity)); code != 0 {
		return nil, fmt.Errorf("observe the guest's stores: %w", uc.UcError(code))
	}
	return stores.NewBuffers(unsafe.Pointer(c.c.buffers)), nil
}

// UsePrivatePages implements emu.CPU.
func (c *CPU) UsePrivatePages() (emu.PrivatePages, error) {
	if code := C.heddle_cpu_open_private(c.c); code != 0 {
		return nil, fmt.Errorf("give cores private pages: %w", uc.UcError(code))
	}
	return stores.NewPrivatePages(unsafe.Pointer(c.c.private_pages), c.ram), nil
}
