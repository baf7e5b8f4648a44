// Package fake is a scripted processor for tests: it has contexts and registers like an engine, and
// executes no instruction. A test says what the loaded thread does next, for example make a system
// call or access a missing page, and gets the Stop that an engine would report.
//
// It does not depend on Linux. The tests of guest/kernel use it instead of Unicorn.
package fake

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// Context has the registers of a thread.
type Context struct {
	Regs     arch.Regs
	FP       [arch.FPSize]byte
	YMMHigh  [arch.YMMHighSize]byte
	Released bool
}

// Release implements arch.Context.
func (c *Context) Release() { c.Released = true }

// CPU is a processor. The zero value has no thread loaded.
type CPU struct {
	// NextOperands and NextIsOver are the results of Operands and RepetitionIsOver.
	NextOperands []arch.Operand
	NextIsOver   bool
	// Features are EAX, EBX, ECX and EDX of every leaf of CPUID.
	Features [4]uint32

	loaded *Context
	space  *mem.Space
	fault  arch.Addr
}

// NewContext makes a context whose registers are all zero.
func (c *CPU) NewContext() arch.Context { return &Context{} }

// CloneContext copies a context.
func (c *CPU) CloneContext(x arch.Context) arch.Context {
	copied := *x.(*Context)
	return &copied
}

// Load makes the other methods act on a thread, in an address space.
func (c *CPU) Load(x arch.Context, s *mem.Space) { c.loaded, c.space = x.(*Context), s }

// Regs reads the integer registers of the loaded thread.
func (c *CPU) Regs(r *arch.Regs) { *r = c.loaded.Regs }

// SetRegs writes the integer registers of the loaded thread.
func (c *CPU) SetRegs(r *arch.Regs) { c.loaded.Regs = *r }

// FP reads the floating-point state of the loaded thread.
func (c *CPU) FP(image *[arch.FPSize]byte) { *image = c.loaded.FP }

// SetFP writes the floating-point state of the loaded thread.
func (c *CPU) SetFP(image *[arch.FPSize]byte) { c.loaded.FP = *image }

// YMMHigh reads the upper halves of the YMM registers of the loaded thread.
func (c *CPU) YMMHigh(halves *[arch.YMMHighSize]byte) { *halves = c.loaded.YMMHigh }

// SetYMMHigh writes the upper halves of the YMM registers of the loaded thread.
func (c *CPU) SetYMMHigh(halves *[arch.YMMHighSize]byte) { c.loaded.YMMHigh = *halves }

// PC returns the address of the loaded thread's next instruction.
func (c *CPU) PC() arch.Addr { return arch.Addr(c.loaded.Regs.RIP) }

// FaultAddr returns the address of the last Fault.
func (c *CPU) FaultAddr() arch.Addr { return c.fault }

// Operands returns NextOperands.
func (c *CPU) Operands() []arch.Operand { return c.NextOperands }

// RepetitionIsOver returns NextIsOver.
func (c *CPU) RepetitionIsOver() bool { return c.NextIsOver }

// CPUID returns Features, whatever the leaf.
func (c *CPU) CPUID(uint32, uint32) [4]uint32 { return c.Features }

// SyscallSize is the length of the SYSCALL instruction in bytes (Intel SDM volume 2).
const SyscallSize = 2

// argumentRegisters are the registers of a system call's arguments (System V ABI for AMD64, section
// A.2.1).
var argumentRegisters = [...]int{arch.RDI, arch.RSI, arch.RDX, arch.R10, arch.R8, arch.R9}

// Syscall makes the loaded thread execute a SYSCALL instruction at an address, with at most six
// arguments.
func (c *CPU) Syscall(at arch.Addr, number uint64, args ...uint64) arch.Stop {
	r := &c.loaded.Regs
	r.GPR[arch.RAX] = number
	for i, a := range args {
		r.GPR[argumentRegisters[i]] = a
	}
	return c.SyscallAgain(at)
}

// SyscallAgain makes the loaded thread execute a SYSCALL instruction at an address with the
// registers that it has.
func (c *CPU) SyscallAgain(at arch.Addr) arch.Stop {
	c.loaded.Regs.RIP = uint64(at) + SyscallSize
	return arch.Stop{Reason: arch.StopSyscall}
}

// Fault makes the loaded thread access an address for which its address space has no page with the
// right.
func (c *CPU) Fault(access arch.Access, at arch.Addr) arch.Stop {
	c.fault = at
	kind := arch.Absent
	if c.space.Get(at &^ (arch.PageSize - 1)).Present() {
		kind = arch.Denied
	}
	return arch.Stop{Reason: arch.StopFault, Access: access, Kind: kind, Page: at &^ (arch.PageSize - 1)}
}

// Exception makes the loaded thread execute an instruction that raises an exception.
func (c *CPU) Exception(vector uint8) arch.Stop {
	return arch.Stop{Reason: arch.StopException, Vector: vector}
}

// Interrupt makes the loaded thread execute INT with a vector.
func (c *CPU) Interrupt(vector uint8) arch.Stop {
	c.loaded.Regs.RIP += 2
	return arch.Stop{Reason: arch.StopInterrupt, Vector: vector}
}
