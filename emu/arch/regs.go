package arch

// Regs is a thread's integer registers.
type Regs struct {
	// GPR is rax rcx rdx rbx rsp rbp rsi rdi r8-r15, the order of encoding.
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

// FPSize is the size of floating-point state: an FXSAVE image.
const FPSize = 512

// Operand is memory that an instruction accesses.
type Operand struct {
	Addr  Addr
	Size  int // bytes
	Write bool
}

// Context is a thread's registers while another thread is loaded. Each engine has its own.
type Context interface {
	// Release frees what the context holds outside Go's memory.
	Release()
}
