package kernel

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
)

// Shortage is the first request of a run that could not be met for want of memory. One
// that a process died of takes the place of one that was refused.
type Shortage struct {
	Program string // path
	Process int32
	Request string // a system call, or an access
	Killed  bool
	Errno   unix.Errno // if it was refused
	Bound   MemoryBound
}

// MemoryBound is what a request met.
type MemoryBound int

// The bounds. All depend on the size of guest memory.
const (
	// BoundMemory is that of guest memory itself.
	BoundMemory MemoryBound = iota
	// BoundPromise is that of a single request.
	BoundPromise
	// BoundKernel is that of what the kernel keeps.
	BoundKernel
)

// Shortage returns the first request that could not be met; Request is empty if all
// were.
func (k *Kernel) Shortage() Shortage { return k.shortage }

// accessNames are an access in words.
var accessNames = map[arch.Access]string{
	arch.AccessRead: "a read", arch.AccessWrite: "a write", arch.AccessFetch: "an instruction",
}

// callText is the system call under way with its arguments.
func (t *Task) callText() string { return t.showCall(t.call.number, t.call.args) }

// outOfMemory is the kernel's last resort: the thread's process is killed.
func (k *Kernel) outOfMemory(t *Task, request string) {
	if !k.shortage.Killed {
		k.shortage = Shortage{Program: t.proc.path, Process: t.proc.pid, Request: request, Killed: true}
	}
	k.killProcess(t.proc, int(unix.SIGKILL))
}

// outOfKernelMemory is how calls fail for which the kernel would have to keep too much.
var outOfKernelMemory = []unix.Errno{unix.EAGAIN, unix.ENOMEM, unix.ENFILE, unix.ENOBUFS, unix.ENOSPC}

// noteRefusal keeps the system call that has just been carried out if it failed for want
// of memory.
func (t *Task) noteRefusal(errno unix.Errno) {
	promise, kernel := t.proc.space.TakeRefused(), t.k.memory.TakeRefused()
	if t.k.shortage.Request != "" {
		return
	}
	bound := BoundMemory
	switch {
	case promise:
		bound, errno = BoundPromise, unix.ENOMEM // which brk does not return
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

// PromiseBytes is for how much memory a single request may be on a machine with so much.
func PromiseBytes(memory uint64) uint64 { return max(memory, mm.CommitLimit) }
