package kernel

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
)

// maxShown is the most bytes shown of a string or buffer.
const maxShown = 32

// Trace formats a system call that the thread has just completed with the result ret, as strace(1)
// would print it.
func (t *Task) Trace(number uint64, args [linux.MaxArguments]uint64, ret uint64) string {
	return t.showCall(number, args) + " = " + linux.ResultText(ret)
}

// showCall formats a system call without its result.
func (t *Task) showCall(number uint64, args [linux.MaxArguments]uint64) string {
	name := linux.Name(number)
	if name == "" {
		name = "syscall_" + strconv.FormatUint(number, 10)
	}
	shown := make([]string, linux.Arity(number))
	for i := range shown {
		kind := linux.Word
		if c := linux.Lookup(number); c != nil {
			kind = c.Args[i].Kind
		}
		next := uint64(0)
		if i+1 < len(args) {
			next = args[i+1]
		}
		shown[i] = t.showArgument(kind, args[i], next)
	}
	return name + "(" + strings.Join(shown, ", ") + ")"
}

// showArgument formats an argument by its kind. A word is shown as an address if it is large and as
// a number otherwise.
func (t *Task) showArgument(kind linux.Kind, v, next uint64) string {
	switch kind {
	case linux.Descriptor:
		if int32(v) == unix.AT_FDCWD {
			return "AT_FDCWD"
		}
		return strconv.Itoa(int(int32(v)))
	case linux.String:
		return t.showBytes(v, unix.PathMax, true)
	case linux.Bytes:
		return t.showBytes(v, next, false)
	case linux.Number:
		if v>>32 == 0 {
			return strconv.Itoa(int(int32(v))) // most are of type int
		}
		return strconv.FormatInt(int64(v), 10)
	case linux.Octal:
		return fmt.Sprintf("%#o", v)
	case linux.Mask:
		return fmt.Sprintf("%#x", v)
	}
	switch {
	case v == 0 && kind == linux.Pointer:
		return "NULL"
	case v < 1<<16 && kind != linux.Pointer:
		return strconv.FormatUint(v, 10)
	}
	return fmt.Sprintf("%#x", v)
}

// showBytes quotes the guest memory at an address: a string, or the given number of bytes of a
// buffer. Only the first bytes are shown.
func (t *Task) showBytes(addr, size uint64, text bool) string {
	if t.proc.space == nil {
		return fmt.Sprintf("%#x", addr)
	}
	// Only resident memory is read: a trace must not change the run.
	if text {
		b := make([]byte, size)
		n, _ := t.proc.space.Space().ReadString(b, arch.Addr(addr))
		if n == 0 || b[n-1] != 0 {
			return fmt.Sprintf("%#x", addr)
		}
		return strconv.Quote(string(b[:n-1]))
	}
	b := make([]byte, min(size, maxShown))
	n, _ := t.proc.space.Space().ReadAt(b, arch.Addr(addr))
	if n == 0 && size > 0 {
		return fmt.Sprintf("%#x", addr)
	}
	quoted := strconv.Quote(string(b[:n]))
	if uint64(n) < size {
		quoted += "..."
	}
	return quoted
}
