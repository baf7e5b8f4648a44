package direct

import (
	"errors"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/emu/memlog"
)

// errUnsupported is the answer to requests that this engine lacks.
var errUnsupported = errors.New("the engine direct lacks this; use --engine unicorn")

// Transcendental implements emu.CPU.
func (c *CPU) Transcendental() bool { return false }

// Interrupted implements emu.CPU.
func (c *CPU) Interrupted() (arch.Interrupted, bool) { return arch.Interrupted{}, false }

// Commit implements emu.CPU.
func (c *CPU) Commit(*arch.Interrupted, *mem.Space) {}

// LogMemory implements emu.CPU.
func (c *CPU) LogMemory(memlog.Filter) error { return errUnsupported }

// MuteMemory implements emu.CPU.
func (c *CPU) MuteMemory(bool) {}

// SwapMemory implements emu.CPU.
func (c *CPU) SwapMemory(*memlog.Buffer) {}

// LoggedMemory implements emu.CPU.
func (c *CPU) LoggedMemory() int { return 0 }

// ForgetMemory implements emu.CPU.
func (c *CPU) ForgetMemory() {}

// LogAccesses implements emu.CPU.
func (c *CPU) LogAccesses() (emu.AccessLog, error) { return nil, errUnsupported }

// BufferStores implements emu.CPU.
func (c *CPU) BufferStores(int) (emu.Buffers, error) { return nil, errUnsupported }

// UsePrivatePages implements emu.CPU.
func (c *CPU) UsePrivatePages() (emu.PrivatePages, error) { return nil, errUnsupported }
