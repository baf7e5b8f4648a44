package vfs

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Allocate implements fallocate(2) for the modes 0, FALLOC_FL_KEEP_SIZE,
// FALLOC_FL_PUNCH_HOLE and FALLOC_FL_ZERO_RANGE. Nothing is reserved, but a range that
// could not be written because guest memory is too small is ENOSPC.
func (f *File) Allocate(c *Ctx, mode uint32, off, length int64) unix.Errno {
	if errno := f.CheckAllocate(mode, off, length); errno != 0 {
		return errno
	}
	i := f.Inode()
	end := off + length
	size := i.Size()
	grow := end > size && mode&unix.FALLOC_FL_KEEP_SIZE == 0
	if mode&unix.FALLOC_FL_PUNCH_HOLE == 0 && !f.fs.canGrowTo(i, end) {
		return unix.ENOSPC
	}
	if mode&unix.FALLOC_FL_PUNCH_HOLE != 0 && i.seals&unix.F_SEAL_WRITE != 0 {
		return unix.EPERM
	}
	if grow {
		if errno := i.sealsAllow(end, true); errno != 0 {
			return errno
		}
	}
	i.dropPrivileges(c)
	if mode&(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_ZERO_RANGE) != 0 && off < size {
		if errno := i.contentObject().Zero(off, length); errno != 0 {
			return unix.ENOSPC
		}
	}
	if grow {
		if errno := i.contentObject().Truncate(end); errno != 0 {
			return unix.ENOSPC
		}
	}
	i.touchData()
	return 0
}

// CheckAllocate checks the arguments in the order in which Linux does.
func (f *File) CheckAllocate(mode uint32, off, length int64) unix.Errno {
	const known = unix.FALLOC_FL_KEEP_SIZE | unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_ZERO_RANGE
	switch {
	case f.IsPath():
		return unix.EBADF
	case off < 0 || length <= 0:
		return unix.EINVAL
	case mode&^known != 0:
		return unix.EOPNOTSUPP
	case mode&unix.FALLOC_FL_PUNCH_HOLE != 0 && mode != unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE:
		return unix.EOPNOTSUPP
	case !f.Writable():
		return unix.EBADF
	case f.Inode().Type() == unix.S_IFIFO:
		return unix.ESPIPE
	case f.Inode().IsDir():
		return unix.EISDIR
	case !f.Inode().IsRegular() || f.Inode().node != nil:
		return unix.ENODEV
	case off > maxFile-length:
		return unix.EFBIG
	}
	return 0
}

// canGrowTo reports whether a file could be written up to end.
func (fs *FS) canGrowTo(i *Inode, end int64) bool {
	have := (i.Size() + arch.PageSize - 1) / arch.PageSize
	want := end/arch.PageSize + 1 - have
	return want <= fs.freeForFiles() || fs.Reclaim() > 0 && want <= fs.freeForFiles()
}

// freePages is the number of pages that are left.
func (fs *FS) freePages() int64 { return int64(fs.ram.Limit()) - int64(fs.ram.Used()+fs.ram.Tables()) }
