// Package errname gives errnos a text form: their names, such as ENOSPC.
package errname

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Name is an errno whose text form is its name.
type Name unix.Errno

func (e Name) String() string { return unix.ErrnoName(unix.Errno(e)) }

// MarshalText implements encoding.TextMarshaler.
func (e Name) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (e *Name) UnmarshalText(text []byte) error {
	for n := unix.Errno(1); n <= last; n++ {
		if unix.ErrnoName(n) == string(text) {
			*e = Name(n)
			return nil
		}
	}
	return fmt.Errorf("errno is %q; allowed: a name of errno(3)", text)
}

// last is the greatest errno of Linux.
const last = unix.EHWPOISON

// OfHost returns the errno of a failure on the host that the guest is to see. It is EIO for an error without an errno,
// and for an errno that asks for the call to be repeated, which would never end.
func OfHost(err error) Name {
	var errno unix.Errno
	if errors.As(err, &errno) && errno != unix.EAGAIN && errno != unix.EINTR {
		return Name(errno)
	}
	return Name(unix.EIO)
}
