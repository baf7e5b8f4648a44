package kernel

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Structures of the ABI are Go structs of the same layout, because guest and host are both x86-64.

func (t *Task) copyIn(addr arch.Addr, b []byte) unix.Errno { return t.proc.space.CopyIn(addr, b) }

func (t *Task) copyOut(addr arch.Addr, b []byte) unix.Errno { return t.proc.space.CopyOut(addr, b) }

// bytesOf is the memory of *p.
func bytesOf[T any](p *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), unsafe.Sizeof(*p))
}

// decodeStruct makes a T from its bytes in memory.
func decodeStruct[T any](b []byte) (out T) {
	copy(bytesOf(&out), b)
	return out
}

func readStruct[T any](t *Task, addr arch.Addr, to *T) unix.Errno {
	return t.copyIn(addr, bytesOf(to))
}

func writeStruct[T any](t *Task, addr arch.Addr, from *T) unix.Errno {
	return t.copyOut(addr, bytesOf(from))
}

// writeValue stores a structure at an address argument of a system call.
func writeValue[T any](t *Task, addr uint64, value T) unix.Errno {
	return writeStruct(t, arch.Addr(addr), &value)
}

func putU32(b []byte, v uint32) { binary.LittleEndian.PutUint32(b, v) }

func putU64(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }

const (
	second      = int64(1e9)
	microsecond = int64(1e3)
)

// timespecToNS is the duration of ts; EINVAL for an invalid one.
func timespecToNS(ts unix.Timespec) (int64, unix.Errno) {
	if ts.Sec < 0 || ts.Nsec < 0 || ts.Nsec >= second {
		return 0, unix.EINVAL
	}
	if ts.Sec > forever/second-1 {
		return forever, 0
	}
	return ts.Sec*second + ts.Nsec, 0
}

func (t *Task) readTimespec(addr arch.Addr) (int64, unix.Errno) {
	var ts unix.Timespec
	if errno := readStruct(t, addr, &ts); errno != 0 {
		return 0, errno
	}
	return timespecToNS(ts)
}

func (t *Task) writeTimespec(addr arch.Addr, ns int64) unix.Errno {
	ts := unix.NsecToTimespec(ns)
	return writeStruct(t, addr, &ts)
}

func (t *Task) readTimeval(addr arch.Addr) (int64, unix.Errno) {
	var tv unix.Timeval
	if errno := readStruct(t, addr, &tv); errno != 0 {
		return 0, errno
	}
	if tv.Usec < 0 || tv.Usec >= 1e6 || tv.Sec < 0 {
		return 0, unix.EINVAL
	}
	return timespecToNS(unix.Timespec{Sec: tv.Sec, Nsec: tv.Usec * microsecond})
}

// readPath reads a path argument.
func (t *Task) readPath(addr uint64) (string, unix.Errno) {
	s, errno := t.proc.space.ReadCString(arch.Addr(addr), unix.PathMax)
	return s, errno
}
