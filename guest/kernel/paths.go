package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// atStatxSyncType are the flags of statx about remote file systems.
const atStatxSyncType = 0x6000

// atCwd is AT_FDCWD as the argument of a system call.
const atCwd = ^uint64(99)

// startOfPath is the directory at which a relative path starts; nil for the working directory.
func (t *Task) startOfPath(dirfd uint64, path string) (*vfs.Dentry, unix.Errno) {
	if int32(dirfd) == unix.AT_FDCWD || path != "" && path[0] == '/' {
		return nil, 0
	}
	f, errno := t.openFile(dirfd)
	if errno != 0 {
		return nil, errno
	}
	return f.Dentry(), 0
}

// readPathAt reads a path argument and the directory at which it starts. ENOENT: it is empty.
func (t *Task) readPathAt(dirfd, addr uint64) (*vfs.Dentry, string, unix.Errno) {
	from, path, errno := t.readAnyPathAt(dirfd, addr)
	if path == "" && (errno == 0 || errno == unix.EBADF) {
		errno = unix.ENOENT // it is reported before a bad descriptor
	}
	return from, path, errno
}

// readAnyPathAt is readPathAt for calls in which an empty path refers to the descriptor.
func (t *Task) readAnyPathAt(dirfd, addr uint64) (*vfs.Dentry, string, unix.Errno) {
	path, errno := t.readPath(addr)
	if errno != 0 {
		return nil, "", errno
	}
	from, errno := t.startOfPath(dirfd, path)
	return from, path, errno
}

// findObject finds the object that a path argument refers to. With AT_EMPTY_PATH in flags an empty
// path refers to the descriptor itself.
func (t *Task) findObject(dirfd, addr uint64, flags uint32) (*vfs.Dentry, unix.Errno) {
	find := t.readPathAt
	if flags&unix.AT_EMPTY_PATH != 0 {
		find = t.readAnyPathAt
	}
	from, path, errno := find(dirfd, addr)
	if errno != 0 {
		return nil, errno
	}
	if path == "" {
		if from == nil {
			return t.proc.context.cwd, 0
		}
		return from, 0
	}
	return t.k.fs.Lookup(t.vfsContext(), from, path, flags&unix.AT_SYMLINK_NOFOLLOW == 0)
}

func (t *Task) openAt(dirfd, addr, flags, mode uint64) (uint64, unix.Errno) {
	f := t.call.opened
	if f == nil {
		from, path, errno := t.readPathAt(dirfd, addr)
		if errno != 0 {
			return 0, errno
		}
		if _, errno := t.proc.lowestFree(0); errno != 0 {
			return 0, errno
		}
		if f, errno = t.k.fs.Open(t.vfsContext(), from, path, int(uint32(flags)), uint32(mode)); errno != 0 {
			return 0, errno
		}
	}
	if errno := t.finishOpening(f, int(uint32(flags))); errno != 0 {
		return 0, errno
	}
	if errno := t.openQueue(f); errno != 0 {
		f.Unref()
		return 0, errno
	}
	if errno := t.openTerminal(f); errno != 0 {
		f.Unref()
		return 0, errno
	}
	t.adoptTerminal(f, int(uint32(flags)))
	if errno := t.openFIFO(f); errno != 0 {
		t.keepForRetry(f, errno)
		return 0, errno
	}
	f.Opened()
	return t.installFile(f, flags&unix.O_CLOEXEC != 0)
}

// finishOpening breaks the leases that prevent an open. If it fails, the description is released,
// or kept for the next attempt.
func (t *Task) finishOpening(f *vfs.File, flags int) unix.Errno {
	errno := unix.Errno(0)
	if !f.IsPath() {
		errno = t.breakLeases(f.Inode(), flags)
	}
	if errno == 0 {
		errno = f.FinishOpening()
	}
	t.keepForRetry(f, errno)
	return errno
}

// keepForRetry keeps a description for the next attempt of a call that is blocked, and releases it
// if the call has failed.
func (t *Task) keepForRetry(f *vfs.File, errno unix.Errno) {
	switch {
	case errno == errBlocked:
		t.call.opened = f
	case errno != 0:
		t.call.opened = nil
		f.Unref()
	}
}

