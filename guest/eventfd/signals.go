package eventfd

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// Source is where signals wait: those of the thread that makes the present
// system call and of its process, as signalfd(2) says.
type Source interface {
	// PendingSignals is the set of pending signals; bit n-1 is signal n.
	PendingSignals() uint64
	// TakeSignal removes the next signal of the set.
	TakeSignal(set uint64) (Siginfo, bool)
	// SignalQueue is woken when a signal has come.
	SignalQueue() *wait.Queue
}

// Siginfo is a siginfo_t.
type Siginfo = [128]byte

// Signals is the object of signalfd(2).
type Signals struct {
	source Source
	set    uint64
}

// NewSignals makes an object that takes the signals of the set.
func NewSignals(s Source, set uint64) *Signals { return &Signals{source: s, set: set} }

// SetMask changes the set. Threads that wait for the old set are woken.
func (s *Signals) SetMask(set uint64) {
	s.set = set
	s.source.SignalQueue().Wake(wait.AnyEvent)
}

// infoSize is the size of struct signalfd_siginfo.
const infoSize = 128

// Read implements vfs.FileImpl: it takes as many signals as wait and as p has
// room for. EINVAL: it has no room for one; EAGAIN: none waits.
func (s *Signals) Read(_ *vfs.Ctx, p []byte, _ int64) (int, unix.Errno) {
	if len(p) < infoSize {
		return 0, unix.EINVAL
	}
	n := 0
	for len(p)-n >= infoSize {
		info, ok := s.source.TakeSignal(s.set)
		if !ok {
			break
		}
		out := convert(&info)
		n += copy(p[n:], out[:])
	}
	if n == 0 {
		return 0, unix.EAGAIN
	}
	return n, 0
}

// Write implements vfs.FileImpl; there is nothing to write.
func (s *Signals) Write(*vfs.Ctx, []byte, int64) (int, unix.Errno) { return 0, unix.EINVAL }

// Ready implements vfs.Poller.
func (s *Signals) Ready() uint32 {
	if s.source.PendingSignals()&s.set != 0 {
		return unix.EPOLLIN
	}
	return 0
}

// Waiters implements vfs.Poller.
func (s *Signals) Waiters() *wait.Queue { return s.source.SignalQueue() }

// Values of si_code (include/uapi/asm-generic/siginfo.h).
const (
	codeTimer  = -2   // SI_TIMER
	codeKernel = 0x80 // SI_KERNEL
)

// convert makes a struct signalfd_siginfo of a siginfo_t, as
// signalfd_copyinfo of Linux does: which fields mean something depends on the
// signal and on where it came from.
func convert(info *Siginfo) (out [infoSize]byte) {
	get := func(at int) uint32 { return binary.LittleEndian.Uint32(info[at:]) }
	put := func(at int, x uint32) { binary.LittleEndian.PutUint32(out[at:], x) }
	move := func(to, from int) { copy(out[to:to+8], info[from:from+8]) }
	signal, code := unix.Signal(get(0)), int32(get(8))
	put(0, uint32(signal)) // ssi_signo
	put(4, get(4))         // ssi_errno
	put(8, uint32(code))   // ssi_code
	switch {
	case code == codeTimer:
		put(24, get(16)) // ssi_tid: the timer's id
		put(32, get(20)) // ssi_overrun
		move(48, 24)     // ssi_ptr
		put(44, get(24)) // ssi_int
	case code < 0:
		put(12, get(16)) // ssi_pid
		put(16, get(20)) // ssi_uid
		move(48, 24)     // ssi_ptr
		put(44, get(24)) // ssi_int
	case code == 0 || code >= codeKernel:
		put(12, get(16))
		put(16, get(20))
	case signal == unix.SIGCHLD:
		put(12, get(16))
		put(16, get(20))
		put(40, get(24)) // ssi_status
		move(56, 32)     // ssi_utime
		move(64, 40)     // ssi_stime
	case signal == unix.SIGILL, signal == unix.SIGFPE, signal == unix.SIGSEGV, signal == unix.SIGBUS, signal == unix.SIGTRAP:
		move(72, 16) // ssi_addr
	default: // as of SIGPOLL
		put(28, get(16)) // ssi_band
		put(20, get(24)) // ssi_fd
	}
	return out
}
