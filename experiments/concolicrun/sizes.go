package concolicrun

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// sizeTracker tracks the sizes of chosen files and how much of them was read: the size is a
// symbol, such as size(argv[2]), and results of reads are expressions of it.
type sizeTracker struct {
	pending map[arch.ThreadID]*sizeCall
	// offsets are the ends of the last reads of files.
	offsets map[string]fileOffset
}

// sizeCall is a pending system call about a chosen file.
type sizeCall struct {
	name string // in symbols
	size uint64
	at   int64 // the offset in the file at which it begins
	// count is the requested number of bytes.
	count *symbolic.Expr
}

// fileOffset is an offset in a file: the recorded one, and the one in a file that is long
// enough, which is the offset unless the file ends earlier.
type fileOffset struct {
	at   int64
	most *symbolic.Expr
}

func newSizeTracker() sizeTracker {
	return sizeTracker{pending: map[arch.ThreadID]*sizeCall{}, offsets: map[string]fileOffset{}}
}

// FileName returns the name of a file in symbols: the argument that names it or its folder, if one does.
func (o *Options) FileName(name string) string {
	for i, a := range o.Args {
		if i > 0 && o.Dir != "" && (a == name || filepath.Join(o.Dir, a) == name) {
			return fmt.Sprintf("argv[%d]", i)
		}
	}
	for _, i := range o.Folders {
		folder := o.Args[i]
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(o.Dir, folder)
		}
		rest, ok := strings.CutPrefix(name, filepath.Clean(folder)+"/")
		if ok && !strings.ContainsAny(rest, "[]()") && filepath.Clean(rest) == rest {
			return fmt.Sprintf("argv[%d]/%s", i, rest)
		}
	}
	return name
}

// chosenFile returns the chosen file that a descriptor refers to, or nil.
func (r *Recording) chosenFile(on *recorder.Recorder, t *kernel.Task, fd int32) *sizeCall {
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
	return &sizeCall{name: known, size: uint64(f.Inode().Size()), at: f.Offset}
}

// beginSizeCall records a system call whose result may depend on a file's size, or on how
// much was written.
func (r *Recording) beginSizeCall(on *recorder.Recorder, t *kernel.Task, e *event.Syscall) {
	var a *sizeCall
	switch e.Number {
	case unix.SYS_WRITE:
		a = &sizeCall{}
	case unix.SYS_READ, unix.SYS_READV, unix.SYS_FSTAT, unix.SYS_LSEEK:
		a = r.chosenFile(on, t, int32(e.Args[0]))
	case unix.SYS_PREAD64:
		if a = r.chosenFile(on, t, int32(e.Args[0])); a != nil {
			a.at = int64(e.Args[3])
		}
	case unix.SYS_NEWFSTATAT, unix.SYS_STATX:
		a = r.chosenPath(on, t, int32(e.Args[0]), e.Args[1])
	case unix.SYS_STAT, unix.SYS_LSTAT:
		a = r.chosenPath(on, t, unix.AT_FDCWD, e.Args[0])
	}
	if a != nil {
		a.count = r.Executor.SyscallArgument(t.ID(), 2)
		r.sizes.pending[t.ID()] = a
	}
}

// chosenPath returns the chosen file of a path in memory, or of a descriptor if the path is
// empty.
func (r *Recording) chosenPath(on *recorder.Recorder, t *kernel.Task, fd int32, at uint64) *sizeCall {
	b := make([]byte, unix.PathMax)
	n, _ := t.Space().ReadString(b, arch.Addr(at))
	name := strings.TrimSuffix(string(b[:n]), "\x00")
	if name == "" {
		return r.chosenFile(on, t, fd)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(r.folderOf(on, t, fd), name)
	}
	if r.options.Dir == "" || !r.options.Choose(&event.Input{Source: event.InputFile, Name: name}) {
		return nil
	}
	return &sizeCall{name: r.options.FileName(name)}
}

// folderOf returns the folder in which a relative path begins that a system call has with a descriptor.
func (r *Recording) folderOf(on *recorder.Recorder, t *kernel.Task, fd int32) string {
	p := on.Kernel().Proc().Process(t.Process().PID())
	if fd != unix.AT_FDCWD {
		f, _ := p.File(fd)
		if f == nil {
			return "/"
		}
		name, _, _ := f.MapName()
		return name
	}
	if d := p.Cwd(); d != nil && d != r.firstFolder {
		return d.Path()
	}
	return r.options.Dir
}

