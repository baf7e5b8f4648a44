package direct

import (
	"errors"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/memlog"
)

// errUnsupported is the answer to requests that this engine lacks.
var errUnsupported = errors.New("the engine direct lacks this; use --engine unicorn")

// Transcendental implements emu.CPU.
func (c *CPU) Transcendental() bool { return false }

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
