package find

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// handlers follows which threads execute a handler of a signal. A signal can come before any instruction: what a handler and
// the code that it interrupts access is shared as if they were two threads. The kernel starts a handler between two
// quanta, after which the thread is not where it was before.
type handlers struct {
	threads map[arch.ThreadID]*interrupted
}

// interrupted is a thread: how many handlers it is in, and where it was last.
type interrupted struct {
	depth   int
	at      arch.Addr
	returns bool // from a handler, by its last system call
}

// begin begins an execution.
func (h *handlers) begin() { h.threads = map[arch.ThreadID]*interrupted{} }

// ended notes where a thread is at the end of a quantum, and the system call that it is about to make, or none.
func (h *handlers) ended(t arch.ThreadID, at arch.Addr, call uint64) {
	x := h.threads[t]
	if x == nil {
		x = &interrupted{}
		h.threads[t] = x
	}
	x.at, x.returns = at, call == unix.SYS_RT_SIGRETURN
}

// noCall is the number of no system call.
const noCall = 1 << 63

// starts notes where a thread is at the beginning of a quantum, and reports whether it is in a handler. A system call that
// a signal has interrupted may be made again.
func (h *handlers) starts(t arch.ThreadID, at arch.Addr) bool {
	x := h.threads[t]
	switch {
	case x == nil:
		return false
	case x.returns:
		x.depth = max(0, x.depth-1)
	case at != x.at && at != x.at-lengthOfSyscall:
		x.depth++
	}
	x.at, x.returns = at, false
	return x.depth > 0
}
