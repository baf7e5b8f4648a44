package vfs

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// state is the part of a kernel that refers to a file system. The file system comes
// last: the order in which a copier visits must not matter.
type state struct {
	cwd  *Dentry
	file *File
	c    *Ctx
	fs   *FS
}

func (s *state) copy() *state {
	s.fs.ram.NextGeneration()
	return deepcopy.Copy(deepcopy.New(), s)
}

func TestCopiesAreIndependent(t *testing.T) {
	host := t.TempDir()
	write(t, host+"/d/low", "of the host")
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m"}}})
	a := &state{fs: fs, c: as(fs, 0, 0)}
	var errno unix.Errno
	a.cwd, errno = fs.Lookup(a.c, nil, "/m/d", true)
	ok(t, errno)
	put(t, fs, a.c, "/m/d/up", "before")
	put(t, fs, a.c, "/m/gone", "removed")
	ok(t, fs.Link(a.c, nil, "/m/d/up", nil, "/tmp/link", false))
	a.file, errno = fs.Open(a.c, nil, "/m/gone", unix.O_RDWR, 0)
	ok(t, errno)
	ok(t, fs.Unlink(a.c, nil, "/m/gone"))
	a.file.Offset = 3

	b := a.copy()
	put(t, a.fs, a.c, "/m/d/up", "after")
	put(t, a.fs, a.c, "/m/d/low", "changed")
	ok(t, a.fs.Rename(a.c, nil, "/m/d", nil, "/m/e", 0))
	ok(t, a.fs.Mkdir(a.c, nil, "/tmp/new", 0o700))
	_, errno = a.file.Write(a.c, []byte("XXX"))
	ok(t, errno)

	for path, want := range map[string]string{"/m/d/up": "before", "/m/d/low": "of the host", "/tmp/link": "before"} {
		if got := read(t, b.fs, b.c, path); got != want {
			t.Errorf("in the copy %s is %q, want %q", path, got, want)
		}
	}
	for _, path := range []string{"/m/e", "/tmp/new", "/m/gone"} {
		if _, errno := b.fs.Lookup(b.c, nil, path, true); errno != unix.ENOENT {
			t.Errorf("in the copy %s: %v", path, errno)
		}
	}
	buf := make([]byte, 10)
	n, errno := b.file.Pread(b.c, buf, 0)
	if errno != 0 || string(buf[:n]) != "removed" || b.file.Offset != 3 {
		t.Errorf("the copy's description reads %q, %v, at %d", buf[:n], errno, b.file.Offset)
	}
	if d, errno := b.fs.Lookup(b.c, nil, "/m/d", true); errno != 0 || d != b.cwd {
		t.Errorf("the copy's working directory is not in its tree: %v", errno)
	}
	put(t, b.fs, b.c, "/m/d/up", "of the copy")
	if got := read(t, a.fs, a.c, "/tmp/link"); got != "after" {
		t.Errorf("the original became %q", got)
	}
	if got := b.file.Dentry().Path(); got != "/m/gone (deleted)" {
		t.Errorf("path %q", got)
	}
}

// TestCopyIsCompletePlainData copies a file system with one of everything. The
// copier panics on anything but plain data.
func TestCopyIsCompletePlainData(t *testing.T) {
	fs := newFS(t, Config{Paths: []string{"/bin", "/etc/passwd"}})
	s := &state{fs: fs, c: as(fs, 0, 0)}
	in, err := NewStdin(nil)
	if err != nil {
		t.Fatal(err)
	}
	fs.Entropy = zeroEntropy{}
	files := []*File{fs.OpenStdin(in), fs.OpenOutput(&sink{}, 1), fs.NewFile(fs.NewPipe(s.c), "pipe:", 0, nil)}
	memfd, errno := fs.Memfd(s.c, "x", 0)
	ok(t, errno)
	files = append(files, memfd)
	for _, path := range []string{"/dev/zero", "/bin", "/etc/passwd", "/tmp"} {
		f, errno := fs.Open(s.c, nil, path, unix.O_RDONLY, 0)
		ok(t, errno)
		files = append(files, f)
	}
	_, errno = files[5].Getdents(s.c, make([]byte, 1000))
	ok(t, errno)
	ok(t, files[6].SetLock(LockOwner{Process: 1}, unix.Flock_t{Type: unix.F_RDLCK}, 0))
	ok(t, files[6].SetLease(s.c, unix.F_RDLCK, 6, 0))
	type all struct {
		s     *state
		files []*File
	}
	b := deepcopy.Copy(deepcopy.New(), &all{s, files})
	for i, f := range b.files {
		if f == files[i] || f.fs != b.s.fs || f.Inode().fs != b.s.fs && f.Inode().node == nil {
			t.Errorf("description %d is not copied", i)
		}
	}
	if l := b.files[6].Inode().leaseOf(b.files[6]); l == nil || l == files[6].Inode().leaseOf(files[6]) {
		t.Error("a lease is not copied")
	}
}

func TestDeepTreesCanBeCopied(t *testing.T) {
	fs := newFS(t, Config{MaxInodes: 20000})
	s := &state{fs: fs, c: as(fs, 0, 0)}
	depth := 0
	for ; ; depth++ {
		if errno := fs.Mkdir(s.c, nil, "d", 0o755); errno == unix.ENAMETOOLONG {
			break
		} else if errno != 0 {
			t.Fatal(errno)
		}
		d, errno := fs.Lookup(s.c, nil, "d", true)
		ok(t, errno)
		s.c.Cwd = d
	}
	if depth != maxDepth {
		t.Errorf("%d folders nest, want %d", depth, maxDepth)
	}
	ok(t, fs.Mkdir(s.c, nil, "/tmp/x", 0o755))
	if errno := fs.Rename(s.c, nil, "/tmp", nil, "d", 0); errno != unix.EBUSY && errno != unix.ENAMETOOLONG {
		t.Errorf("a tree can be moved to the bottom of another: %v", errno)
	}
	b := s.copy()
	if got := b.c.Cwd.depthOf(); got != depth {
		t.Errorf("the copy's working directory is %d deep", got)
	}
	deepcopy.Release(b)
}

type zeroEntropy struct{}

func (zeroEntropy) Read(p []byte) { clear(p) }

// sink keeps all output.
type sink struct{ text string }

func (s *sink) Write(fd int, p []byte) (int, unix.Errno) {
	s.text += fmt.Sprintf("%d:%s ", fd, p)
	return len(p), 0
}

func (s *sink) Broken(int) bool { return false }

func BenchmarkSnapshot10000Files(b *testing.B) {
	fs := newFS(b, Config{MaxInodes: 20000})
	s := &state{fs: fs, c: as(fs, 0, 0)}
	for i := range 100 {
		ok(b, fs.Mkdir(s.c, nil, fmt.Sprintf("/tmp/%d", i), 0o755))
		for j := range 99 {
			_, errno := fs.Mknod(s.c, nil, fmt.Sprintf("/tmp/%d/%d", i, j), 0o644)
			ok(b, errno)
		}
	}
	for b.Loop() {
		s.copy()
	}
}
