package kernel

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// CPU is all that the kernel uses of the processor; the kernel never executes an instruction. One
// thread is loaded at a time. The methods without a context act on that thread.
type CPU interface {
	// NewContext makes the registers of a thread in the state after a processor reset.
	NewContext() arch.Context
	// CloneContext copies the registers of a thread.
	CloneContext(arch.Context) arch.Context
	// Load makes a thread the loaded one, in an address space.
	Load(arch.Context, *mem.Space)

	Regs(*arch.Regs)
	SetRegs(*arch.Regs)
	// FP reads the floating-point and SSE state as FXSAVE stores it, and SetFP writes it.
	FP(*[arch.FPSize]byte)
	SetFP(*[arch.FPSize]byte)
	// YMMHigh reads the upper halves of the YMM registers, and SetYMMHigh writes them. CPUID says
	// whether there are any.
	YMMHigh(*[arch.YMMHighSize]byte)
	SetYMMHigh(*[arch.YMMHighSize]byte)
	PC() arch.Addr
	// FaultAddr is the address of the access that faulted last, CR2.
	FaultAddr() arch.Addr
	// Operands lists the memory that the next instruction accesses.
	Operands() []arch.Operand
	// RepetitionIsOver reports whether the next instruction is a repeated one with no iterations
	// left.
	RepetitionIsOver() bool

	// CPUID returns EAX, EBX, ECX and EDX.
	CPUID(leaf, subleaf uint32) [4]uint32
}
