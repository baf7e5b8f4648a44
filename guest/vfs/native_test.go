package vfs

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// calls are the operations that the host's kernel and vfs are compared in. A
// result is a text that must be the same for both.
type calls interface {
	open(path string, flags int, mode uint32) (int, unix.Errno)
	close(fd int)
	read(fd, n int, off int64) ([]byte, unix.Errno)
	write(fd int, p []byte, off int64) (int, unix.Errno)
	lseek(fd int, off int64, whence int) (int64, unix.Errno)
	ftruncate(fd int, size int64) unix.Errno
	fallocate(fd int, mode uint32, off, n int64) unix.Errno
	fstat(fd int) (unix.Stat_t, unix.Errno)
	list(fd int) ([]string, unix.Errno)
	stat(path string, follow bool) (unix.Stat_t, unix.Errno)
	mkdir(path string, mode uint32) unix.Errno
	rmdir(path string) unix.Errno
	unlink(path string) unix.Errno
	rename(from, to string, flags uint32) unix.Errno
	link(from, to string, follow bool) unix.Errno
	symlink(text, path string) unix.Errno
	readlink(path string) (string, unix.Errno)
	mknod(path string, mode uint32) unix.Errno
	chmod(path string, mode uint32) unix.Errno
	chown(path string, uid, gid uint32, follow bool) unix.Errno
	utimens(path string, atime, mtime unix.Timespec) unix.Errno
	truncate(path string, size int64) unix.Errno
	access(path string, mask uint32) unix.Errno
	as(uid uint32)
}

// atPosition as the offset of read and write means the description's position.
const atPosition = -1

// native does the calls on the host, in a thread of its own whose root is a
// test folder.
type native struct {
	do   chan func()
	done chan struct{}
}

// newNative needs root, for chroot and for acting as another user.
func newNative(root string) (*native, error) {
	n := &native{make(chan func()), make(chan struct{})}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Chroot(root)
		}
		if err == nil {
			err = unix.Chdir("/")
		}
		if err == nil {
			_, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
			err = errnoOrNil(errno)
		}
		unix.Umask(0o22)
		ready <- err
		for f := range n.do {
			f()
		}
		close(n.done)
	}()
	return n, <-ready
}

func errnoOrNil(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

func (n *native) stop() {
	close(n.do)
	<-n.done
}

// in runs f on the thread.
func (n *native) in(f func()) {
	ready := make(chan struct{})
	n.do <- func() { f(); close(ready) }
	<-ready
}

// try runs f on the thread and returns its error.
func (n *native) try(f func() error) (errno unix.Errno) {
	n.in(func() { errno = errnoOf(f()) })
	return errno
}

func (n *native) as(uid uint32) {
	n.in(func() {
		// Becoming another user for files drops the capabilities for files.
		_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, uintptr(uid), 0, 0)
		_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(uid), 0, 0)
	})
}

func (n *native) open(path string, flags int, mode uint32) (fd int, errno unix.Errno) {
	errno = n.try(func() (err error) {
		fd, err = unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, mode)
		return err
	})
	return fd, errno
}

func (n *native) close(fd int) { _ = unix.Close(fd) }

func (n *native) read(fd, size int, off int64) (p []byte, errno unix.Errno) {
	p = make([]byte, size)
	var got int
	errno = n.try(func() (err error) {
		if off == atPosition {
			got, err = unix.Read(fd, p)
		} else {
			got, err = unix.Pread(fd, p, off)
		}
		return err
	})
	return p[:max(0, got)], errno
}

func (n *native) write(fd int, p []byte, off int64) (got int, errno unix.Errno) {
	errno = n.try(func() (err error) {
		if off == atPosition {
			got, err = unix.Write(fd, p)
		} else {
			got, err = unix.Pwrite(fd, p, off)
		}
		return err
	})
	return max(0, got), errno
}