func sysOpen(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.openAt(atCwd, a[0], a[1], a[2]) }

func sysOpenat(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.openAt(a[0], a[1], a[2], a[3]) }

func sysCreat(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.openAt(atCwd, a[0], unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC, a[1])
}

func (t *Task) writeStat(addr uint64, i *vfs.Inode) unix.Errno {
	s := i.Stat()
	return writeStruct(t, arch.Addr(addr), &s)
}

func (t *Task) stat(dirfd, addr, buf uint64, flags uint32) (uint64, unix.Errno) {
	d, errno := t.findObject(dirfd, addr, flags)
	if errno != 0 {
		return 0, errno
	}
	return 0, t.writeStat(buf, d.Inode())
}

func sysStat(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.stat(atCwd, a[0], a[1], 0) }

func sysLstat(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.stat(atCwd, a[0], a[1], unix.AT_SYMLINK_NOFOLLOW)
}

func sysFstat(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, errno := t.openFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	return 0, t.writeStat(a[1], f.Inode())
}

const statFlags = unix.AT_EMPTY_PATH | unix.AT_NO_AUTOMOUNT | unix.AT_SYMLINK_NOFOLLOW

func sysNewfstatat(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if uint32(a[3])&^statFlags != 0 {
		return 0, unix.EINVAL
	}
	return t.stat(a[0], a[1], a[2], uint32(a[3]))
}

func sysStatx(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if uint32(a[2])&^(statFlags|atStatxSyncType) != 0 || uint32(a[3])&unix.STATX__RESERVED != 0 ||
		uint32(a[2])&atStatxSyncType == atStatxSyncType {
		return 0, unix.EINVAL
	}
	d, errno := t.findObject(a[0], a[1], uint32(a[2]))
	if errno != 0 {
		return 0, errno
	}
	s := d.Inode().Statx()
	return 0, writeStruct(t, arch.Addr(a[4]), &s)
}