// endSizeCall makes the results of a system call that depend on a file's size expressions.
func (r *Recording) endSizeCall(t *kernel.Task, e *event.Syscall) {
	a := r.sizes.pending[t.ID()]
	delete(r.sizes.pending, t.ID())
	if a == nil || linux.Failed(e.Result) {
		return
	}
	switch e.Number {
	case unix.SYS_FSTAT, unix.SYS_STAT, unix.SYS_LSTAT:
		r.setStatSize(t, a.name, e.Args[1], linux.StatMode, linux.StatSize)
	case unix.SYS_NEWFSTATAT:
		r.setStatSize(t, a.name, e.Args[2], linux.StatMode, linux.StatSize)
	case unix.SYS_STATX:
		r.setStatSize(t, a.name, e.Args[4], linux.StatxMode, linux.StatxSize)
	case unix.SYS_LSEEK:
		r.followSeek(t, a, e)
	case unix.SYS_READ, unix.SYS_PREAD64:
		r.followRead(t, a, e)
	case unix.SYS_WRITE:
		// All requested bytes, unless a condition prevents it.
		if a.count != nil && e.Result == e.Args[2] && !a.count.IsConst() {
			r.Executor.SetResult(t.ID(), e.Result, a.count)
		}
	}
}

// setStatSize makes the size that the kernel has written a symbol, if it is that of a regular file. Mode and size are
// offsets in the struct.
func (r *Recording) setStatSize(t *kernel.Task, name string, structure, modeAt, sizeAt uint64) {
	var mode [2]byte
	var b [8]byte
	at := structure + sizeAt
	for _, part := range []struct {
		to []byte
		at uint64
	}{{mode[:], structure + modeAt}, {b[:], at}} {
		if n, _ := t.Space().ReadAt(part.to, arch.Addr(part.at)); n < len(part.to) {
			return
		}
	}
	if binary.LittleEndian.Uint16(mode[:])&unix.S_IFMT != unix.S_IFREG {
		return
	}
	size := binary.LittleEndian.Uint64(b[:])
	r.Executor.SetMemory(r.spaceNumber(t), at, r.sizeSymbol(name, size))
	r.addEvent(blocktrace.Event{Kind: blocktrace.Input, Thread: t.ID(), Space: r.spaceNumber(t), Addr: at, Size: 8, Name: sizeName(name)})
}

func sizeName(name string) string { return "size(" + name + ")" }

// contentName is the name of the bytes of a file, or of standard input, of which bytes are symbols.
func contentName(name string) string {
	if name == "stdin" {
		return name
	}
	return "file(" + name + ")"
}

// sizeSymbol is the size of a file as an expression.
func (r *Recording) sizeSymbol(name string, size uint64) *symbolic.Expr {
	return r.Executor.Symbol(sizeName(name), contentName(name), 64, size)
}

// readOffset is the offset at which a call begins in a file that is long enough.
func (r *Recording) readOffset(a *sizeCall) *symbolic.Expr {
	if o, known := r.sizes.offsets[a.name]; known && o.at == a.at {
		return o.most
	}
	return r.Executor.Pool.Word(uint64(a.at), 64)
}

// followSeek models lseek(2), which returns the size if it seeks to the end. A seek from
// the current offset continues from the last read.
func (r *Recording) followSeek(t *kernel.Task, a *sizeCall, e *event.Syscall) {
	p := r.Executor.Pool
	size := r.sizeSymbol(a.name, a.size)
	switch e.Args[2] {
	case unix.SEEK_END:
		r.Executor.SetResult(t.ID(), e.Result, p.Add(size, p.Word(e.Args[1], 64)))
	case unix.SEEK_CUR:
		if most := r.readOffset(a); !most.IsConst() || most.Value.Lo >= a.size && a.at > 0 {
			at := p.Ite(p.ULT(size, most), size, most)
			r.Executor.SetResult(t.ID(), e.Result, p.Add(at, p.Word(e.Args[1], 64)))
		}
		if e.Args[1] == 0 {
			return
		}
	}
	delete(r.sizes.offsets, a.name)
}

// followRead models read(2): it returns the requested number of bytes, or the rest of the
// file.
func (r *Recording) followRead(t *kernel.Task, a *sizeCall, e *event.Syscall) {
	p, at := r.Executor.Pool, r.readOffset(a)
	size, to := r.sizeSymbol(a.name, a.size), p.Add(at, a.count)
	part := p.Ite(p.ULT(size, to), p.Sub(size, at), a.count)
	if e.Number == unix.SYS_READ {
		r.sizes.offsets[a.name] = fileOffset{a.at + int64(e.Result), to}
	}
	r.Executor.SetResult(t.ID(), e.Result, p.Ite(p.ULT(at, size), part, p.Word(0, 64)))
}

// fileInputName returns the name of bytes read from a file, and their offset in it.
func (r *Recording) fileInputName(e *event.Input) (name string, first int) {
	if e.Source != event.InputStdin {
		return contentName(r.options.FileName(e.Name)), int(e.Offset)
	}
	if e.Offset < int64(r.streamed) {
		e.Offset = int64(r.streamed) // a stream has no offsets
	}
	r.streamed = int(e.Offset) + len(e.Data)
	return "stdin", int(e.Offset)
}
