package vfs

import (
	"math"

	"golang.org/x/sys/unix"
)

// maxFile is the largest size of a file.
const maxFile = math.MaxInt64

const nsPerSec = 1_000_000_000

// mayAlter checks that attributes of the inode can be changed.
func (i *Inode) mayAlter() unix.Errno {
	switch {
	case i.super.ReadOnly:
		return unix.EROFS
	case i.node != nil:
		return unix.EPERM
	}
	return 0
}

// Chmod changes the permissions; see fchmodat(2).
func (i *Inode) Chmod(c *Ctx, mode uint32) unix.Errno {
	if i.IsSymlink() {
		return unix.EOPNOTSUPP
	}
	if errno := i.mayAlter(); errno != 0 {
		return errno
	}
	if !c.Cred.isOwner(i) {
		return unix.EPERM
	}
	if !c.Cred.Can(CapFsetid) && !c.Cred.inGroup(i.gid) {
		mode &^= unix.S_ISGID
	}
	i.mode = i.mode&unix.S_IFMT | mode&0o7777
	i.touchMeta()
	return 0
}

// KeepID stands for an id that Chown does not change.
const KeepID = ^uint32(0)

// Chown changes user and group; see fchownat(2).
func (i *Inode) Chown(c *Ctx, uid, gid uint32) unix.Errno {
	if errno := i.mayAlter(); errno != 0 {
		return errno
	}
	drop := uint32(0)
	if !i.IsDir() {
		drop = i.lostPrivileges(&c.Cred)
	}
	if !c.Cred.Can(CapChown) {
		owner := c.Cred.FSUID == i.uid
		if drop != 0 && !owner {
			return unix.EPERM
		}
		if uid != KeepID && !(owner && uid == i.uid) || gid != KeepID && !(owner && (c.Cred.inGroup(gid) || gid == i.gid)) {
			return unix.EPERM
		}
	}
	if uid != KeepID {
		i.uid = uid
	}
	if gid != KeepID {
		i.gid = gid
	}
	i.mode &^= drop
	i.touchMeta()
	return 0
}

// Utimens sets the times of last access and modification; see utimensat(2).
// The nanoseconds may be unix.UTIME_NOW or unix.UTIME_OMIT.
func (i *Inode) Utimens(c *Ctx, atime, mtime unix.Timespec) unix.Errno {
	for _, t := range []unix.Timespec{atime, mtime} {
		if t.Nsec != unix.UTIME_NOW && t.Nsec != unix.UTIME_OMIT && (t.Nsec < 0 || t.Nsec >= nsPerSec) {
			return unix.EINVAL
		}
	}
	if atime.Nsec == unix.UTIME_OMIT && mtime.Nsec == unix.UTIME_OMIT {
		return 0
	}
	if errno := i.mayAlter(); errno != 0 {
		return errno
	}
	if !c.Cred.isOwner(i) {
		if atime.Nsec != unix.UTIME_NOW || mtime.Nsec != unix.UTIME_NOW {
			return unix.EPERM
		}
		if errno := c.Cred.mayAccess(i, MayWrite); errno != 0 {
			return errno
		}
	}
	now := i.fs.currentTime()
	i.atime = newTime(i.atime, now, atime)
	i.mtime = newTime(i.mtime, now, mtime)
	i.timesSet = true
	i.touchMeta()
	return 0
}

// newTime is the new value of a time. A time that 64-bit nanoseconds cannot represent
// becomes the nearest that they can.
func newTime(old, now int64, t unix.Timespec) int64 {
	switch {
	case t.Nsec == unix.UTIME_OMIT:
		return old
	case t.Nsec == unix.UTIME_NOW:
		return now
	case t.Sec >= math.MaxInt64/nsPerSec:
		return math.MaxInt64
	case t.Sec <= math.MinInt64/nsPerSec:
		return math.MinInt64
	}
	return t.Sec*nsPerSec + t.Nsec
}

// Truncate sets the size of a regular file found by its path; see truncate(2).
func (i *Inode) Truncate(c *Ctx, size int64) unix.Errno {
	switch {
	case size < 0:
		return unix.EINVAL
	case i.IsDir():
		return unix.EISDIR
	case !i.IsRegular():
		return unix.EINVAL
	}
	if errno := c.Cred.mayAccess(i, MayWrite); errno != 0 {
		return errno
	}
	switch {
	case i.node != nil:
		return 0
	case i.runners > 0:
		return unix.ETXTBSY
	}
	i.dropPrivileges(c)
	return i.truncate(size)
}

// Truncate sets the size of an open regular file; see ftruncate(2).
func (f *File) Truncate(c *Ctx, size int64) unix.Errno {
	switch {
	case size < 0:
		return unix.EINVAL
	case f.IsPath():
		return unix.EBADF
	case !f.Inode().IsRegular() || !f.Writable():
		return unix.EINVAL
	case f.Inode().node != nil:
		return 0
	}
	f.Inode().dropPrivileges(c)
	return f.Inode().truncate(size)
}

// truncate sets the size.
func (i *Inode) truncate(size int64) unix.Errno {
	if i.node != nil || i.super == superQueue {
		return 0
	}
	if errno := i.sealsAllow(size, false); errno != 0 {
		return errno
	}
	if errno := i.contentObject().Truncate(size); errno != 0 {
		return unix.ENOSPC
	}
	i.touchData()
	return 0
}
