package vfs

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/mm"
)

// maxMemfdName is the longest name of a memfd: NAME_MAX without "memfd:".
const maxMemfdName = maxName - len("memfd:")

// Memfd makes an unnamed file in memory; see memfd_create(2).
func (fs *FS) Memfd(c *Ctx, name string, flags int) (*File, unix.Errno) {
	const known = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING | unix.MFD_NOEXEC_SEAL | unix.MFD_EXEC
	switch {
	case flags&^known != 0:
		return nil, unix.EINVAL
	case flags&unix.MFD_NOEXEC_SEAL != 0 && flags&unix.MFD_EXEC != 0:
		return nil, unix.EINVAL
	case len(name) > maxMemfdName:
		return nil, unix.EINVAL
	}
	i, errno := fs.newCounted(superShm, unix.S_IFREG|0o777, c.Cred.FSUID, c.Cred.FSGID)
	if errno != 0 {
		return nil, errno
	}
	i.memfd = true
	i.seals = unix.F_SEAL_SEAL
	if flags&unix.MFD_ALLOW_SEALING != 0 {
		i.seals = 0
	}
	if flags&unix.MFD_NOEXEC_SEAL != 0 {
		i.mode &^= 0o111
		i.seals = sealExec
	}
	i.content = mm.NewObject(fs.ram, nil, 0)
	d := anonDentry(i, "/memfd:"+name+" (deleted)")
	f := fs.newFile(d, unix.O_RDWR|OLargeFile, &regular{i})
	f.countAsWriter(false) // Linux does not count it, so that it can be executed
	return f, 0
}

// sealExec is F_SEAL_EXEC: the execute bits cannot be changed.
const sealExec = 0x20

const allSeals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE |
	unix.F_SEAL_FUTURE_WRITE | sealExec

// Seals is fcntl with F_GET_SEALS.
func (f *File) Seals() (int, unix.Errno) {
	if !f.Inode().memfd {
		return 0, unix.EINVAL
	}
	return f.Inode().seals, 0
}

// AddSeals is fcntl with F_ADD_SEALS. EBUSY: F_SEAL_WRITE while a mapping may write to
// the file.
func (f *File) AddSeals(seals int) unix.Errno {
	i := f.Inode()
	switch {
	case !i.memfd || seals&^allSeals != 0:
		return unix.EINVAL
	case !f.Writable() || i.seals&unix.F_SEAL_SEAL != 0:
		return unix.EPERM
	case seals&unix.F_SEAL_WRITE != 0 && i.content.MayBeWritten():
		return unix.EBUSY
	}
	i.seals |= seals
	return 0
}

// sealsAllow checks that the seals of a file allow a new size, and writing if write is
// set.
func (i *Inode) sealsAllow(size int64, write bool) unix.Errno {
	switch {
	case i.seals == 0:
		return 0
	case write && i.seals&(unix.F_SEAL_WRITE|unix.F_SEAL_FUTURE_WRITE) != 0:
		return unix.EPERM
	case size > i.Size() && i.seals&unix.F_SEAL_GROW != 0:
		return unix.EPERM
	case !write && size < i.Size() && i.seals&unix.F_SEAL_SHRINK != 0:
		return unix.EPERM
	}
	return 0
}
