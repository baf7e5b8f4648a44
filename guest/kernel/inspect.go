package kernel

import (
	"bytes"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/loader"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// Read-only access for debuggers.

// Registers reads the registers with which the thread will continue, and its floating-point and SSE
// state. The thread is loaded afterwards.
func (t *Task) Registers(r *arch.Regs, fp *[arch.FPSize]byte) {
	t.Load()
	t.k.cpu.FP(fp)
	if t.dirty {
		*r = t.regs
		return
	}
	t.k.cpu.Regs(r)
}

// YMMHigh reads the upper halves of the thread's YMM registers; false: the processor has none. The
// thread is loaded afterwards.
func (t *Task) YMMHigh(halves *[arch.YMMHighSize]byte) bool {
	t.Load()
	t.k.cpu.YMMHigh(halves)
	return t.k.hasXSAVE()
}

// Call returns the number of the system call that the thread is in.
func (t *Task) Call() (number uint64, ok bool) { return t.call.number, t.call.active }

// Argument returns argument n, counted from 0, of the system call that the thread is in.
func (t *Task) Argument(n int) uint64 { return t.call.args[n] }

// Auxv is the auxiliary vector that the program was started with.
func (p *Process) Auxv() []byte { return p.space.Layout.Auxv }

// Executable is the path of the process's program, as /proc/PID/exe shows it.
func (p *Process) Executable() string { return p.binary.Dentry().Path() }

// Process finds a process of the program by its id, or returns nil.
func (k *Kernel) Process(pid int32) *Process {
	if p := k.processes[pid]; p != nil && !p.outside {
		return p
	}
	return nil
}

// Peek copies memory for a debugger; see mm.AddressSpace.Peek.
func (p *Process) Peek(at arch.Addr, b []byte) int { return p.space.Peek(at, b) }

// FileContent reads the regular file that the thread would open under a name, and its struct stat.
// It is for a machine that does not continue, because opening a file is an input of the run.
func (t *Task) FileContent(name string) (content, stat []byte, errno unix.Errno) {
	f, errno := t.k.fs.Open(t.vfsContext(), nil, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if errno != 0 {
		return nil, nil, errno
	}
	defer f.Unref()
	s := f.Inode().Stat()
	if s.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, nil, unix.EINVAL
	}
	content = make([]byte, s.Size)
	n, errno := f.Pread(t.vfsContext(), content, 0)
	return content[:n], bytes.Clone(bytesOf(&s)), errno
}

// Places finds the functions on the stack of a thread of the process; see
// loader.Unwinder.Places.
func (p *Process) Places(u *loader.Unwinder, r arch.Regs, limit int) []loader.Place {
	return u.Places(p.space, r, limit)
}

// ListeningPort returns the TCP port of the server's end of a connection; false: the file is no socket of TCP.
func ListeningPort(f *vfs.File) (port uint16, ok bool) {
	s, ok := f.Impl.(*socketFile)
	if !ok {
		return 0, false
	}
	return s.LocalPort()
}
