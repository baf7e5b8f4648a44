package vfs

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// TestStdinIsReadInFull: however small the pieces in which input comes, a read
// is only short at its end, and a copy of the machine reads the same bytes.
func TestStdinIsReadInFull(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	data, err := NewStdin(iotest.OneByteReader(strings.NewReader("the quick brown fox")))
	if err != nil {
		t.Fatal(err)
	}
	f := fs.OpenStdin(data)
	buf := make([]byte, 10)
	next := func(f *File, want string) {
		t.Helper()
		n, errno := f.Read(c, buf)
		if errno != 0 || string(buf[:n]) != want {
			t.Errorf("read %q, %v, want %q", buf[:n], errno, want)
		}
	}
	next(f, "the quick ")
	copied := deepcopy.Copy(deepcopy.New(), f)
	if got := f.Ready(); got != unix.EPOLLIN|unix.EPOLLRDNORM {
		t.Errorf("ready %#x", got)
	}
	next(f, "brown fox")
	next(f, "")
	if got := f.Ready(); got != unix.EPOLLIN|unix.EPOLLRDNORM|unix.EPOLLHUP {
		t.Errorf("ready at the end %#x", got)
	}
	pending, errno := copied.Ioctl(unix.TIOCINQ)
	if errno != 0 || !bytes.Equal(pending, []byte{9, 0, 0, 0}) {
		t.Errorf("FIONREAD says %v, %v", pending, errno)
	}
	next(copied, "brown fox")
	if _, errno := f.Lseek(0, unix.SEEK_CUR); errno != unix.ESPIPE {
		t.Errorf("lseek: %v", errno)
	}
	if st := f.Inode().Stat(); st.Mode&unix.S_IFMT != unix.S_IFIFO {
		t.Errorf("mode %o", st.Mode)
	}
	inputs, err := fs.Inputs(true)
	want := []Input{{"-", fmt.Sprintf("%x", sha256.Sum256([]byte("the quick brown fox")))}}
	if err != nil || fmt.Sprint(inputs) != fmt.Sprint(want) {
		t.Errorf("inputs %v, %v, want %v", inputs, err, want)
	}
}

func TestStdinErrors(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	data, err := NewStdin(io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(errors.New("broken"))))
	if err != nil {
		t.Fatal(err)
	}
	f := fs.OpenStdin(data)
	buf := make([]byte, 10)
	if n, errno := f.Read(c, buf); n != 2 || errno != 0 {
		t.Errorf("read %d, %v", n, errno)
	}
	if _, errno := f.Read(c, buf); errno != unix.EIO {
		t.Errorf("then %v", errno)
	}
	if _, errno := f.Write(c, buf); errno != unix.EBADF {
		t.Errorf("write: %v", errno)
	}
}

// TestStdinFile: a regular file of the host is one in the guest.
func TestStdinFile(t *testing.T) {
	path := t.TempDir() + "/in"
	write(t, path, "0123456789")
	host, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = host.Close() }()
	if _, err := host.Seek(3, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	fs := newFS(t, Config{})
	c := as(fs, 1000, 1000)
	data, err := NewStdin(host)
	if err != nil {
		t.Fatal(err)
	}
	f := fs.OpenStdin(data)
	buf := make([]byte, 20)
	if n, errno := f.Read(c, buf); errno != 0 || string(buf[:n]) != "3456789" {
		t.Errorf("read %q, %v", buf[:n], errno)
	}
	if st := f.Inode().Stat(); st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != 10 {
		t.Errorf("mode %o, size %d", st.Mode, st.Size)
	}
	if at, errno := f.Lseek(-1, unix.SEEK_END); errno != 0 || at != 9 {
		t.Errorf("lseek: %d, %v", at, errno)
	}
	o, errno := f.Map(false, false)
	if errno != 0 || o.Size() != 10 {
		t.Errorf("map: %v", errno)
	}
}

// TestStdinNull: the host's /dev/null is the guest's.
func TestStdinNull(t *testing.T) {
	host, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = host.Close() }()
	fs := newFS(t, Config{})
	c := as(fs, 1000, 1000)
	data, err := NewStdin(host)
	if err != nil {
		t.Fatal(err)
	}
	f := fs.OpenStdin(data)
	if n, errno := f.Read(c, make([]byte, 20)); n != 0 || errno != 0 {
		t.Errorf("read %d bytes, %v", n, errno)
	}
	if st := f.Inode().Stat(); st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != unix.Mkdev(1, 3) {
		t.Errorf("mode %o, device %x", st.Mode, st.Rdev)
	}
}

func TestOutput(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	s := &sink{}
	out, err := fs.OpenOutput(s, 1), fs.OpenOutput(s, 2)
	for _, f := range []*File{out, err, out} {
		if n, errno := f.Write(c, []byte("x")); n != 1 || errno != 0 {
			t.Errorf("write %d, %v", n, errno)
		}
	}
	again, errno := fs.OpenDentry(c, out.Dentry(), unix.O_WRONLY|unix.O_TRUNC)
	ok(t, errno)
	_, errno = again.Write(c, []byte("again"))
	ok(t, errno)
	if s.text != "1:x 2:x 1:x 1:again " {
		t.Errorf("written: %s", s.text)
	}
	if _, errno := out.Ioctl(unix.TCGETS); errno != unix.ENOTTY {
		t.Errorf("isatty: %v", errno)
	}
	if st := out.Inode().Stat(); st.Mode&unix.S_IFMT != unix.S_IFIFO {
		t.Errorf("mode %o", st.Mode)
	}
	if out.Ready() != unix.EPOLLOUT|unix.EPOLLWRNORM {
		t.Errorf("ready %#x", out.Ready())
	}
}

