package vfs

import (
	"encoding/binary"
	"math"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
)

// regular is an open regular file.
type regular struct{ inode *Inode }

func (r *regular) Read(_ *Ctx, p []byte, off int64) (int, unix.Errno) {
	return r.inode.readAt(p, off)
}

func (r *regular) Write(c *Ctx, p []byte, off int64) (int, unix.Errno) {
	return r.inode.writeAt(c, p, off)
}

func (r *regular) SeekTo(off int64, whence int, at int64) (int64, unix.Errno) {
	switch whence {
	case unix.SEEK_DATA, unix.SEEK_HOLE:
		return r.inode.seekData(off, whence == unix.SEEK_HOLE)
	}
	return newPosition(off, whence, at, r.inode.Size(), math.MaxInt64)
}

func (r *regular) Map(shared bool) (*mm.Object, unix.Errno) {
	if shared {
		if r.inode.seals&unix.F_SEAL_WRITE != 0 {
			return nil, unix.EPERM
		}
	}
	o := r.inode.contentObject()
	o.Ref()
	return o, 0
}

// Ioctl answers FIONREAD with the number of bytes after the position.
func (r *regular) Ioctl(cmd uint32, at int64) ([]byte, unix.Errno) {
	if cmd != unix.TIOCINQ {
		return nil, unix.ENOTTY
	}
	return binary.LittleEndian.AppendUint32(nil, uint32(r.inode.Size()-at)), 0
}

// newPosition computes a new position between 0 and limit.
func newPosition(off int64, whence int, at, end, limit int64) (int64, unix.Errno) {
	base := int64(0)
	switch whence {
	case unix.SEEK_SET:
	case unix.SEEK_CUR:
		base = at
	case unix.SEEK_END:
		base = end
	default:
		return 0, unix.EINVAL
	}
	if off > 0 && base > limit-off || base+off < 0 {
		return 0, unix.EINVAL
	}
	return base + off, 0
}

// readAt reads from a regular file. A file of the host without pages in memory is read
// in one piece rather than by pages.
func (i *Inode) readAt(p []byte, off int64) (int, unix.Errno) {
	o := i.contentObject()
	if i.lower == nil || i.dataChanged || o.Resident() > 0 {
		return o.ReadAt(p, off)
	}
	if off >= i.lower.attr.size {
		return 0, 0
	}
	n := min(int64(len(p)), i.lower.attr.size-off)
	if errno := i.lower.ReadAt(p[:n], off); errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// writeAt writes to a regular file. ENOSPC: guest memory is exhausted; EFBIG: no file
// can be that long; EPERM: a seal forbids it.
func (i *Inode) writeAt(c *Ctx, p []byte, off int64) (int, unix.Errno) {
	if len(p) == 0 {
		return 0, 0
	}
	if off > math.MaxInt64-int64(len(p)) {
		if off == math.MaxInt64 {
			return 0, unix.EFBIG
		}
		p = p[:math.MaxInt64-off]
	}
	if errno := i.sealsAllow(off+int64(len(p)), true); errno != 0 {
		return 0, errno
	}
	if p = i.writablePart(p, off); len(p) == 0 {
		return 0, unix.ENOSPC
	}
	i.dropPrivileges(c)
	n, errno := i.contentObject().WriteAt(p, off)
	if n > 0 {
		i.touchData()
		errno = 0
	}
	return n, errno
}

// writablePart is the part of p that can be written at off: new pages are allocated
// only while enough memory is left for programs to continue and handle the error.
func (i *Inode) writablePart(p []byte, off int64) []byte {
	o := i.contentObject()
	need := o.Missing(off, int64(len(p)))
	if need == 0 || need <= i.fs.freeForFiles() || i.fs.Reclaim() > 0 && need <= i.fs.freeForFiles() {
		return p
	}
	room := i.fs.freeForFiles()
	for done := int64(0); done < int64(len(p)); {
		part := min(int64(len(p))-done, arch.PageSize-(off+done)%arch.PageSize)
		if room -= o.Missing(off+done, part); room < 0 {
			return p[:done]
		}
		done += part
	}
	return p
}

// freeForFiles is the number of pages that files may still allocate.
func (fs *FS) freeForFiles() int64 {
	return max(0, fs.freePages()-int64(min(keptFree, fs.ram.Limit()/16)))
}

// Full reports whether files can allocate no more pages.
func (fs *FS) Full() bool { return fs.freeForFiles() == 0 }

// keptFree is the number of pages that files leave to programs: enough for a program to
// handle a full disk.
const keptFree = 1024

// dropPrivileges removes set-user-id and set-group-id from a file that a task without
// privileges writes to.
func (i *Inode) dropPrivileges(c *Ctx) {
	if c.Cred.Can(CapFsetid) {
		return
	}
	if drop := i.lostPrivileges(&c.Cred); drop != 0 {
		i.mode &^= drop
		i.touchMeta()
	}
}

// lostPrivileges are the bits set-user-id and set-group-id of a file as far as they are
// lost when it changes. Without the right to execute for the group, the second means
// mandatory locking and stays if the task is in the group.
func (i *Inode) lostPrivileges(c *Cred) uint32 {
	drop := i.mode & unix.S_ISUID
	if i.mode&0o010 != 0 || !c.Can(CapFsetid) && !c.inGroup(i.gid) {
		drop |= i.mode & unix.S_ISGID
	}
	return drop
}

// seekData finds the next data or the next hole from off on; see lseek(2).
func (i *Inode) seekData(off int64, hole bool) (int64, unix.Errno) {
	size := i.Size()
	if off < 0 || off >= size {
		return 0, unix.ENXIO
	}
	if hole {
		return i.contentObject().NextHole(off), 0
	}
	at := i.contentObject().NextData(off)
	if at >= size {
		return 0, unix.ENXIO
	}
	return at, 0
}
