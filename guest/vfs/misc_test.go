package vfs

import (
	"bytes"
	"math"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

func TestGetcwd(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	ok(t, fs.Mkdir(c, nil, "/tmp/a", 0o755))
	ok(t, fs.Mkdir(c, nil, "/tmp/a/b", 0o755))
	var errno unix.Errno
	c.Cwd, errno = fs.Lookup(c, nil, "/tmp/a/b", true)
	ok(t, errno)
	is := func(want string, wantErrno unix.Errno) {
		t.Helper()
		if got, errno := fs.Getcwd(c); got != want || errno != wantErrno {
			t.Errorf("%q %v, want %q %v", got, errno, want, wantErrno)
		}
	}
	is("/tmp/a/b", 0)
	ok(t, fs.Rename(c, nil, "/tmp/a", nil, "/tmp/c", 0))
	is("/tmp/c/b", 0)
	root := c.Root
	c.Root = c.Cwd.Parent()
	is("/b", 0)
	if d, errno := fs.Lookup(c, nil, "../../../b", true); errno != 0 || d != c.Cwd {
		t.Errorf("above the root: %v", errno)
	}
	c.Root, errno = fs.Lookup(&Ctx{Root: root, Cwd: root}, nil, "/dev", true)
	ok(t, errno)
	is("(unreachable)/tmp/c/b", 0)
	c.Root = root
	ok(t, fs.Rmdir(c, nil, "/tmp/c/b"))
	is("", unix.ENOENT)
	if _, errno := fs.Open(c, nil, "new", unix.O_CREAT|unix.O_WRONLY, 0o600); errno != unix.ENOENT {
		t.Errorf("making a file in a removed folder: %v", errno)
	}
	if d, errno := fs.Lookup(c, nil, "..", true); errno != 0 || d.Path() != "/tmp/c" {
		t.Errorf("the folder above: %v", errno)
	}
	if got := c.Cwd.Path(); got != "/tmp/c/b (deleted)" {
		t.Errorf("path %s", got)
	}
}

// TestStatxAgreesWithStat: both report the same, as on the host.
func TestStatxAgreesWithStat(t *testing.T) {
	fs := newFS(t, Config{Paths: []string{"/bin"}})
	c := as(fs, 0, 0)
	put(t, fs, c, "/tmp/f", "12345")
	for _, path := range []string{"/tmp/f", "/tmp", "/bin", "/dev/null"} {
		d, errno := fs.Lookup(c, nil, path, true)
		ok(t, errno)
		s, x := d.Inode().Stat(), d.Inode().Statx()
		if s.Mode != uint32(x.Mode) || s.Ino != x.Ino || s.Size != int64(x.Size) || s.Nlink != uint64(x.Nlink) ||
			s.Blocks != int64(x.Blocks) || s.Dev != unix.Mkdev(x.Dev_major, x.Dev_minor) ||
			s.Rdev != unix.Mkdev(x.Rdev_major, x.Rdev_minor) || s.Mtim.Sec != x.Mtime.Sec || s.Mtim.Nsec != int64(x.Mtime.Nsec) {
			t.Errorf("%s: stat %+v, statx %+v", path, s, x)
		}
		if x.Mask&unix.STATX_BASIC_STATS != unix.STATX_BASIC_STATS || x.Blksize != 4096 {
			t.Errorf("%s: mask %#x, block size %d", path, x.Mask, x.Blksize)
		}
	}
}

func TestStatfs(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	before := fs.Statfs(fs.Root().Inode())
	put(t, fs, c, "/tmp/f", string(make([]byte, 10*arch.PageSize)))
	after := fs.Statfs(fs.Root().Inode())
	if before.Bfree-after.Bfree != 10 || before.Ffree-after.Ffree != 1 || after.Blocks != fs.ram.Limit() {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if after.Namelen != 255 || after.Type != unix.OVERLAYFS_SUPER_MAGIC {
		t.Errorf("%+v", after)
	}
}

// TestAccessModes compares the rights of descriptions of each access mode with
// the host.
func TestAccessModes(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	put(t, fs, c, "/tmp/f", "text")
	path := t.TempDir() + "/f"
	write(t, path, "text")
	buf := make([]byte, 2)
	for _, flags := range []int{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR, 3, unix.O_PATH, unix.O_RDWR | unix.O_APPEND} {
		fd, err := unix.Open(path, flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		f, errno := fs.Open(c, nil, "/tmp/f", flags, 0)
		ok(t, errno)
		for _, test := range []struct {
			name   string
			native func() error
			guest  func() unix.Errno
		}{
			{"read", func() error { _, err := unix.Read(fd, buf); return err }, func() unix.Errno { _, e := f.Read(c, buf); return e }},
			{"write", func() error { _, err := unix.Write(fd, buf); return err }, func() unix.Errno { _, e := f.Write(c, buf); return e }},
			{"pread", func() error { _, err := unix.Pread(fd, buf, 1); return err }, func() unix.Errno { _, e := f.Pread(c, buf, 1); return e }},
			{"pwrite", func() error { _, err := unix.Pwrite(fd, buf, 1); return err }, func() unix.Errno { _, e := f.Pwrite(c, buf, 1); return e }},
			{"pread -1", func() error { _, err := unix.Pread(fd, buf, -1); return err }, func() unix.Errno { _, e := f.Pread(c, buf, -1); return e }},
			{"lseek", func() error { _, err := unix.Seek(fd, 1, 0); return err }, func() unix.Errno { _, e := f.Lseek(1, 0); return e }},
			{"ftruncate", func() error { return unix.Ftruncate(fd, 3) }, func() unix.Errno { return f.Truncate(c, 3) }},
			{"ioctl", func() error { _, err := unix.IoctlGetTermios(fd, unix.TCGETS); return err }, func() unix.Errno { _, e := f.Ioctl(unix.TCGETS); return e }},
			{"flock", func() error { return unix.Flock(fd, unix.LOCK_SH) }, func() unix.Errno { return f.Flock(unix.LOCK_SH) }},
			{"mmap", mmap(fd, false, false), func() unix.Errno { return unmap(f.Map(false, false)) }},
			{"mmap private for writing", mmap(fd, false, true), func() unix.Errno { return unmap(f.Map(false, true)) }},
			{"mmap shared", mmap(fd, true, false), func() unix.Errno { return unmap(f.Map(true, false)) }},
			{"mmap shared for writing", mmap(fd, true, true), func() unix.Errno { return unmap(f.Map(true, true)) }},
		} {
			if want, got := errnoOf(test.native()), test.guest(); got != want {
				t.Errorf("%#o %s: %v, the host says %v", flags, test.name, got, want)
			}
		}
		at, err := unix.Seek(fd, 0, unix.SEEK_CUR)
		if err == nil && at != f.Offset {
			t.Errorf("%#o: position %d, the host's is %d", flags, f.Offset, at)
		}
		native, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil || native != f.Flags() {
			t.Errorf("%#o: flags %#o, the host's are %#o, %v", flags, f.Flags(), native, err)
		}
		_ = unix.Close(fd)
		f.Unref()
	}
}

func mmap(fd int, shared, write bool) func() error {
	flags, prot := unix.MAP_PRIVATE, unix.PROT_READ
	if shared {
		flags = unix.MAP_SHARED
	}
	if write {
		prot |= unix.PROT_WRITE
	}
	return func() error {
		p, err := unix.Mmap(fd, 0, 1, prot, flags)
		if err == nil {
			err = unix.Munmap(p)
		}
		return err
	}
}

func unmap(o interface{ Unref() }, errno unix.Errno) unix.Errno {
	if errno == 0 {
		o.Unref()
	}
	return errno
}

func TestSetFlags(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 1000, 1000)
	put(t, fs, c, "/tmp/f", "text")
	f, errno := fs.Open(c, nil, "/tmp/f", unix.O_WRONLY|unix.O_CREAT, 0)
	ok(t, errno)
	ok(t, f.SetFlags(c, unix.O_APPEND|unix.O_NONBLOCK|unix.O_RDWR|unix.O_CREAT))
	if want := unix.O_WRONLY | unix.O_APPEND | unix.O_NONBLOCK | OLargeFile; f.Flags() != want || !f.Nonblock() {
		t.Errorf("flags %#o, want %#o", f.Flags(), want)
	}
	_, errno = f.Write(c, []byte("!"))
	ok(t, errno)
	if got := read(t, fs, c, "/tmp/f"); got != "text!" {
		t.Errorf("it reads %q", got)
	}
	if errno := f.SetFlags(as(fs, 1001, 1001), unix.O_NOATIME); errno != unix.EPERM {
		t.Errorf("O_NOATIME on somebody else's file: %v", errno)
	}
}

func TestPendingOfFile(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	put(t, fs, c, "/tmp/f", "text")
	f, errno := fs.Open(c, nil, "/tmp/f", unix.O_RDONLY, 0)
	ok(t, errno)
	_, errno = f.Lseek(1, unix.SEEK_SET)
	ok(t, errno)
	if p, errno := f.Ioctl(unix.TIOCINQ); errno != 0 || !bytes.Equal(p, []byte{3, 0, 0, 0}) {
		t.Errorf("FIONREAD says %v, %v", p, errno)
	}
}

func TestTimesOutOfRange(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	put(t, fs, c, "/tmp/f", "")
	d, errno := fs.Lookup(c, nil, "/tmp/f", true)
	ok(t, errno)
	ok(t, d.Inode().Utimens(c, unix.Timespec{Sec: math.MinInt64}, unix.Timespec{Sec: math.MaxInt64}))
	if st := d.Inode().Stat(); st.Atim.Sec > -9e9 || st.Mtim.Sec < 9e9 {
		t.Errorf("times %v %v", st.Atim, st.Mtim)
	}
}

func TestAnonymousObjects(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 1000, 1000)
	socket := fs.NewFile(fs.NewSocket(c), "socket:", unix.O_RDWR, nil)
	if got, want := socket.Dentry().Path(), "socket:["+decimal(socket.Inode().Ino())+"]"; got != want {
		t.Errorf("path %q, want %q", got, want)
	}
	event := fs.NewFile(fs.Anon(), "anon_inode:[eventfd]", unix.O_RDWR, nil)
	if event.Inode() != fs.Anon() || event.Inode().Type() != 0 {
		t.Errorf("eventfd has the type %o", event.Inode().Type())
	}
	for _, f := range []*File{socket, event} {
		if _, errno := fs.OpenDentry(as(fs, 0, 0), f.Dentry(), unix.O_RDWR); errno != unix.ENXIO {
			t.Errorf("opening %s: %v", f.Dentry().Path(), errno)
		}
		if errno := fs.LinkDentry(as(fs, 0, 0), f.Dentry(), nil, "/tmp/x"); errno != unix.EXDEV {
			t.Errorf("linking %s: %v", f.Dentry().Path(), errno)
		}
	}
	if errno := fs.Link(c, nil, "/dev/null", nil, "/tmp/null", false); errno != unix.EXDEV {
		t.Errorf("a link across devices: %v", errno)
	}
	if errno := fs.Rename(as(fs, 0, 0), nil, "/dev/null", nil, "/tmp/null", 0); errno != unix.EXDEV {
		t.Errorf("a rename across devices: %v", errno)
	}
}

// TestUnreadableOnHost: files that the user of heddle may not read, the guest's
// root may not read either.
func TestUnreadableOnHost(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	host := t.TempDir()
	write(t, host+"/f", "text")
	if err := os.Chmod(host+"/f", 0); err != nil {
		t.Fatal(err)
	}
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m"}}})
	if _, errno := fs.Open(as(fs, 0, 0), nil, "/m/f", unix.O_RDONLY, 0); errno != unix.EACCES {
		t.Errorf("open: %v", errno)
	}
}

func TestManyOpenHostFiles(t *testing.T) {
	host := t.TempDir()
	const count = maxHostFiles + 200
	for i := range count {
		write(t, host+"/"+decimal(uint64(i)), decimal(uint64(i)))
	}
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m"}}})
	c := as(fs, 0, 0)
	var files []*File
	for i := range count {
		f, errno := fs.Open(c, nil, "/m/"+decimal(uint64(i)), unix.O_RDONLY, 0)
		ok(t, errno)
		files = append(files, f)
	}
	if open := fs.host.files.order.Len(); open > maxHostFiles {
		t.Errorf("%d handles are open", open)
	}
	buf := make([]byte, 10)
	for i, f := range files {
		if n, errno := f.Read(c, buf); errno != 0 || string(buf[:n]) != decimal(uint64(i)) {
			t.Errorf("file %d reads %q, %v", i, buf[:n], errno)
		}
		f.Unref()
	}
}
