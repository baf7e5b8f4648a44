package kernel

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Extended attributes: no file has one and none can be set, as on a file system without them.
// Errors in the arguments are reported first.

// Limits of include/uapi/linux/limits.h.
const (
	xattrNameMax = 255
	xattrSizeMax = 65536
)

// xattrName reads the name of an attribute. EOPNOTSUPP: it is in no namespace that Linux knows.
func (t *Task) xattrName(addr uint64) unix.Errno {
	name, errno := t.proc.space.ReadCString(arch.Addr(addr), xattrNameMax+1)
	if errno == unix.ENAMETOOLONG || errno == 0 && name == "" {
		return unix.ERANGE
	}
	if errno != 0 {
		return errno
	}
	namespaces := []string{"user.", "trusted.", "security.", "system."}
	if !slices.ContainsFunc(namespaces, func(n string) bool { return strings.HasPrefix(name, n) }) {
		return unix.EOPNOTSUPP
	}
	return 0
}

// A call on attributes has three forms, which differ in the way the file is named: xattrByPath
// follows a symbolic link, xattrByLink does not, xattrByDescriptor takes a descriptor. The
// operation on the file is the same.

type onFile func(t *Task, args [6]uint64) unix.Errno

func xattrByPath(do onFile) handler {
	return func(t *Task, a [6]uint64) (uint64, unix.Errno) {
		if _, errno := t.findObject(atCwd, a[0], 0); errno != 0 {
			return 0, errno
		}
		return 0, do(t, a)
	}
}

func xattrByLink(do onFile) handler {
	return func(t *Task, a [6]uint64) (uint64, unix.Errno) {
		if _, errno := t.findObject(atCwd, a[0], unix.AT_SYMLINK_NOFOLLOW); errno != 0 {
			return 0, errno
		}
		return 0, do(t, a)
	}
}

func xattrByDescriptor(do onFile) handler {
	return func(t *Task, a [6]uint64) (uint64, unix.Errno) {
		if _, errno := t.usableFile(a[0]); errno != 0 {
			return 0, errno
		}
		return 0, do(t, a)
	}
}

// findMissingXattr reads or removes an attribute; there is none.
func findMissingXattr(t *Task, a [6]uint64) unix.Errno {
	if errno := t.xattrName(a[1]); errno != 0 {
		return errno
	}
	return unix.ENODATA
}

// listXattrs lists attributes: the list is empty.
func listXattrs(*Task, [6]uint64) unix.Errno { return 0 }

func setXattr(t *Task, a [6]uint64) unix.Errno {
	value, size, flags := arch.Addr(a[2]), a[3], uint32(a[4])
	if flags&^(unix.XATTR_CREATE|unix.XATTR_REPLACE) != 0 {
		return unix.EINVAL
	}
	if errno := t.xattrName(a[1]); errno != 0 && errno != unix.EOPNOTSUPP {
		return errno
	}
	if size > xattrSizeMax {
		return unix.E2BIG
	}
	if errno := t.copyIn(value, make([]byte, size)); errno != 0 {
		return errno
	}
	return unix.EOPNOTSUPP
}
