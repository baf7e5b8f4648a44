package recorder

import (
	"encoding/binary"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Inputs is the Recording of the guest's input from outside of its memory:
// the arguments and the environment, with their addresses, at the start; then
// the data that system calls read, by its source.
type Inputs struct {
	Nothing
	to      *trace.Stream
	watch   func(*event.Input) // if not nil, called instead of writing to the stream
	args    int                // how many arguments and variables
	env     int
	begun   bool
	pending map[arch.ThreadID]origin
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
	return &Inputs{to: w.Stream(trace.Inputs, 0), args: len(args), env: len(env), pending: map[arch.ThreadID]origin{}}
}

// WatchInputs returns an Inputs that calls a function for each input and writes nothing.
func WatchInputs(args, env []string, watch func(*event.Input)) *Inputs {
	return &Inputs{watch: watch, args: len(args), env: len(env), pending: map[arch.ThreadID]origin{}}
}

// maxPiece is the most bytes of one event: larger inputs are several.
const maxPiece = 64 << 10

// Open implements Recording: the arguments are those of the program's start alone.
func (v *Inputs) Open(*Recorder) { v.begun = true }

// Begin implements Recording: at the first call, the stack holds the program's
// arguments and environment.
func (v *Inputs) Begin(r *Recorder, t *kernel.Task) {
	if v.begun {
		return
	}
	v.begun = true
	var regs arch.Regs
	r.CPU().Regs(&regs)
	at := arch.Addr(regs.GPR[arch.RSP]) + 8 // after the number of arguments
	for i := range v.args {
		v.recordString(r, t, event.InputArgs, i, at)
		at += 8
	}
	at += 8
	for i := range v.env {
		v.recordString(r, t, event.InputEnv, i, at)
		at += 8
	}
	v.auxiliary(r, t, at+8)
}

// recordString records the string that a pointer on the stack points to.
func (v *Inputs) recordString(r *Recorder, t *kernel.Task, source event.InputSource, n int, pointer arch.Addr) {
	addr := arch.Addr(readWord(t, pointer))
	b := make([]byte, linux.MaxArgumentBytes)
	size, _ := t.Process().Space().Space().ReadString(b, addr)
	v.writeInput(r, event.Input{Source: source, FD: -1, Offset: int64(n), Addr: addr, Size: uint64(size), Data: b[:size]})
}

// auxiliary records the random bytes that the auxiliary vector points to.
func (v *Inputs) auxiliary(r *Recorder, t *kernel.Task, at arch.Addr) {
	const maxEntries = 64
	for range maxEntries {
		switch key := readWord(t, at); key {
		case linux.AuxNull:
			return
		case linux.AuxRandom:
			addr := arch.Addr(readWord(t, at+8))
			v.writeInput(r, event.Input{
				Source: event.InputRandom, FD: -1, Addr: addr, Size: linux.RandomBytes, Data: readResident(t, addr, linux.RandomBytes),
			})
		}
		at += 16
	}
}

// readResident reads only resident pages, and so changes nothing: a system call has just
// written them.
func readResident(t *kernel.Task, addr arch.Addr, size uint64) []byte {
	b := make([]byte, size)
	n, _ := t.Process().Space().Space().ReadAt(b, addr)
	return b[:n]
}

func readWord(t *kernel.Task, addr arch.Addr) uint64 {
	b := readResident(t, addr, 8)
	if len(b) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (v *Inputs) writeInput(r *Recorder, e event.Input) {
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
	call := linux.Lookup(e.Number)
	if call == nil || call.Traits&linux.BringsInput == 0 || call.Descriptor() < 0 {
		return
	}
	o, ok := v.describeDescriptor(r, t, int32(e.Args[call.Descriptor()]))
	if !ok {
		return
	}
	if at := call.Offset(); at >= 0 {
		o.offset = int64(e.Args[at])
	}
	if call.Traits&linux.MapsFile != 0 {
		o.source = event.InputMap
	}
	v.pending[e.Thread] = o
}

// describeDescriptor looks a descriptor up.
func (v *Inputs) describeDescriptor(r *Recorder, t *kernel.Task, fd int32) (origin, bool) {
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
	call := linux.Lookup(e.Number)
	if call == nil || call.Traits&linux.BringsInput == 0 || linux.Failed(e.Result) || t.Process().Space() == nil {
		return
	}
	if !has {
		if call.Descriptor() >= 0 {
			return
		}
		o = origin{source: sourceOfCall(call), fd: -1}
	}
	at := call.Output()
	if at < 0 { // mmap
		v.writeInput(r, event.Input{
			Source: o.source, Syscall: e.Number, FD: o.fd, Name: o.name, Offset: o.offset, Addr: arch.Addr(e.Result), Size: e.Args[1],
		})
		return
	}
	v.recordOutput(r, t, e, o, &call.Args[at], arch.Addr(e.Args[at]), e.Args[min(at+1, len(e.Args)-1)])
}

// recordOutput records the bytes that a call has written at an address; the argument next says how many or how.
func (v *Inputs) recordOutput(r *Recorder, t *kernel.Task, e *event.Syscall, o origin, to *linux.Argument, addr arch.Addr, next uint64) {
	size := e.Result
	switch to.Output {
	case linux.OutputVector:
		v.recordVector(r, t, e, o, addr, next, size)
		return
	case linux.OutputHeader:
		v.recordMessage(r, t, e, o, addr, size)
		return
	case linux.OutputHeaders:
		for i := range size {
			header := addr + arch.Addr(i*linux.SizeofMmsghdr)
			v.recordMessage(r, t, e, o, header, readWord(t, header+linux.SizeofMsghdr)&0xffffffff)
		}
		return
	case linux.OutputMessage:
		size += 8 // the type comes first
	case linux.OutputFixed:
		size = uint64(to.Size)
	}
	if addr != 0 {
		v.recordBytes(r, t, e, o, addr, size)
	} else if e.Number == unix.SYS_TIME { // the result has it
		v.writeInput(r, event.Input{
			Source: o.source, Syscall: e.Number, FD: -1, Size: size, Data: binary.LittleEndian.AppendUint64(nil, e.Result),
		})
	}
}

// sourceOfCall says where a call without a descriptor brings input from: clocks, random numbers, or
// System V messages.
func sourceOfCall(call *linux.Call) event.InputSource {
	switch {
	case call.Traits&linux.TimeDependent != 0:
		return event.InputTime
	case call.Number == unix.SYS_GETRANDOM:
		return event.InputRandom
	}
	return event.InputOther
}

// recordBytes records size bytes at an address, in pieces.
func (v *Inputs) recordBytes(r *Recorder, t *kernel.Task, e *event.Syscall, o origin, addr arch.Addr, size uint64) {
	for done := uint64(0); done < size; done += maxPiece {
		n := min(size-done, maxPiece)
		v.writeInput(r, event.Input{
			Source: o.source, Syscall: e.Number, FD: o.fd, Name: o.name, Offset: o.offset + int64(done),
			Addr: addr + arch.Addr(done), Size: n, Data: readResident(t, addr+arch.Addr(done), n),
		})
	}
}

// recordVector records the bytes that were read into the buffers of an iovec, readv(2).
func (v *Inputs) recordVector(r *Recorder, t *kernel.Task, e *event.Syscall, o origin, iov arch.Addr, pieces, size uint64) {
	for range min(pieces, linux.MaxVector) {
		if size == 0 {
			return
		}
		base, room := readWord(t, iov), readWord(t, iov+8)
		n := min(room, size)
		v.recordBytes(r, t, e, o, arch.Addr(base), n)
		o.offset += int64(n)
		size -= n
		iov += linux.SizeofIovec
	}
}

// recordMessage records the bytes that recvmsg received.
func (v *Inputs) recordMessage(r *Recorder, t *kernel.Task, e *event.Syscall, o origin, header arch.Addr, size uint64) {
	v.recordVector(r, t, e, o, arch.Addr(readWord(t, header+linux.MsghdrVector)), readWord(t, header+linux.MsghdrPieces), size)
}

// Exit implements Recording.
func (v *Inputs) Exit(_ *Recorder, e *event.Exit) { delete(v.pending, e.Thread) }
