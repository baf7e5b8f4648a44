package arch

// Regs is a thread's integer registers.
type Regs struct {
	// GPR has rax rcx rdx rbx rsp rbp rsi rdi r8-r15, in the order of encoding.
	GPR            [16]uint64
	RIP, RFLAGS    uint64
	FSBase, GSBase uint64
}

// Indices of Regs.GPR.
const (
	RAX = iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
)

// FPSize is the size in bytes of floating-point state, an FXSAVE image (Intel SDM volume 1, section
// 10.5).
const FPSize = 512

// YMMHighSize is the size in bytes of the upper halves of the registers YMM0 to YMM15, each 16 bytes,
// as XSAVE stores them (Intel SDM volume 1, section 13.4.2).
const YMMHighSize = 16 * 16

// Operand is memory that an instruction accesses.
type Operand struct {
	Addr  Addr
	Size  int // bytes
	Write bool
}

// Context has a thread's registers while another thread is loaded. Each engine has its own type.
type Context interface {
	// Release frees the resources of the context outside Go's memory.
	Release()
}
