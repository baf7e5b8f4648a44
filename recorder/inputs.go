package recorder

import (
	"encoding/binary"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Inputs is the Recording of what the guest gets from outside of its memory:
// the arguments and the environment, with their addresses, at the start; then
// what system calls bring, by what they brought it from.
type Inputs struct {
	Nothing
	to      *trace.Stream
	watch   func(*event.Input) // nil, or who is told in place of the stream
	args    int                // how many arguments and variables
	env     int
	begun   bool
	pending map[event.ThreadID]origin
}

// origin is the descriptor of a system call that is under way.
type origin struct {
	source event.InputSource
	fd     int32
	name   string
	offset int64
}

// NewInputs makes the recording, for a program with its arguments and
// environment.
func NewInputs(w *trace.Writer, args, env []string) *Inputs {
	return &Inputs{to: w.Stream(trace.Inputs, 0), args: len(args), env: len(env), pending: map[event.ThreadID]origin{}}
}

// WatchInputs makes one that tells a function of each input and writes nothing.
func WatchInputs(args, env []string, watch func(*event.Input)) *Inputs {
	return &Inputs{watch: watch, args: len(args), env: len(env), pending: map[event.ThreadID]origin{}}
}

// maxPiece is the most bytes of one event: larger inputs are several.
const maxPiece = 64 << 10

// Begin implements Recording: the first time, the stack has what the program is
// given.
func (v *Inputs) Begin(r *Recorder, t *kernel.Task) {
	if v.begun {
		return
	}
	v.begun = true
	var regs emu.Regs
	r.CPU().Regs(&regs)
	at := event.Addr(regs.GPR[emu.RSP]) + 8 // behind the number of arguments
	for i := range v.args {
		v.text(r, t, event.InputArgs, i, at)
		at += 8
	}
	at += 8
	for i := range v.env {
		v.text(r, t, event.InputEnv, i, at)
		at += 8
	}
	v.auxiliary(r, t, at+8)
}

// text records the string that a pointer on the stack points to.
func (v *Inputs) text(r *Recorder, t *kernel.Task, source event.InputSource, n int, pointer event.Addr) {
	addr := event.Addr(word(t, pointer))
	b := make([]byte, maxText)
	size, _ := t.Process().Space().Space().ReadString(b, addr)
	v.put(r, event.Input{Source: source, FD: -1, Offset: int64(n), Addr: addr, Size: uint64(size), Data: b[:size]})
}

// maxText is more than an argument can have (MAX_ARG_STRLEN of execve(2)).
const maxText = 128 << 10

// auxiliary records the random bytes that the auxiliary vector points to.
func (v *Inputs) auxiliary(r *Recorder, t *kernel.Task, at event.Addr) {
	const atRandom, randomSize, maxEntries = 25, 16, 64
	for range maxEntries {
		switch key := word(t, at); key {
		case 0:
			return
		case atRandom:
			addr := event.Addr(word(t, at+8))
			v.put(r, event.Input{
				Source: event.InputRandom, FD: -1, Addr: addr, Size: randomSize, Data: memory(t, addr, randomSize),
			})
		}
		at += 16
	}
}

// memory reads what is resident, and so changes nothing: a system call has just
// written it.
func memory(t *kernel.Task, addr event.Addr, size uint64) []byte {
	b := make([]byte, size)
	n, _ := t.Process().Space().Space().ReadAt(b, addr)
	return b[:n]
}

func word(t *kernel.Task, addr event.Addr) uint64 {
	b := memory(t, addr, 8)
	if len(b) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (v *Inputs) put(r *Recorder, e event.Input) {
	e.Stamp = r.Next()
	if v.watch != nil {
		v.watch(&e)
		return
	}
	trace.Put(v.to, &e)
}

// Issue implements Recording: the descriptor may be closed when the call
// returns.
func (v *Inputs) Issue(r *Recorder, t *kernel.Task, e *event.Syscall) {
	switch e.Number {
	case unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_READV, unix.SYS_PREADV, unix.SYS_PREADV2, unix.SYS_RECVFROM,
		unix.SYS_RECVMSG, unix.SYS_RECVMMSG, unix.SYS_GETDENTS64, unix.SYS_MMAP, unix.SYS_MQ_TIMEDRECEIVE:
	default:
		return
	}
	fd := int32(e.Args[0])
	if e.Number == unix.SYS_MMAP {
		fd = int32(e.Args[4])
	}
	o, ok := v.describe(r, t, fd)
	if !ok {
		return
	}
	switch e.Number {
	case unix.SYS_PREAD64, unix.SYS_PREADV, unix.SYS_PREADV2:
		o.offset = int64(e.Args[3])
	case unix.SYS_MMAP:
		o.source, o.offset = event.InputMap, int64(e.Args[5])
	}
	v.pending[e.Thread] = o
}

// describe looks a descriptor up.
func (v *Inputs) describe(r *Recorder, t *kernel.Task, fd int32) (origin, bool) {
	f, _ := r.Kernel().Proc().Process(t.Process().PID()).File(fd)
	if f == nil {
		return origin{}, false
	}
	name, _, _ := f.MapName()
	o := origin{source: event.InputOther, fd: fd, name: name, offset: f.Offset}
	switch f.Inode().Mode() & unix.S_IFMT {
	case unix.S_IFREG:
		o.source = event.InputFile
	case unix.S_IFIFO:
		o.source = event.InputPipe
	case unix.S_IFSOCK:
		o.source = event.InputSocket
	case unix.S_IFCHR:
		if strings.HasSuffix(name, "random") {
			o.source = event.InputRandom
		}
	}
	if f.Inode().IsQueue() {
		o.source = event.InputOther
	}
	if f.IsStdin() {
		o.source = event.InputStdin
	}
	return o, true
}

// Return implements Recording.
func (v *Inputs) Return(r *Recorder, t *kernel.Task, e *event.Syscall) {
	o, has := v.pending[e.Thread]
	delete(v.pending, e.Thread)
	n := int64(e.Result)
	if n < 0 && n >= -4095 || t.Process().Space() == nil {
		return
	}
	if !has {
		v.undescribed(r, t, e)
		return
	}
	a := e.Args
	switch e.Number {
	case unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_RECVFROM, unix.SYS_GETDENTS64, unix.SYS_MQ_TIMEDRECEIVE:
		v.data(r, t, e, o, event.Addr(a[1]), uint64(n))
	case unix.SYS_READV, unix.SYS_PREADV, unix.SYS_PREADV2:
		v.scattered(r, t, e, o, event.Addr(a[1]), a[2], uint64(n))
	case unix.SYS_RECVMSG:
		v.message(r, t, e, o, event.Addr(a[1]), uint64(n))
	case unix.SYS_RECVMMSG:
		for i := range uint64(n) {
			header := event.Addr(a[1] + i*mmsgSize)
			v.message(r, t, e, o, header, word(t, header+msgSize)&0xffffffff)
		}
	case unix.SYS_MMAP:
		v.put(r, event.Input{
			Source: o.source, Syscall: e.Number, FD: o.fd, Name: o.name, Offset: o.offset, Addr: event.Addr(n), Size: a[1],
		})
	}
}

// Sizes of struct msghdr and struct mmsghdr, recvmmsg(2).
const (
	msgSize  = 56
	mmsgSize = 64
)

// undescribed records inputs that no descriptor brings: clocks, random numbers and
// System V messages.
func (v *Inputs) undescribed(r *Recorder, t *kernel.Task, e *event.Syscall) {
	source, addr, size := event.InputTime, e.Args[0], uint64(16)
	switch e.Number {
	case unix.SYS_GETRANDOM:
		source, size = event.InputRandom, e.Result
	case unix.SYS_CLOCK_GETTIME:
		addr = e.Args[1]
	case unix.SYS_GETTIMEOFDAY:
	case unix.SYS_TIME:
		size = 8
		if addr == 0 {
			// The result has it.
			v.put(r, event.Input{Source: source, Syscall: e.Number, FD: -1, Size: size, Data: binary.LittleEndian.AppendUint64(nil, e.Result)})
			return
		}
	case unix.SYS_TIMES:
		size = 32
	case unix.SYS_MSGRCV:
		source, addr, size = event.InputOther, e.Args[1], 8+e.Result // the type comes first
	default:
		return
	}
	if addr != 0 {
		v.data(r, t, e, origin{source: source, fd: -1}, event.Addr(addr), size)
	}
}

// data records size bytes at an address, in pieces.
func (v *Inputs) data(r *Recorder, t *kernel.Task, e *event.Syscall, o origin, addr event.Addr, size uint64) {
	for done := uint64(0); done < size; done += maxPiece {
		n := min(size-done, maxPiece)
		v.put(r, event.Input{
			Source: o.source, Syscall: e.Number, FD: o.fd, Name: o.name, Offset: o.offset + int64(done),
			Addr: addr + event.Addr(done), Size: n, Data: memory(t, addr+event.Addr(done), n),
		})
	}
}

// scattered records what went to the pieces of an iovec, readv(2).
func (v *Inputs) scattered(r *Recorder, t *kernel.Task, e *event.Syscall, o origin, iov event.Addr, pieces, size uint64) {
	for range min(pieces, maxPieces) {
		if size == 0 {
			return
		}
		base, room := word(t, iov), word(t, iov+8)
		n := min(room, size)
		v.data(r, t, e, o, event.Addr(base), n)
		o.offset += int64(n)
		size -= n
		iov += 16
	}
}

// maxPieces is the most pieces that readv takes.
const maxPieces = 1024

// message records what recvmsg received: msg_iov and msg_iovlen are 16 bytes
// into the header.
func (v *Inputs) message(r *Recorder, t *kernel.Task, e *event.Syscall, o origin, header event.Addr, size uint64) {
	v.scattered(r, t, e, o, event.Addr(word(t, header+16)), word(t, header+24), size)
}

// Exit implements Recording.
func (v *Inputs) Exit(_ *Recorder, e *event.Exit) { delete(v.pending, e.Thread) }