func (t *Task) checkAccess(dirfd, addr, mode uint64, flags uint32) (uint64, unix.Errno) {
	if uint32(mode)&^7 != 0 || flags&^(unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0 {
		return 0, unix.EINVAL
	}
	d, errno := t.findObject(dirfd, addr, flags)
	if errno != 0 {
		return 0, errno
	}
	return 0, t.vfsContext().Access(d.Inode(), uint32(mode), flags&unix.AT_EACCESS != 0)
}

func sysAccess(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.checkAccess(atCwd, a[0], a[1], 0) }

func sysFaccessat(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.checkAccess(a[0], a[1], a[2], 0)
}

func sysFaccessat2(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.checkAccess(a[0], a[1], a[2], uint32(a[3]))
}

func (t *Task) mkdir(dirfd, addr, mode uint64) (uint64, unix.Errno) {
	from, path, errno := t.readPathAt(dirfd, addr)
	if errno != 0 {
		return 0, errno
	}
	return 0, t.k.fs.Mkdir(t.vfsContext(), from, path, uint32(mode))
}

func sysMkdir(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.mkdir(atCwd, a[0], a[1]) }

func sysMkdirat(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.mkdir(a[0], a[1], a[2]) }

func (t *Task) mknod(dirfd, addr, mode uint64) (uint64, unix.Errno) {
	from, path, errno := t.readPathAt(dirfd, addr)
	if errno != 0 {
		return 0, errno
	}
	_, errno = t.k.fs.Mknod(t.vfsContext(), from, path, uint32(mode))
	return 0, errno
}

func sysMknod(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.mknod(atCwd, a[0], a[1]) }

func sysMknodat(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.mknod(a[0], a[1], a[2]) }

func (t *Task) removeName(dirfd, addr uint64, dir bool) (uint64, unix.Errno) {
	from, path, errno := t.readPathAt(dirfd, addr)
	if errno != 0 {
		return 0, errno
	}
	if dir {
		return 0, t.k.fs.Rmdir(t.vfsContext(), from, path)
	}
	return 0, t.k.fs.Unlink(t.vfsContext(), from, path)
}

func sysRmdir(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.removeName(atCwd, a[0], true) }

func sysUnlink(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.removeName(atCwd, a[0], false) }

func sysUnlinkat(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if uint32(a[2])&^unix.AT_REMOVEDIR != 0 {
		return 0, unix.EINVAL
	}
	return t.removeName(a[0], a[1], a[2]&unix.AT_REMOVEDIR != 0)
}

func (t *Task) rename(oldfd, oldAddr, newfd, newAddr uint64, flags uint32) (uint64, unix.Errno) {
	read := t.readPathAt
	if flags&unix.AT_EMPTY_PATH != 0 && t.cred.Can(vfs.CapDACReadSearch) {
		read = t.readAnyPathAt
	}
	oldFrom, oldPath, errno := read(oldfd, oldAddr)
	if errno != 0 {
		return 0, errno
	}
	newFrom, newPath, errno := t.readPathAt(newfd, newAddr)
	if errno != 0 {
		return 0, errno
	}
	return 0, t.k.fs.Rename(t.vfsContext(), oldFrom, oldPath, newFrom, newPath, flags)
}

func sysRename(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.rename(atCwd, a[0], atCwd, a[1], 0)
}

func sysRenameat(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.rename(a[0], a[1], a[2], a[3], 0)
}

func sysRenameat2(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.rename(a[0], a[1], a[2], a[3], uint32(a[4]))
}

func (t *Task) link(oldfd, oldAddr, newfd, newAddr uint64, flags uint32) (uint64, unix.Errno) {
	if flags&^(unix.AT_SYMLINK_FOLLOW|unix.AT_EMPTY_PATH) != 0 {
		return 0, unix.EINVAL
	}
	read := t.readPathAt
	if flags&unix.AT_EMPTY_PATH != 0 && t.cred.Can(vfs.CapDACReadSearch) {
		read = t.readAnyPathAt
	}
	oldFrom, oldPath, errno := read(oldfd, oldAddr)
	if errno != 0 {
		return 0, errno
	}
	newFrom, newPath, errno := t.readPathAt(newfd, newAddr)
	if errno != 0 {
		return 0, errno
	}
	c := t.vfsContext()
	if oldPath == "" && oldFrom != nil {
		return 0, t.k.fs.LinkDentry(c, oldFrom, newFrom, newPath)
	}
	return 0, t.k.fs.Link(c, oldFrom, oldPath, newFrom, newPath, flags&unix.AT_SYMLINK_FOLLOW != 0)
}

func sysLink(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.link(atCwd, a[0], atCwd, a[1], 0) }

func sysLinkat(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.link(a[0], a[1], a[2], a[3], uint32(a[4]))
}

func (t *Task) symlink(textAddr, dirfd, addr uint64) (uint64, unix.Errno) {
	text, errno := t.readPath(textAddr)
	if errno != 0 {
		return 0, errno
	}
	from, path, errno := t.readPathAt(dirfd, addr)
	if errno != 0 {
		return 0, errno
	}
	return 0, t.k.fs.Symlink(t.vfsContext(), text, from, path)
}

func sysSymlink(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.symlink(a[0], atCwd, a[1]) }

func sysSymlinkat(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.symlink(a[0], a[1], a[2]) }

func (t *Task) readlink(dirfd, addr, buf, size uint64) (uint64, unix.Errno) {
	if int32(size) <= 0 {
		return 0, unix.EINVAL
	}
	from, path, errno := t.readAnyPathAt(dirfd, addr)
	if errno != 0 {
		return 0, errno
	}
	text, errno := t.k.fs.Readlink(t.vfsContext(), from, path)
	if errno != 0 {
		return 0, errno
	}
	n := min(uint64(len(text)), size)
	return n, t.copyOut(arch.Addr(buf), []byte(text[:n]))
}

func sysReadlink(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.readlink(atCwd, a[0], a[1], a[2])
}

func sysReadlinkat(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.readlink(a[0], a[1], a[2], a[3])
}

func sysGetdents(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.getdents(a, (*vfs.File).OldGetdents)
}

func sysGetdents64(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.getdents(a, (*vfs.File).Getdents)
}

func (t *Task) getdents(a [6]uint64, fill func(*vfs.File, *vfs.Ctx, []byte) (int, unix.Errno)) (uint64, unix.Errno) {
	f, errno := t.usableFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	if !f.Inode().IsDir() {
		return 0, unix.ENOTDIR
	}
	buf := t.k.scratch.buffer(min(uint64(uint32(a[2])), chunkSize))
	n, errno := fill(f, t.vfsContext(), buf)
	if errno != 0 {
		return 0, errno
	}
	f.Dentry().Happen(unix.IN_ACCESS)
	return uint64(n), t.copyOut(arch.Addr(a[1]), buf[:n])
}

func sysGetcwd(t *Task, a [6]uint64) (uint64, unix.Errno) {
	path, errno := t.k.fs.Getcwd(t.vfsContext())
	if errno != 0 {
		return 0, errno
	}
	if uint64(len(path))+1 > a[1] {
		return 0, unix.ERANGE
	}
	return uint64(len(path)) + 1, t.copyOut(arch.Addr(a[0]), append([]byte(path), 0))
}

// checkDirectory checks that a directory can be the working directory or the root.
func (t *Task) checkDirectory(d *vfs.Dentry) unix.Errno {
	if !d.Inode().IsDir() {
		return unix.ENOTDIR
	}
	return t.vfsContext().Access(d.Inode(), vfs.MayExec, true)
}

func sysChdir(t *Task, a [6]uint64) (uint64, unix.Errno) {
	d, errno := t.findObject(atCwd, a[0], 0)
	if errno == 0 {
		errno = t.checkDirectory(d)
	}
	if errno == 0 {
		t.proc.context.cwd = d
	}
	return 0, errno
}

func sysFchdir(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, errno := t.openFile(a[0])
	if errno == 0 {
		errno = t.checkDirectory(f.Dentry())
	}
	if errno == 0 {
		t.proc.context.cwd = f.Dentry()
	}
	return 0, errno
}

func sysChroot(t *Task, a [6]uint64) (uint64, unix.Errno) {
	d, errno := t.findObject(atCwd, a[0], 0)
	if errno == 0 {
		errno = t.checkDirectory(d)
	}
	if errno == 0 && !t.cred.Can(vfs.CapSysChroot) {
		errno = unix.EPERM
	}
	if errno == 0 {
		t.proc.context.root = d
	}
	return 0, errno
}

func sysUmask(t *Task, a [6]uint64) (uint64, unix.Errno) {
	old := t.proc.context.umask
	t.proc.context.umask = uint32(a[0]) & 0o777
	return uint64(old), 0
}

func sysStatfs(t *Task, a [6]uint64) (uint64, unix.Errno) {
	d, errno := t.findObject(atCwd, a[0], 0)
	if errno != 0 {
		return 0, errno
	}
	s := t.k.fs.Statfs(d.Inode())
	return 0, writeStruct(t, arch.Addr(a[1]), &s)
}

func sysFstatfs(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, errno := t.openFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	s := t.k.fs.Statfs(f.Inode())
	return 0, writeStruct(t, arch.Addr(a[1]), &s)
}

func sysMemfdCreate(t *Task, a [6]uint64) (uint64, unix.Errno) {
	name, errno := t.proc.space.ReadCString(arch.Addr(a[0]), 250)
	if errno != 0 {
		if errno == unix.ENAMETOOLONG {
			errno = unix.EINVAL
		}
		return 0, errno
	}
	f, errno := t.k.fs.Memfd(t.vfsContext(), name, int(uint32(a[1])))
	if errno != 0 {
		return 0, errno
	}
	return t.installFile(f, a[1]&unix.MFD_CLOEXEC != 0)
}

// sysIoprioGet and sysIoprioSet know one priority only.
func sysIoprioGet(*Task, [6]uint64) (uint64, unix.Errno) { return 4, 0 }

func sysIoprioSet(*Task, [6]uint64) (uint64, unix.Errno) { return 0, 0 }
