// Package ptrace has the state of a thread in the layouts of ptrace(2): the
// registers (struct user_regs_struct), struct user, the debug registers, and the
// result of PTRACE_GET_SYSCALL_INFO. It stops no thread and knows no kernel.
//
// Invariant: a value that a tracer may not set is refused with the errno of Linux, and nothing
// is changed then.
package ptrace

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Words of struct user_regs_struct (arch/x86/include/asm/user_64.h).
const (
	wordOrigRAX = 15
	wordRIP     = 16
	wordCS      = 17
	wordFlags   = 18
	wordRSP     = 19
	wordSS      = 20
	wordFSBase  = 21
	wordGSBase  = 22
	wordDS      = 23
	// Words is the number of words.
	Words = 27
	// Size is the size of the structure.
	Size = 8 * Words
)

// general are the words before that of orig_rax.
var general = [...]int{
	arch.R15, arch.R14, arch.R13, arch.R12, arch.RBP, arch.RBX, arch.R11, arch.R10, arch.R9, arch.R8, arch.RAX, arch.RCX,
	arch.RDX, arch.RSI, arch.RDI,
}

// Selectors of a 64-bit program on Linux. The others are 0.
const (
	userCS = 0x33
	userSS = 0x2b
)

// flagsMask are the flags that a tracer may set (FLAG_MASK of Linux).
const flagsMask = 0x1 | 0x4 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 0x800 | 0x4000 | 0x10000 | 0x40000

// Registers are a thread's registers as a tracer sees them.
type Registers struct {
	arch.Regs
	// OrigRAX is the number of the system call that the thread is in, or -1.
	OrigRAX uint64
}

// Word returns word n of the structure.
func (r *Registers) Word(n int) uint64 {
	switch n {
	case wordOrigRAX:
		return r.OrigRAX
	case wordRIP:
		return r.RIP
	case wordCS:
		return userCS
	case wordFlags:
		return r.RFLAGS
	case wordRSP:
		return r.GPR[arch.RSP]
	case wordSS:
		return userSS
	case wordFSBase:
		return r.FSBase
	case wordGSBase:
		return r.GSBase
	}
	if n < len(general) {
		return r.GPR[general[n]]
	}
	return 0 // DS, ES, FS, GS
}

// SetWord changes word n. EIO: it cannot have the value. Selectors are those of a 64-bit
// program and stay.
func (r *Registers) SetWord(n int, value uint64) unix.Errno {
	switch n {
	case wordOrigRAX:
		r.OrigRAX = value
	case wordRIP:
		r.RIP = value
	case wordFlags:
		r.RFLAGS = r.RFLAGS&^flagsMask | value&flagsMask
	case wordRSP:
		r.GPR[arch.RSP] = value
	case wordFSBase, wordGSBase:
		if value >= arch.UserEnd-arch.PageSize {
			return unix.EIO
		}
		if n == wordFSBase {
			r.FSBase = value
		} else {
			r.GSBase = value
		}
	default:
		if n >= len(general) {
			return r.checkSelector(n, value)
		}
		r.GPR[general[n]] = value
	}
	return 0
}

// checkSelector accepts the value that a selector has.
func (r *Registers) checkSelector(n int, value uint64) unix.Errno {
	if uint16(value) != uint16(r.Word(n)) {
		return unix.EIO
	}
	return 0
}

// Bytes is the structure.
func (r *Registers) Bytes() []byte {
	var b []byte
	for n := range Words {
		b = binary.LittleEndian.AppendUint64(b, r.Word(n))
	}
	return b
}

// SetBytes changes the first words, as many as b has. The words before a refused
// one are changed, as in Linux.
func (r *Registers) SetBytes(b []byte) unix.Errno {
	for n := 0; 8*n+8 <= len(b); n++ {
		if errno := r.SetWord(n, binary.LittleEndian.Uint64(b[8*n:])); errno != 0 {
			return errno
		}
	}
	return 0
}

// Parts of struct user (arch/x86/include/asm/user_64.h).
const (
	// UserSize is its size.
	UserSize = 928
	// DebugOffset is where it has the debug registers, 8 words.
	DebugOffset = 848
)
