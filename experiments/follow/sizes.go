package follow

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/path"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// sizes follows how long chosen files are, and how much of them was read: the size is
// a symbol, size(argv[2]) and so on, and results of reads are expressions of it.
type sizes struct {
	pending map[event.ThreadID]*asked
	// offsets say where in a file the last read ended.
	offsets map[string]offset
}

// asked is a system call about a chosen file that is under way.
type asked struct {
	name string // as symbols have it
	size uint64
	at   int64 // where in the file it begins
	// count is how many bytes are asked for.
	count *symbolic.Expr
}

// offset is a place in a file: what it was, and where it would be in a file that is
// long enough, which is where it is unless the file ends before.
type offset struct {
	at   int64
	most *symbolic.Expr
}

func newSizes() sizes {
	return sizes{pending: map[event.ThreadID]*asked{}, offsets: map[string]offset{}}
}

// FileName is what symbols call a file: by the argument that names it, if one does.
func (o *Options) FileName(name string) string {
	for i, a := range o.Args {
		if i > 0 && o.Dir != "" && (a == name || filepath.Join(o.Dir, a) == name) {
			return fmt.Sprintf("argv[%d]", i)
		}
	}
	return name
}

// open is the chosen file that a descriptor stands for, or nil.
func (r *Recording) open(on *recorder.Recorder, t *kernel.Task, fd int32) *asked {
	f, _ := on.Kernel().Proc().Process(t.Process().PID()).File(fd)
	if f == nil || f.Inode().Mode()&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	name, _, _ := f.MapName()
	e := event.Input{Source: event.InputFile, Name: name}
	known := r.options.FileName(name)
	if name == r.options.Stdin {
		e.Source, known = event.InputStdin, "stdin"
	}
	if !r.options.Choose(&e) {
		return nil
	}
	return &asked{name: known, size: uint64(f.Inode().Size()), at: f.Offset}
}

// ask notes a system call that is about to say something of a file's size, or of how
// much was written.
func (r *Recording) ask(on *recorder.Recorder, t *kernel.Task, e *event.Syscall) {
	var a *asked
	switch e.Number {
	case unix.SYS_WRITE:
		a = &asked{}
	case unix.SYS_READ, unix.SYS_READV, unix.SYS_FSTAT, unix.SYS_LSEEK:
		a = r.open(on, t, int32(e.Args[0]))
	case unix.SYS_PREAD64:
		if a = r.open(on, t, int32(e.Args[0])); a != nil {
			a.at = int64(e.Args[3])
		}
	case unix.SYS_NEWFSTATAT, unix.SYS_STATX:
		a = r.named(on, t, int32(e.Args[0]), e.Args[1])
	case unix.SYS_STAT, unix.SYS_LSTAT:
		a = r.named(on, t, unix.AT_FDCWD, e.Args[0])
	}
	if a != nil {
		a.count = r.Executor.Argument(t.ID(), 2)
		r.sizes.pending[t.ID()] = a
	}
}

// named is the chosen file of a path in memory, or of a descriptor if that is empty.
func (r *Recording) named(on *recorder.Recorder, t *kernel.Task, fd int32, at uint64) *asked {
	b := make([]byte, unix.PathMax)
	n, _ := t.Space().ReadString(b, event.Addr(at))
	name := strings.TrimSuffix(string(b[:n]), "\x00")
	if name == "" {
		return r.open(on, t, fd)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(r.options.Dir, name)
	}
	if r.options.Dir == "" || fd != unix.AT_FDCWD || !r.options.Choose(&event.Input{Source: event.InputFile, Name: name}) {
		return nil
	}
	return &asked{name: r.options.FileName(name)}
}

// Where struct stat and struct statx have the size, stat(2) and statx(2).
const (
	statSize  = 48
	statxSize = 40
)

