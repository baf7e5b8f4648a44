package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// changeAttributes changes attributes of the object that a name refers to and notifies watches: of
// the events of mask, and of a change of mode that followed from it.
func changeAttributes(d *vfs.Dentry, mask uint32, change func(*vfs.Inode) unix.Errno) unix.Errno {
	i := d.Inode()
	mode := i.Mode()
	if errno := change(i); errno != 0 {
		return errno
	}
	if i.Mode() != mode {
		mask |= unix.IN_ATTRIB
	}
	if mask != 0 {
		d.Happen(mask)
	}
	return 0
}

func (t *Task) changeMode(d *vfs.Dentry, mode uint32) unix.Errno {
	return changeAttributes(d, unix.IN_ATTRIB, func(i *vfs.Inode) unix.Errno { return i.Chmod(t.vfsContext(), mode) })
}

func (t *Task) chmod(dirfd, addr, mode uint64) (uint64, unix.Errno) {
	d, errno := t.findObject(dirfd, addr, 0)
	if errno != 0 {
		return 0, errno
	}
	return 0, t.changeMode(d, uint32(mode))
}

func sysChmod(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.chmod(atCwd, a[0], a[1]) }

func sysFchmodat(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.chmod(a[0], a[1], a[2]) }

func sysFchmod(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, errno := t.usableFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	return 0, t.changeMode(f.Dentry(), uint32(a[1]))
}

func (t *Task) changeOwner(d *vfs.Dentry, uid, gid uint32) unix.Errno {
	mask := uint32(unix.IN_ATTRIB)
	if uid == vfs.KeepID && gid == vfs.KeepID {
		mask = 0
	}
	return changeAttributes(d, mask, func(i *vfs.Inode) unix.Errno { return i.Chown(t.vfsContext(), uid, gid) })
}

func (t *Task) chown(dirfd, addr, uid, gid uint64, flags uint32) (uint64, unix.Errno) {
	if flags&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0 {
		return 0, unix.EINVAL
	}
	d, errno := t.findObject(dirfd, addr, flags)
	if errno != 0 {
		return 0, errno
	}
	return 0, t.changeOwner(d, uint32(uid), uint32(gid))
}

func sysChown(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.chown(atCwd, a[0], a[1], a[2], 0) }

func sysLchown(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.chown(atCwd, a[0], a[1], a[2], unix.AT_SYMLINK_NOFOLLOW)
}

func sysFchownat(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.chown(a[0], a[1], a[2], a[3], uint32(a[4]))
}

func sysFchown(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, errno := t.usableFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	return 0, t.changeOwner(f.Dentry(), uint32(a[1]), uint32(a[2]))
}

// utimes sets times that are given as timespecs; nil means now.
func (t *Task) setFileTimes(dirfd, addr uint64, times *[2]unix.Timespec, flags uint32) (uint64, unix.Errno) {
	if times == nil {
		now := unix.Timespec{Nsec: unix.UTIME_NOW}
		times = &[2]unix.Timespec{now, now}
	}
	var d *vfs.Dentry
	if addr == 0 && int32(dirfd) != unix.AT_FDCWD {
		f, errno := t.usableFile(dirfd)
		if errno != 0 {
			return 0, errno
		}
		d = f.Dentry()
	} else {
		var errno unix.Errno
		if d, errno = t.findObject(dirfd, addr, flags); errno != 0 {
			return 0, errno
		}
	}
	return 0, changeAttributes(d, timesMask(times), func(i *vfs.Inode) unix.Errno {
		return i.Utimens(t.vfsContext(), times[0], times[1])
	})
}

// timesMask is the inotify event of setting times: IN_ATTRIB for both, IN_ACCESS or IN_MODIFY for
// one.
func timesMask(times *[2]unix.Timespec) uint32 {
	access, modification := times[0].Nsec != unix.UTIME_OMIT, times[1].Nsec != unix.UTIME_OMIT
	switch {
	case access && modification:
		return unix.IN_ATTRIB
	case access:
		return unix.IN_ACCESS
	case modification:
		return unix.IN_MODIFY
	}
	return 0
}

func sysUtimensat(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if uint32(a[3])&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0 {
		return 0, unix.EINVAL
	}
	if a[2] == 0 {
		return t.setFileTimes(a[0], a[1], nil, uint32(a[3]))
	}
	var times [2]unix.Timespec
	if errno := readStruct(t, arch.Addr(a[2]), &times); errno != 0 {
		return 0, errno
	}
	for _, ts := range times {
		special := ts.Nsec == unix.UTIME_NOW || ts.Nsec == unix.UTIME_OMIT
		if !special && (ts.Nsec < 0 || ts.Nsec >= second) {
			return 0, unix.EINVAL
		}
	}
	return t.setFileTimes(a[0], a[1], &times, uint32(a[3]))
}