func TestDevices(t *testing.T) {
	fs := newFS(t, Config{})
	fs.Entropy = zeroEntropy{}
	c := as(fs, 1000, 1000)
	for _, test := range []struct {
		name         string
		open         unix.Errno
		read         int
		write        unix.Errno
		mapped       unix.Errno
		major, minor uint32
	}{
		{"null", 0, 0, 0, unix.ENODEV, 1, 3},
		{"zero", 0, 8, 0, 0, 1, 5},
		{"full", 0, 8, unix.ENOSPC, unix.ENODEV, 1, 7},
		{"random", 0, 8, 0, unix.ENODEV, 1, 8},
		{"urandom", 0, 8, 0, unix.ENODEV, 1, 9},
	} {
		d, errno := fs.Lookup(c, nil, "/dev/"+test.name, true)
		ok(t, errno)
		if st := d.Inode().Stat(); st.Mode != unix.S_IFCHR|0o666 || st.Rdev != unix.Mkdev(test.major, test.minor) {
			t.Errorf("%s: mode %o, device %#x", test.name, st.Mode, st.Rdev)
		}
		f, errno := fs.OpenDentry(c, d, unix.O_RDWR)
		if errno != test.open {
			t.Errorf("%s: open %v", test.name, errno)
		}
		if errno != 0 {
			continue
		}
		buf := bytes.Repeat([]byte{1}, 8)
		if n, errno := f.Read(c, buf); n != test.read || errno != 0 {
			t.Errorf("%s: read %d, %v", test.name, n, errno)
		}
		if _, errno := f.Write(c, buf); errno != test.write {
			t.Errorf("%s: write %v", test.name, errno)
		}
		if _, errno := f.Map(false, false); errno != test.mapped {
			t.Errorf("%s: map %v", test.name, errno)
		}
		f.Unref()
	}
	if _, errno := fs.Mknod(as(fs, 0, 0), nil, "/tmp/dev", unix.S_IFCHR|0o600); errno != unix.EPERM {
		t.Errorf("mknod of a device: %v", errno)
	}
}

func TestMemfd(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 1000, 1000)
	f, errno := fs.Memfd(c, "name", unix.MFD_ALLOW_SEALING)
	ok(t, errno)
	if got := f.Dentry().Path(); got != "/memfd:name (deleted)" {
		t.Errorf("path %s", got)
	}
	_, errno = f.Write(c, []byte("data"))
	ok(t, errno)
	ok(t, f.AddSeals(unix.F_SEAL_SHRINK|unix.F_SEAL_GROW))
	for what, got := range map[string]unix.Errno{
		"shrinking": f.Truncate(c, 1), "growing": f.Truncate(c, 9), "allocating": f.Allocate(c, 0, 0, 9),
	} {
		if got != unix.EPERM {
			t.Errorf("%s: %v", what, got)
		}
	}
	if _, errno := f.Pwrite(c, []byte("more than it holds"), 0); errno != unix.EPERM {
		t.Errorf("writing past the end: %v", errno)
	}
	_, errno = f.Pwrite(c, []byte("DATA"), 0)
	ok(t, errno)
	space := mm.New(fs.ram, mm.DefaultLimits())
	defer space.Release()
	for _, kind := range []int{unix.MAP_PRIVATE, unix.MAP_SHARED} {
		o, errno := f.Map(kind == unix.MAP_SHARED, true)
		ok(t, errno)
		at, errno := space.Mmap(mm.MapRequest{
			Length: 4, Prot: unix.PROT_READ, Flags: kind, Object: o, File: f, Readable: true, Writable: true,
		})
		ok(t, errno)
		o.Unref()
		if errno := f.AddSeals(unix.F_SEAL_WRITE); kind == unix.MAP_SHARED && errno != unix.EBUSY {
			t.Errorf("sealing what is mapped: %v", errno)
		}
		ok(t, space.Munmap(at, 4))
		f.Inode().seals &^= unix.F_SEAL_WRITE
	}
	ok(t, f.AddSeals(unix.F_SEAL_WRITE|unix.F_SEAL_SEAL))
	if _, errno := f.Pwrite(c, []byte("x"), 0); errno != unix.EPERM {
		t.Errorf("writing: %v", errno)
	}
	if _, errno := f.Map(true, true); errno != unix.EPERM {
		t.Errorf("mapping for writing: %v", errno)
	}
	if errno := f.AddSeals(0); errno != unix.EPERM {
		t.Errorf("sealing what is sealed: %v", errno)
	}
	plain, errno := fs.Memfd(c, "", 0)
	ok(t, errno)
	if errno := plain.AddSeals(unix.F_SEAL_GROW); errno != unix.EPERM {
		t.Errorf("sealing without MFD_ALLOW_SEALING: %v", errno)
	}
	if _, errno := fs.Memfd(c, strings.Repeat("n", 250), 0); errno != unix.EINVAL {
		t.Errorf("a long name: %v", errno)
	}
}
