package kernel

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Extended attributes: no file has one and none can be given, as on a file
// system that is mounted without. What a caller does wrong comes first.

// Limits of include/uapi/linux/limits.h.
const (
	xattrNameMax = 255
	xattrSizeMax = 65536
)

// xattrName reads the name of an attribute. EOPNOTSUPP: it is in no namespace
// that Linux knows.
func (t *Task) xattrName(addr uint64) unix.Errno {
	name, errno := t.proc.space.ReadCString(event.Addr(addr), xattrNameMax+1)
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

// getXattr is what is left of reading an attribute when its file was found.
func (t *Task) getXattr(name uint64) unix.Errno {
	if errno := t.xattrName(name); errno != 0 {
		return errno
	}
	return unix.ENODATA
}

func sysGetxattr(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if _, errno := t.object(atCwd, a[0], 0); errno != 0 {
		return 0, errno
	}
	return 0, t.getXattr(a[1])
}

func sysLgetxattr(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if _, errno := t.object(atCwd, a[0], unix.AT_SYMLINK_NOFOLLOW); errno != 0 {
		return 0, errno
	}
	return 0, t.getXattr(a[1])
}

func sysFgetxattr(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if _, errno := t.plainFile(a[0]); errno != 0 {
		return 0, errno
	}
	return 0, t.getXattr(a[1])
}

func sysListxattr(t *Task, a [6]uint64) (uint64, unix.Errno) {
	_, errno := t.object(atCwd, a[0], 0)
	return 0, errno
}

func sysLlistxattr(t *Task, a [6]uint64) (uint64, unix.Errno) {
	_, errno := t.object(atCwd, a[0], unix.AT_SYMLINK_NOFOLLOW)
	return 0, errno
}

func sysFlistxattr(t *Task, a [6]uint64) (uint64, unix.Errno) {
	_, errno := t.plainFile(a[0])
	return 0, errno
}

// setXattr is what is left of setting an attribute when its file was found;
// arguments are from the name on.
func (t *Task) setXattr(name, value, size, flags uint64) unix.Errno {
	if uint32(flags)&^(unix.XATTR_CREATE|unix.XATTR_REPLACE) != 0 {
		return unix.EINVAL
	}
	if errno := t.xattrName(name); errno != 0 && errno != unix.EOPNOTSUPP {
		return errno
	}
	if size > xattrSizeMax {
		return unix.E2BIG
	}
	if errno := t.copyIn(event.Addr(value), make([]byte, size)); errno != 0 {
		return errno
	}
	return unix.EOPNOTSUPP
}

func sysSetxattr(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if _, errno := t.object(atCwd, a[0], 0); errno != 0 {
		return 0, errno
	}
	return 0, t.setXattr(a[1], a[2], a[3], a[4])
}

func sysLsetxattr(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if _, errno := t.object(atCwd, a[0], unix.AT_SYMLINK_NOFOLLOW); errno != 0 {
		return 0, errno
	}
	return 0, t.setXattr(a[1], a[2], a[3], a[4])
}

func sysFsetxattr(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if _, errno := t.plainFile(a[0]); errno != 0 {
		return 0, errno
	}
	return 0, t.setXattr(a[1], a[2], a[3], a[4])
}

// removeXattr is what is left of removing an attribute when its file was found.
func (t *Task) removeXattr(name uint64) unix.Errno {
	if errno := t.xattrName(name); errno != 0 {
		return errno
	}
	return unix.ENODATA
}

func sysRemovexattr(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if _, errno := t.object(atCwd, a[0], 0); errno != 0 {
		return 0, errno
	}
	return 0, t.removeXattr(a[1])
}

func sysLremovexattr(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if _, errno := t.object(atCwd, a[0], unix.AT_SYMLINK_NOFOLLOW); errno != 0 {
		return 0, errno
	}
	return 0, t.removeXattr(a[1])
}

func sysFremovexattr(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if _, errno := t.plainFile(a[0]); errno != 0 {
		return 0, errno
	}
	return 0, t.removeXattr(a[1])
}
