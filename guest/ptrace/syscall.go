package ptrace

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/linux"
)

// SyscallOp is the kind of a stop at a system call.
type SyscallOp uint8

// Kinds (PTRACE_SYSCALL_INFO_NONE and so on).
const (
	SyscallNone SyscallOp = iota
	SyscallEntry
	SyscallExit
	SyscallSeccomp
)

// SyscallInfo is the result of PTRACE_GET_SYSCALL_INFO.
type SyscallInfo struct {
	Op      SyscallOp
	IP, SP  uint64
	Number  uint64    // at entry and seccomp
	Args    [6]uint64 // likewise
	Result  uint64    // at exit: the raw result
	RetData uint32    // at seccomp: the filter's data
}

// Bytes is struct ptrace_syscall_info as far as the kind of stop fills it.
func (s *SyscallInfo) Bytes() []byte {
	b := make([]byte, 24)
	b[0] = byte(s.Op)
	binary.LittleEndian.PutUint32(b[4:], unix.AUDIT_ARCH_X86_64)
	binary.LittleEndian.PutUint64(b[8:], s.IP)
	binary.LittleEndian.PutUint64(b[16:], s.SP)
	switch s.Op {
	case SyscallEntry, SyscallSeccomp:
		b = binary.LittleEndian.AppendUint64(b, s.Number)
		for _, a := range s.Args {
			b = binary.LittleEndian.AppendUint64(b, a)
		}
		if s.Op == SyscallSeccomp {
			b = binary.LittleEndian.AppendUint32(b, s.RetData)
		}
	case SyscallExit:
		b = binary.LittleEndian.AppendUint64(b, s.Result)
		failed := byte(0)
		if linux.Failed(s.Result) {
			failed = 1
		}
		b = append(b, failed)
	}
	return b
}
