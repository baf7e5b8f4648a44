package symtrace

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/guest/linux"
)

// descriptor is the meaning of a file descriptor. Numbers are never reused, and each thread has a
// range of its own, so that a number that one thread gets from another is known in the next pass at
// the latest.
type descriptor struct {
	kind descriptorKind
	// connection is the number of a stream's connection, and side which end it is.
	connection, side uint64
	flags            uint64 // as open(2) was given
}

type descriptorKind uint8

const (
	// scratch is a file without a name that is written and read.
	scratch descriptorKind = iota
	// unconnected is a socket that is not connected.
	unconnected
	stream
)

// newDescriptor gives out the number of a descriptor.
func (w *threadExec) newDescriptor(d descriptor) uint64 {
	n := firstDescriptor + descriptors*uint64(w.number) + w.openedCount
	w.openedCount++
	w.pass.descriptors[n] = d
	return n
}

// descriptorCall is a call about a descriptor that is no file that is read.
func (w *threadExec) descriptorCall(number uint64, d descriptor, args *[6]uint64) error {
	switch {
	case number == unix.SYS_FCNTL:
		return w.fcntlCall(d, args)
	case number == unix.SYS_CLOSE && d.kind != stream:
		return w.completeSyscall(0)
	case d.kind == scratch:
		return w.scratchCall(number, args)
	case d.kind != scratch && number == unix.SYS_CONNECT:
		return w.connectStream(args[0])
	case number == unix.SYS_SETSOCKOPT:
		return w.completeSyscall(0)
	case d.kind == stream:
		return w.streamCall(number, d, args)
	}
	return errNoMeaning(number)
}

func errNoMeaning(number uint64) error {
	return fmt.Errorf("%s is called after the second thread was created, which is not supported", linux.NameOrNumber(number))
}

// fcntlCall is fcntl(2), as far as it asks or says nothing that matters.
func (w *threadExec) fcntlCall(d descriptor, args *[6]uint64) error {
	switch args[1] {
	case unix.F_GETFL:
		return w.completeSyscall(d.flags)
	case unix.F_GETFD, unix.F_SETFD:
		return w.completeSyscall(0)
	}
	return fmt.Errorf("fcntl is called with the command %d, which is not supported", args[1])
}

// completeSyscall ends a system call with a result.
func (w *threadExec) completeSyscall(result uint64) error {
	w.inSyscall = false
	w.setRegister(vex.OffsetRAX, w.pass.pool.Word(result, 64))
	return nil
}