// tell makes what a system call has said of a file's size expressions.
func (r *Recording) tell(t *kernel.Task, e *event.Syscall) {
	a := r.sizes.pending[t.ID()]
	delete(r.sizes.pending, t.ID())
	if a == nil || int64(e.Result) < 0 && int64(e.Result) > -4096 {
		return
	}
	switch e.Number {
	case unix.SYS_FSTAT, unix.SYS_STAT, unix.SYS_LSTAT:
		r.stat(t, a.name, e.Args[1]+statSize)
	case unix.SYS_NEWFSTATAT:
		r.stat(t, a.name, e.Args[2]+statSize)
	case unix.SYS_STATX:
		r.stat(t, a.name, e.Args[4]+statxSize)
	case unix.SYS_LSEEK:
		r.seek(t, a, e)
	case unix.SYS_READ, unix.SYS_PREAD64:
		r.read(t, a, e)
	case unix.SYS_WRITE:
		// All that was asked for, as long as nothing stands against it.
		if a.count != nil && e.Result == e.Args[2] && !a.count.IsConst() {
			r.Executor.Result(t.ID(), e.Result, a.count)
		}
	}
}

// stat makes the size that the kernel has written a symbol.
func (r *Recording) stat(t *kernel.Task, name string, at uint64) {
	var b [8]byte
	if n, _ := t.Space().ReadAt(b[:], event.Addr(at)); n < len(b) {
		return
	}
	size := uint64(0)
	for i, x := range b {
		size |= uint64(x) << (8 * i)
	}
	symbol := sizeOf(name)
	r.Executor.Written(r.space(t), at, r.Executor.Symbol(symbol, 64, size))
	r.event(path.Event{Kind: path.Input, Thread: t.ID(), Space: r.space(t), Addr: at, Size: 8, Name: symbol})
}

func sizeOf(name string) string { return "size(" + name + ")" }

// reach is where in a file that is long enough a call begins.
func (r *Recording) reach(a *asked) *symbolic.Expr {
	if o, known := r.sizes.offsets[a.name]; known && o.at == a.at {
		return o.most
	}
	return r.Executor.Pool.Word(uint64(a.at), 64)
}

// seek is about lseek(2), which tells the size if it goes to the end. Where it stays
// is told as by the last read.
func (r *Recording) seek(t *kernel.Task, a *asked, e *event.Syscall) {
	p := r.Executor.Pool
	size := r.Executor.Symbol(sizeOf(a.name), 64, a.size)
	switch e.Args[2] {
	case unix.SEEK_END:
		r.Executor.Result(t.ID(), e.Result, p.Add(size, p.Word(e.Args[1], 64)))
	case unix.SEEK_CUR:
		if most := r.reach(a); !most.IsConst() || most.Value.Lo >= a.size && a.at > 0 {
			at := p.Ite(p.ULT(size, most), size, most)
			r.Executor.Result(t.ID(), e.Result, p.Add(at, p.Word(e.Args[1], 64)))
		}
		if e.Args[1] == 0 {
			return
		}
	}
	delete(r.sizes.offsets, a.name)
}

// read is about read(2): it brings what was asked for, or what there is.
func (r *Recording) read(t *kernel.Task, a *asked, e *event.Syscall) {
	p, at := r.Executor.Pool, r.reach(a)
	size, to := r.Executor.Symbol(sizeOf(a.name), 64, a.size), p.Add(at, a.count)
	part := p.Ite(p.ULT(size, to), p.Sub(size, at), a.count)
	if e.Number == unix.SYS_READ {
		r.sizes.offsets[a.name] = offset{a.at + int64(e.Result), to}
	}
	r.Executor.Result(t.ID(), e.Result, p.Ite(p.ULT(at, size), part, p.Word(0, 64)))
}

// fileInput is the name of what was read of a file, and where in it that begins.
func (r *Recording) fileInput(e *event.Input) (name string, first int) {
	if e.Source != event.InputStdin {
		return "file(" + r.options.FileName(e.Name) + ")", int(e.Offset)
	}
	if e.Offset < int64(r.streamed) {
		e.Offset = int64(r.streamed) // a stream has no offsets
	}
	r.streamed = int(e.Offset) + len(e.Data)
	return "stdin", int(e.Offset)
}