func (n *native) lseek(fd int, off int64, whence int) (at int64, errno unix.Errno) {
	errno = n.try(func() (err error) { at, err = unix.Seek(fd, off, whence); return err })
	return max(0, at), errno
}

func (n *native) ftruncate(fd int, size int64) unix.Errno {
	return n.try(func() error { return unix.Ftruncate(fd, size) })
}

func (n *native) fallocate(fd int, mode uint32, off, size int64) unix.Errno {
	return n.try(func() error { return unix.Fallocate(fd, mode, off, size) })
}

func (n *native) fstat(fd int) (st unix.Stat_t, errno unix.Errno) {
	errno = n.try(func() error { return unix.Fstat(fd, &st) })
	return st, errno
}

func (n *native) list(fd int) (names []string, errno unix.Errno) {
	errno = n.try(func() error {
		if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
			return err
		}
		buf := make([]byte, 1<<16)
		got, err := unix.ReadDirent(fd, buf)
		if err != nil {
			return err
		}
		for _, e := range ParseDirents(buf[:got]) {
			names = append(names, fmt.Sprintf("%s %o", e.Name, e.Type))
		}
		slices.Sort(names)
		return nil
	})
	return names, errno
}

func (n *native) stat(path string, follow bool) (st unix.Stat_t, errno unix.Errno) {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if follow {
		flags = 0
	}
	errno = n.try(func() error { return unix.Fstatat(unix.AT_FDCWD, path, &st, flags) })
	return st, errno
}

func (n *native) mkdir(path string, mode uint32) unix.Errno {
	return n.try(func() error { return unix.Mkdir(path, mode) })
}

func (n *native) rmdir(path string) unix.Errno {
	return n.try(func() error { return unix.Rmdir(path) })
}

func (n *native) unlink(path string) unix.Errno {
	return n.try(func() error { return unix.Unlink(path) })
}

func (n *native) rename(from, to string, flags uint32) unix.Errno {
	return n.try(func() error {
		return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, uint(flags))
	})
}

func (n *native) link(from, to string, follow bool) unix.Errno {
	flags := 0
	if follow {
		flags = unix.AT_SYMLINK_FOLLOW
	}
	return n.try(func() error { return unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags) })
}

func (n *native) symlink(text, path string) unix.Errno {
	return n.try(func() error { return unix.Symlink(text, path) })
}

func (n *native) readlink(path string) (text string, errno unix.Errno) {
	buf := make([]byte, unix.PathMax)
	errno = n.try(func() error {
		got, err := unix.Readlink(path, buf)
		text = string(buf[:max(0, got)])
		return err
	})
	return text, errno
}

func (n *native) mknod(path string, mode uint32) unix.Errno {
	return n.try(func() error { return unix.Mknod(path, mode, 0) })
}

func (n *native) chmod(path string, mode uint32) unix.Errno {
	return n.try(func() error { return unix.Chmod(path, mode) })
}

func (n *native) chown(path string, uid, gid uint32, follow bool) unix.Errno {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if follow {
		flags = 0
	}
	return n.try(func() error { return unix.Fchownat(unix.AT_FDCWD, path, int(int32(uid)), int(int32(gid)), flags) })
}

func (n *native) utimens(path string, atime, mtime unix.Timespec) unix.Errno {
	return n.try(func() error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{atime, mtime}, 0)
	})
}

func (n *native) truncate(path string, size int64) unix.Errno {
	return n.try(func() error { return unix.Truncate(path, size) })
}

func (n *native) access(path string, mask uint32) unix.Errno {
	return n.try(func() error {
		p, err := unix.BytePtrFromString(path)
		if err != nil {
			return err
		}
		at := unix.AT_FDCWD
		_, _, errno := unix.Syscall6(unix.SYS_FACCESSAT2, uintptr(at), uintptr(unsafe.Pointer(p)), uintptr(mask), unix.AT_EACCESS, 0, 0)
		return errnoOrNil(errno)
	})
}
