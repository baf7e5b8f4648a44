package kernel

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// CPU is the processor, of which the kernel uses no more than this: it never runs an instruction.
// One thread is loaded at a time. The methods without a context are about that one.
type CPU interface {
	// NewContext makes the registers of a thread, as the processor has them after a reset.
	NewContext() arch.Context
	// CloneContext copies the registers of a thread.
	CloneContext(arch.Context) arch.Context
	// Load makes a thread the one that is loaded, in an address space.
	Load(arch.Context, *mem.Space)

	Regs(*arch.Regs)
	SetRegs(*arch.Regs)
	// FP reads the floating-point and SSE state as FXSAVE stores it, and SetFP writes it.
	FP(*[arch.FPSize]byte)
	SetFP(*[arch.FPSize]byte)
	PC() arch.Addr
	// FaultAddr is the address of the access that faulted last, CR2.
	FaultAddr() arch.Addr
	// Operands is the memory that the next instruction accesses.
	Operands() []arch.Operand
	// RepetitionIsOver reports whether the next instruction is a repeated one that has no iterations left.
	RepetitionIsOver() bool

	// CPUID returns EAX, EBX, ECX and EDX.
	CPUID(leaf, subleaf uint32) [4]uint32
}
