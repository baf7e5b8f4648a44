// Package oscalls has the results of system calls that depend on the calling thread alone, not on the schedule or on files.
package oscalls

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// Thread is what the calls depend on.
type Thread struct {
	// Process and ID are the numbers of the process and the thread.
	Process, ID uint64
	// Affinity is the set of the cores on which the thread may run.
	Affinity uint64
	// Signals is the thread's stack for signals, which the calls change.
	Signals *SignalStack
	// Write writes the thread's memory.
	Write func(addr uint64, b []byte)
	// Read reads it; false: some of it is not known.
	Read func(addr uint64, b []byte) bool
}

// SignalStack is a stack for signals (sigaltstack(2)).
type SignalStack struct {
	set  bool
	text [stackBytes]byte // the kernel's stack_t
	// Unknown says that the thread ran before it is followed, and has not set a stack since.
	Unknown bool
}

const (
	stackBytes  = 24 // of the kernel's stack_t
	flagsAt     = 8  // of ss_flags
	ssDisable   = 2
	affinitySet = 8 // bytes that sched_getaffinity returns
)

var (
	errNotKnown = errors.New("the argument of a system call depends on the schedule")
	errStack    = errors.New("sigaltstack asks for a stack that the thread set before the second thread was created, which is not supported")
	errOther    = errors.New("sched_getaffinity asks for another thread, which is not supported")
	errPrctl    = errors.New("prctl is called to do other than set the thread's name, which is not supported")
)

// Arguments has how many arguments matter of the calls that threads are followed through, those of symtrace included.
var Arguments = map[uint64]int{
	unix.SYS_SIGALTSTACK: 2, unix.SYS_SCHED_GETAFFINITY: 3, unix.SYS_PRCTL: 1,
	unix.SYS_WRITE: 3, unix.SYS_OPEN: 2, unix.SYS_OPENAT: 3, unix.SYS_CLOSE: 1, unix.SYS_READ: 3, unix.SYS_PREAD64: 4,
	unix.SYS_LSEEK: 3, unix.SYS_FSTAT: 2, unix.SYS_STAT: 2, unix.SYS_NEWFSTATAT: 4, unix.SYS_MMAP: 6, unix.SYS_PWRITE64: 4,
	unix.SYS_FCNTL: 3, unix.SYS_SOCKET: 3, unix.SYS_SOCKETPAIR: 4, unix.SYS_PIPE: 1, unix.SYS_PIPE2: 2, unix.SYS_CONNECT: 1,
	unix.SYS_ACCEPT: 1, unix.SYS_ACCEPT4: 1, unix.SYS_RECVFROM: 5, unix.SYS_SENDTO: 4, unix.SYS_SHUTDOWN: 2, unix.SYS_SETSOCKOPT: 1,
	unix.SYS_TIME: 1, unix.SYS_CLOCK_GETTIME: 2, unix.SYS_CLOCK_GETRES: 2, unix.SYS_GETTIMEOFDAY: 2,
	unix.SYS_POLL: 3, unix.SYS_PPOLL: 3, unix.SYS_SELECT: 5, unix.SYS_PSELECT6: 5, unix.SYS_KILL: 2, unix.SYS_TGKILL: 3, unix.SYS_RT_SIGTIMEDWAIT: 3,
}

// Result returns the result of a call with its arguments; false: this package does not have the call.
func (t *Thread) Result(number uint64, args *[6]uint64) (result uint64, is bool, err error) {
	switch number {
	case unix.SYS_SCHED_YIELD, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_MUNMAP, unix.SYS_MPROTECT,
		unix.SYS_MADVISE, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGACTION, unix.SYS_RSEQ, unix.SYS_SET_ROBUST_LIST:
		return 0, true, nil
	case unix.SYS_GETPID:
		return t.Process, true, nil
	case unix.SYS_GETTID:
		return t.ID, true, nil
	case unix.SYS_PRCTL:
		if args[0] != unix.PR_SET_NAME {
			return 0, true, errPrctl
		}
		return 0, true, nil
	case unix.SYS_SCHED_GETAFFINITY:
		result, err = t.affinity(args[0], args[1], args[2])
		return result, true, err
	case unix.SYS_SIGALTSTACK:
		return 0, true, t.exchangeStack(args[0], args[1])
	}
	return 0, false, nil
}

func (t *Thread) affinity(of, size, to uint64) (uint64, error) {
	switch {
	case of != 0 && of != t.ID:
		return 0, errOther
	case size < affinitySet || size%affinitySet != 0:
		invalid := unix.EINVAL
		return -uint64(invalid), nil
	}
	t.Write(to, binary.LittleEndian.AppendUint64(nil, t.Affinity))
	return affinitySet, nil
}

// exchangeStack writes the thread's stack for signals to old, and takes another from next; both may be 0.
func (t *Thread) exchangeStack(next, old uint64) error {
	s := t.Signals
	var wanted [stackBytes]byte
	if next != 0 && !t.Read(next, wanted[:]) {
		return errNotKnown
	}
	if old != 0 {
		if s.Unknown {
			return errStack
		}
		text := s.text
		if !s.set {
			binary.LittleEndian.PutUint32(text[flagsAt:], ssDisable)
		}
		t.Write(old, text[:])
	}
	if next != 0 {
		*s = SignalStack{set: binary.LittleEndian.Uint32(wanted[flagsAt:])&ssDisable == 0, text: wanted}
		if !s.set {
			s.text = [stackBytes]byte{}
		}
	}
	return nil
}
