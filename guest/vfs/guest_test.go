package vfs

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// guest does the calls in a file system.
type guest struct {
	fs    *FS
	c     *Ctx
	files map[int]*File
	last  int
}

// newGuest makes the folder at a path the root of all calls.
func newGuest(fs *FS, path string) *guest {
	c := as(fs, 0, 0)
	top, errno := fs.Lookup(c, nil, path, true)
	if errno != 0 {
		panic(errno)
	}
	c.Root, c.Cwd = top, top
	return &guest{fs: fs, c: c, files: map[int]*File{}}
}

func (g *guest) as(uid uint32) {
	old := g.c.Cred
	g.c.Cred.FSUID, g.c.Cred.FSGID = uid, uid
	g.c.Cred.AdjustForFSUserChange(&old)
}

// cstring is a string that a C program can pass.
func cstring(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
}

func (g *guest) open(path string, flags int, mode uint32) (int, unix.Errno) {
	f, errno := g.fs.Open(g.c, nil, cstring(path), flags, mode)
	if errno != 0 {
		return -1, errno
	}
	g.last++
	g.files[g.last] = f
	return g.last, 0
}

func (g *guest) close(fd int) {
	g.files[fd].Unref()
	delete(g.files, fd)
}

func (g *guest) read(fd, n int, off int64) ([]byte, unix.Errno) {
	p := make([]byte, n)
	f := g.files[fd]
	var got int
	var errno unix.Errno
	if off == atPosition {
		got, errno = f.Read(g.c, p)
	} else {
		got, errno = f.Pread(g.c, p, off)
	}
	return p[:got], errno
}

func (g *guest) write(fd int, p []byte, off int64) (int, unix.Errno) {
	if off == atPosition {
		return g.files[fd].Write(g.c, p)
	}
	return g.files[fd].Pwrite(g.c, p, off)
}

func (g *guest) lseek(fd int, off int64, whence int) (int64, unix.Errno) {
	return g.files[fd].Lseek(off, whence)
}

func (g *guest) ftruncate(fd int, size int64) unix.Errno { return g.files[fd].Truncate(g.c, size) }

func (g *guest) fallocate(fd int, mode uint32, off, n int64) unix.Errno {
	return g.files[fd].Allocate(g.c, mode, off, n)
}

func (g *guest) fstat(fd int) (unix.Stat_t, unix.Errno) { return g.files[fd].Inode().Stat(), 0 }

func (g *guest) list(fd int) ([]string, unix.Errno) {
	f := g.files[fd]
	if _, errno := f.Lseek(0, unix.SEEK_SET); errno != 0 {
		return nil, errno
	}
	buf := make([]byte, 1<<16)
	n, errno := f.Getdents(g.c, buf)
	var names []string
	for _, e := range ParseDirents(buf[:n]) {
		names = append(names, fmt.Sprintf("%s %o", e.Name, e.Type))
	}
	slices.Sort(names)
	return names, errno
}

// at finds an object and calls f with it.
func (g *guest) at(path string, follow bool, f func(i *Inode) unix.Errno) unix.Errno {
	d, errno := g.fs.Lookup(g.c, nil, cstring(path), follow)
	if errno != 0 {
		return errno
	}
	return f(d.Inode())
}

func (g *guest) stat(path string, follow bool) (st unix.Stat_t, errno unix.Errno) {
	errno = g.at(path, follow, func(i *Inode) unix.Errno { st = i.Stat(); return 0 })
	return st, errno
}

func (g *guest) mkdir(path string, mode uint32) unix.Errno { return g.fs.Mkdir(g.c, nil, path, mode) }
func (g *guest) rmdir(path string) unix.Errno              { return g.fs.Rmdir(g.c, nil, path) }
func (g *guest) unlink(path string) unix.Errno             { return g.fs.Unlink(g.c, nil, path) }

func (g *guest) rename(from, to string, flags uint32) unix.Errno {
	return g.fs.Rename(g.c, nil, from, nil, to, flags)
}

func (g *guest) link(from, to string, follow bool) unix.Errno {
	return g.fs.Link(g.c, nil, from, nil, to, follow)
}

func (g *guest) symlink(text, path string) unix.Errno { return g.fs.Symlink(g.c, text, nil, path) }

func (g *guest) readlink(path string) (string, unix.Errno) {
	if path == "" {
		return "", unix.ENOENT
	}
	return g.fs.Readlink(g.c, nil, path)
}

func (g *guest) mknod(path string, mode uint32) unix.Errno {
	_, errno := g.fs.Mknod(g.c, nil, path, mode)
	return errno
}

func (g *guest) chmod(path string, mode uint32) unix.Errno {
	return g.at(path, true, func(i *Inode) unix.Errno { return i.Chmod(g.c, mode) })
}

func (g *guest) chown(path string, uid, gid uint32, follow bool) unix.Errno {
	return g.at(path, follow, func(i *Inode) unix.Errno { return i.Chown(g.c, uid, gid) })
}

func (g *guest) utimens(path string, atime, mtime unix.Timespec) unix.Errno {
	if atime.Nsec == unix.UTIME_OMIT && mtime.Nsec == unix.UTIME_OMIT {
		return 0 // the system call does not even look at the path
	}
	return g.at(path, true, func(i *Inode) unix.Errno { return i.Utimens(g.c, atime, mtime) })
}

func (g *guest) truncate(path string, size int64) unix.Errno {
	if size < 0 {
		return unix.EINVAL // before the path is looked at, as the system call does
	}
	return g.at(path, true, func(i *Inode) unix.Errno { return i.Truncate(g.c, size) })
}

func (g *guest) access(path string, mask uint32) unix.Errno {
	return g.at(path, true, func(i *Inode) unix.Errno { return g.c.Access(i, mask, true) })
}
