package kernel

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
)

// Shortage is the first request of a run that failed for lack of memory. A request that killed a
// process replaces one that was refused.
type Shortage struct {
	Program string // path
	Process int32
	Request string // a system call, or an access
	Killed  bool
	Errno   unix.Errno // if it was refused
	Bound   MemoryBound
}

// Text says which request was the first that could not be met for want of memory; "": all were. The guest has maxMemory
// bytes.
func (s *Shortage) Text(maxMemory uint64) string {
	if s.Request == "" {
		return ""
	}
	who := fmt.Sprintf("%s (process %d)", s.Program, s.Process)
	if s.Killed {
		return fmt.Sprintf("%s was killed for %s: guest memory is used up; --max-memory allows more", who, s.Request)
	}
	return fmt.Sprintf("%s was refused %s (%s): %s", who, s.Request, unix.ErrnoName(s.Errno), s.Bound.text(maxMemory))
}

func (b MemoryBound) text(maxMemory uint64) string {
	const gib = 1 << 30
	switch b {
	case BoundPromise:
		return fmt.Sprintf("one request may be for %d GiB at most, or for --max-memory if that is more", PromiseBytes(maxMemory)/gib)
	case BoundKernel:
		return "what the kernel keeps for programs takes all that it may, an eighth of --max-memory"
	}
	return "guest memory is used up; --max-memory allows more"
}

// MemoryBound is the bound that a request exceeded.
type MemoryBound int

// The bounds. All depend on the size of guest memory.
const (
	// BoundMemory is the size of guest memory.
	BoundMemory MemoryBound = iota
	// BoundPromise is the bound of a single request.
	BoundPromise
	// BoundKernel is the bound of the kernel's own objects.
	BoundKernel
)

// Shortage returns the first request that failed; Request is empty if none did.
func (k *Kernel) Shortage() Shortage { return k.shortage }

// accessNames describe kinds of accesses.
var accessNames = map[arch.Access]string{
	arch.AccessRead: "a read", arch.AccessWrite: "a write", arch.AccessFetch: "an instruction",
}

// callText is the current system call with its arguments.
func (t *Task) callText() string { return t.showCall(t.call.number, t.call.args) }

// outOfMemory kills the thread's process, as Linux does when it has no other way to free memory.
func (k *Kernel) outOfMemory(t *Task, request string) {
	if !k.shortage.Killed {
		k.shortage = Shortage{Program: t.proc.path, Process: t.proc.pid, Request: request, Killed: true}
	}
	k.killProcess(t.proc, int(unix.SIGKILL))
}

// outOfKernelMemory are the errors of calls whose kernel objects would exceed the bound.
var outOfKernelMemory = []unix.Errno{unix.EAGAIN, unix.ENOMEM, unix.ENFILE, unix.ENOBUFS, unix.ENOSPC}

// noteRefusal records the system call that has just been carried out if it failed for lack of
// memory.
func (t *Task) noteRefusal(errno unix.Errno) {
	promise, kernel := t.proc.space.TakeRefused(), t.k.memory.TakeRefused()
	if t.k.shortage.Request != "" {
		return
	}
	bound := BoundMemory
	switch {
	case promise:
		bound, errno = BoundPromise, unix.ENOMEM // brk does not return it
	case errno == 0, errno >= errRestart:
		return
	case kernel && slices.Contains(outOfKernelMemory, errno):
		bound = BoundKernel
	case errno == unix.ENOSPC && t.k.fs.Full(), errno == unix.ENOMEM && t.k.ram.Full():
	default:
		return
	}
	t.k.shortage = Shortage{Program: t.proc.path, Process: t.proc.pid, Request: t.callText(), Errno: errno, Bound: bound}
}

// PromiseBytes is the most memory that a single request may ask for on a machine with the given
// memory.
func PromiseBytes(memory uint64) uint64 { return max(memory, mm.CommitLimit) }