func (t *Task) setTimevals(dirfd, addr, tv uint64) (uint64, unix.Errno) {
	if tv == 0 {
		return t.setFileTimes(dirfd, addr, nil, 0)
	}
	var values [2]unix.Timeval
	if errno := readStruct(t, arch.Addr(tv), &values); errno != 0 {
		return 0, errno
	}
	var times [2]unix.Timespec
	for i, v := range values {
		if v.Usec < 0 || v.Usec >= 1e6 {
			return 0, unix.EINVAL
		}
		times[i] = unix.Timespec{Sec: v.Sec, Nsec: v.Usec * microsecond}
	}
	return t.setFileTimes(dirfd, addr, &times, 0)
}

func sysUtimes(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.setTimevals(atCwd, a[0], a[1]) }

func sysFutimesat(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.setTimevals(a[0], a[1], a[2]) }

func sysUtime(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[1] == 0 {
		return t.setFileTimes(atCwd, a[0], nil, 0)
	}
	var seconds [2]int64
	if errno := readStruct(t, arch.Addr(a[1]), &seconds); errno != 0 {
		return 0, errno
	}
	return t.setFileTimes(atCwd, a[0], &[2]unix.Timespec{{Sec: seconds[0]}, {Sec: seconds[1]}}, 0)
}

func sysTruncate(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if int64(a[1]) < 0 {
		return 0, unix.EINVAL
	}
	d, errno := t.findFileToTruncate(a[0])
	if errno != 0 {
		return 0, errno
	}
	if errno := t.breakForTruncate(d); errno != 0 {
		return 0, errno
	}
	if errno := t.checkSizeLimit(d.Inode(), int64(a[1])); errno != 0 {
		return 0, errno
	}
	return 0, changeAttributes(d, unix.IN_MODIFY, func(i *vfs.Inode) unix.Errno {
		return i.Truncate(t.vfsContext(), int64(a[1]))
	})
}

// findFileToTruncate finds the file of a truncate call, at the call's first attempt.
func (t *Task) findFileToTruncate(path uint64) (*vfs.Dentry, unix.Errno) {
	if f := t.call.opened; f != nil {
		return f.Dentry(), 0
	}
	return t.findObject(atCwd, path, 0)
}

// breakForTruncate breaks the leases of a file that is to be truncated. Meanwhile the caller counts
// as a process that has the file open for writing. A file that must not be truncated is left to
// Truncate.
func (t *Task) breakForTruncate(d *vfs.Dentry) unix.Errno {
	f := t.call.opened
	if f == nil {
		if _, conflict := d.Inode().LeaseConflict(true); !conflict {
			return 0
		}
		var errno unix.Errno
		if f, errno = t.k.fs.OpenDentry(t.vfsContext(), d, unix.O_WRONLY); errno != 0 {
			return errno
		}
	}
	errno := t.breakLeases(f.Inode(), unix.O_WRONLY)
	if t.keepForRetry(f, errno); errno == 0 {
		t.call.opened = nil
		f.Unref()
	}
	return errno
}

// checkSizeLimit applies RLIMIT_FSIZE to a new size: above it, the thread is sent SIGXFSZ and the
// call fails with EFBIG.
func (t *Task) checkSizeLimit(i *vfs.Inode, size int64) unix.Errno {
	if limit := t.proc.limits[unix.RLIMIT_FSIZE].Cur; size > i.Size() && uint64(size) > limit {
		t.k.sendTask(t, signalInfo(unix.SIGXFSZ, siKernel))
		return unix.EFBIG
	}
	return 0
}

func sysFtruncate(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, errno := t.usableFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	if f.Writable() && f.Inode().IsRegular() {
		if errno := t.checkSizeLimit(f.Inode(), int64(a[1])); errno != 0 {
			return 0, errno
		}
	}
	return 0, changeAttributes(f.Dentry(), unix.IN_MODIFY, func(*vfs.Inode) unix.Errno {
		return f.Truncate(t.vfsContext(), int64(a[1]))
	})
}

func sysFallocate(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, errno := t.usableFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	mode, off, length := uint32(a[1]), int64(a[2]), int64(a[3])
	if errno := f.CheckAllocate(mode, off, length); errno != 0 {
		return 0, errno
	}
	if mode&unix.FALLOC_FL_KEEP_SIZE == 0 {
		if errno := t.checkSizeLimit(f.Inode(), off+length); errno != 0 {
			return 0, errno
		}
	}
	errno = f.Allocate(t.vfsContext(), mode, off, length)
	if errno == 0 {
		f.Dentry().Happen(unix.IN_MODIFY)
	}
	return 0, errno
}
