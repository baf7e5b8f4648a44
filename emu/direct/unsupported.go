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

// LogBranches implements emu.CPU.
func (c *CPU) LogBranches(bool) error { return errUnsupported }

// Branches implements emu.CPU.
func (c *CPU) Branches() []emu.BranchWord { return nil }

// Code implements emu.CPU.
func (c *CPU) Code(func(emu.CodeBlock) bool) {}

// Drained implements emu.CPU.
func (c *CPU) Drained() {}

// CountBranches implements emu.CPU.
func (c *CPU) CountBranches() error { return errUnsupported }

// CountedBranches implements emu.CPU.
func (c *CPU) CountedBranches() uint64 { return 0 }

// LogInstructions implements emu.CPU.
func (c *CPU) LogInstructions() error { return errUnsupported }

// TakeInstructions implements emu.CPU.
func (c *CPU) TakeInstructions(uint64) ([]uint64, error) { return nil, errUnsupported }

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

// LogAtomics implements emu.CPU.
func (c *CPU) LogAtomics() error { return errUnsupported }

// MuteAtomics implements emu.CPU.
func (c *CPU) MuteAtomics(bool) {}

// TakeAtomic implements emu.CPU.
func (c *CPU) TakeAtomic(*emu.Atomic) bool { return false }

// GateAtomics implements emu.CPU.
func (c *CPU) GateAtomics() {}

// AdmitAtomic implements emu.CPU.
func (c *CPU) AdmitAtomic(bool) {}

// AtAtomic implements emu.CPU.
func (c *CPU) AtAtomic() bool { return false }

// NextAtomic implements emu.CPU.
func (c *CPU) NextAtomic() (at arch.Addr, compares, sets bool) { return 0, false, false }

// BufferStores implements emu.CPU.
func (c *CPU) BufferStores(int) (emu.Buffers, error) { return nil, errUnsupported }

// UsePrivatePages implements emu.CPU.
func (c *CPU) UsePrivatePages() (emu.PrivatePages, error) { return nil, errUnsupported }
