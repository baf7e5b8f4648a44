package epoch

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// mostSent bounds how much of the data that one call sends is read, and mostBuffers how many of its buffers.
const (
	mostSent    = 1 << 20
	mostBuffers = 1024 // IOV_MAX, writev(2)
)

// Sizes and offsets of struct iovec and struct msghdr (readv(2), sendmsg(2)).
const (
	iovecBytes      = 16
	messageName     = 0
	messageNameSize = 8
	messageBuffers  = 16
	messageControl  = 32
	messageBytes    = 56
	sentMessage     = 64 // struct mmsghdr
)

// sumOutput adds the output of a system call to the sum of its thread: what it writes or sends, to which descriptor and to which
// place. Of a call that moves data from one descriptor to another it is from where, and how much: the data were
// the output of calls before, or are equal files.
func (t *tap) sumOutput(task *kernel.Task, e *event.Syscall) {
	o := outputSum{h: xxh3.New(), process: task.Process(), left: mostSent}
	o.addNumbers(t.sent[e.Thread], e.Number)
	a := &e.Args
	switch e.Number {
	case unix.SYS_WRITE:
		o.addNumbers(a[0])
		o.addBytes(a[1], a[2])
	case unix.SYS_PWRITE64:
		o.addNumbers(a[0], a[3])
		o.addBytes(a[1], a[2])
	case unix.SYS_SENDTO:
		o.addNumbers(a[0])
		o.addBytes(a[1], a[2])
		o.addBytes(a[4], uint64(uint32(a[5])))
	case unix.SYS_WRITEV, unix.SYS_VMSPLICE:
		o.addNumbers(a[0])
		o.addBuffers(a[1], a[2])
	case unix.SYS_PWRITEV, unix.SYS_PWRITEV2:
		o.addNumbers(a[0], a[3], a[4])
		o.addBuffers(a[1], a[2])
	case unix.SYS_SENDMSG:
		o.addNumbers(a[0])
		o.addMessage(a[1])
	case unix.SYS_SENDMMSG:
		o.addNumbers(a[0])
		for i := range min(uint64(uint32(a[2])), mostBuffers) {
			o.addMessage(a[1] + i*sentMessage)
		}
	case unix.SYS_SENDFILE:
		o.addNumbers(a[0], a[1], a[3], o.numberAt(a[2]))
	case unix.SYS_SPLICE, unix.SYS_COPY_FILE_RANGE:
		o.addNumbers(a[0], o.numberAt(a[1]), a[2], o.numberAt(a[3]), a[4])
	case unix.SYS_TEE:
		o.addNumbers(a[0], a[1], a[2])
	default:
		return
	}
	t.sent[e.Thread] = o.h.Sum64()
}

// outputSum sums up the output of a system call, up to a number of bytes.
type outputSum struct {
	h       *xxh3.Hasher
	process *kernel.Process
	left    uint64
}

func (o *outputSum) addNumbers(list ...uint64) {
	for _, n := range list {
		_, _ = o.h.Write(binary.LittleEndian.AppendUint64(nil, n))
	}
}

// addBytes adds bytes of memory. Those that are not mapped end it, as they end the call.
func (o *outputSum) addBytes(at, size uint64) {
	b := make([]byte, min(size, o.left))
	n := o.process.Peek(arch.Addr(at), b)
	o.left -= uint64(n)
	o.addNumbers(size)
	_, _ = o.h.Write(b[:n])
}

// numberAt is the number at an address, or 0.
func (o *outputSum) numberAt(at uint64) uint64 {
	var b [8]byte
	if at == 0 || o.process.Peek(arch.Addr(at), b[:]) < len(b) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// addBuffers adds the contents of buffers.
func (o *outputSum) addBuffers(at, count uint64) {
	for i := range min(count, mostBuffers) {
		buffer := at + i*iovecBytes
		o.addBytes(o.numberAt(buffer), o.numberAt(buffer+iovecBytes/2))
	}
}

// addMessage adds a message: the receiver, the data, and what goes with them.
func (o *outputSum) addMessage(at uint64) {
	var b [messageBytes]byte
	if at == 0 || o.process.Peek(arch.Addr(at), b[:]) < len(b) {
		return
	}
	number := func(offset int) uint64 { return binary.LittleEndian.Uint64(b[offset:]) }
	o.addBytes(number(messageName), uint64(binary.LittleEndian.Uint32(b[messageNameSize:])))
	o.addBuffers(number(messageBuffers), number(messageBuffers+8))
	o.addBytes(number(messageControl), number(messageControl+8))
}
