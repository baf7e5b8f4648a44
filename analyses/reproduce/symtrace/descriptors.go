package symtrace

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/vex"
)

// descriptor is what the number of a file stands for. Numbers are given out for good,
// and by thread, so that one that comes from another thread is known in the next
// round at the latest.
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
	// fresh is a socket that is not connected.
	fresh
	stream
)

// describe gives out the number of a descriptor.
func (w *walker) describe(d descriptor) uint64 {
	n := firstDescriptor + descriptors*uint64(w.number) + w.opened
	w.opened++
	w.b.descriptors[n] = d
	return n
}

// describedCall is a call about a descriptor that is no file that is read.
func (w *walker) describedCall(number uint64, d descriptor, args *[6]uint64) error {
	switch {
	case number == unix.SYS_FCNTL:
		return w.control(d, args)
	case number == unix.SYS_CLOSE && d.kind != stream:
		return w.over(0)
	case d.kind == scratch:
		return w.scratchCall(number, args)
	case d.kind != scratch && number == unix.SYS_CONNECT:
		return w.connect(args[0])
	case number == unix.SYS_SETSOCKOPT:
		return w.over(0)
	case d.kind == stream:
		return w.streamCall(number, d, args)
	}
	return meaningless(number)
}

func meaningless(number uint64) error {
	return fmt.Errorf("system call %d has no meaning between the threads' begin and the failure", number)
}

// control is fcntl(2), as far as it asks or says nothing that matters.
func (w *walker) control(d descriptor, args *[6]uint64) error {
	switch args[1] {
	case unix.F_GETFL:
		return w.over(d.flags)
	case unix.F_GETFD, unix.F_SETFD:
		return w.over(0)
	}
	return fmt.Errorf("fcntl %d has no meaning", args[1])
}

// over ends a system call with a result.
func (w *walker) over(result uint64) error {
	w.calling = false
	w.setRegister(vex.OffsetRAX, w.b.pool.Word(result, 64))
	return nil
}
