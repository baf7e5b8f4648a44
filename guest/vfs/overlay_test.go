package vfs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
)

// names lists a guest folder without "." and "..".
func names(t testing.TB, fs *FS, c *Ctx, path string) string {
	t.Helper()
	f, errno := fs.Open(c, nil, path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if errno != 0 {
		t.Fatalf("open %s: %v", path, errno)
	}
	defer f.Unref()
	var all []string
	buf := make([]byte, 256)
	for {
		n, errno := f.Getdents(c, buf)
		ok(t, errno)
		if n == 0 {
			return strings.Join(all[2:], " ")
		}
		for _, e := range ParseDirents(buf[:n]) {
			all = append(all, e.Name)
		}
	}
}

func TestOverlayLaws(t *testing.T) {
	host := t.TempDir()
	for _, name := range []string{"a/1", "a/2", "a/deep/3", "b/4"} {
		write(t, host+"/"+name, "text of "+name)
	}
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m"}}})
	c := as(fs, 0, 0)
	step := func(what string, errno, want unix.Errno) {
		t.Helper()
		if errno != want {
			t.Fatalf("%s: %v, want %v", what, errno, want)
		}
	}
	is := func(path, want string) {
		t.Helper()
		if got := names(t, fs, c, path); got != want {
			t.Errorf("%s holds %q, want %q", path, got, want)
		}
	}
	step("a removed name is gone", fs.Unlink(c, nil, "/m/a/1"), 0)
	is("/m/a", "2 deep")
	step("and can be made again", fs.Mkdir(c, nil, "/m/a/1", 0o755), 0)
	is("/m/a/1", "")
	step("a folder with lower names is not empty", fs.Rmdir(c, nil, "/m/a/deep"), unix.ENOTEMPTY)
	step("a lower folder can be renamed", fs.Rename(c, nil, "/m/a/deep", nil, "/tmp/moved", 0), 0)
	if got := read(t, fs, c, "/tmp/moved/3"); got != "text of a/deep/3" {
		t.Errorf("its file reads %q", got)
	}
	is("/m/a", "1 2")
	step("its place can be taken", fs.Mkdir(c, nil, "/m/a/deep", 0o755), 0)
	is("/m/a/deep", "")
	step("files rename across layers", fs.Rename(c, nil, "/m/b/4", nil, "/m/a/deep/5", 0), 0)
	step("the emptied folder goes", fs.Rmdir(c, nil, "/m/b"), 0)
	step("a new one is opaque", fs.Mkdir(c, nil, "/m/b", 0o755), 0)
	is("/m/b", "")
	is("/m", "a b")
	step("exchange crosses layers", fs.Rename(c, nil, "/m/a/2", nil, "/m/b", unix.RENAME_EXCHANGE), 0)
	if got := read(t, fs, c, "/m/b"); got != "text of a/2" {
		t.Errorf("it reads %q", got)
	}
}

// TestCopyUpKeepsIdentity: files opened or mapped before a change see it.
func TestCopyUpKeepsIdentity(t *testing.T) {
	host := t.TempDir()
	write(t, host+"/f", strings.Repeat("x", 3*arch.PageSize))
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m"}}})
	c := as(fs, 0, 0)
	before, errno := fs.Open(c, nil, "/m/f", unix.O_RDONLY, 0)
	ok(t, errno)
	object, errno := before.Map(true, false)
	ok(t, errno)
	ino := before.Inode().Ino()
	after, errno := fs.Open(c, nil, "/m/f", unix.O_RDWR, 0)
	ok(t, errno)
	_, errno = after.Pwrite(c, []byte("new"), arch.PageSize)
	ok(t, errno)
	buf := make([]byte, 4)
	_, errno = before.Pread(c, buf, arch.PageSize)
	ok(t, errno)
	if string(buf) != "newx" || after.Inode().Ino() != ino {
		t.Errorf("the first description reads %q; inode %d, then %d", buf, ino, after.Inode().Ino())
	}
	if _, errno := object.ReadAt(buf, arch.PageSize); errno != 0 || string(buf) != "newx" {
		t.Errorf("the mapping reads %q, %v", buf, errno)
	}
	if got := object.Resident(); got != 1 {
		t.Errorf("%d pages were copied, want 1", got)
	}
}

// TestStorageIsReleased: pages of a file go back when its last name,
// description and mapping are gone, not before.
func TestStorageIsReleased(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	start := fs.ram.Used()
	put(t, fs, c, "/tmp/f", strings.Repeat("x", 10*arch.PageSize))
	f, errno := fs.Open(c, nil, "/tmp/f", unix.O_RDONLY, 0)
	ok(t, errno)
	object, errno := f.Map(false, false)
	ok(t, errno)
	for i, release := range []func(){func() { ok(t, fs.Unlink(c, nil, "/tmp/f")) }, f.Unref, object.Unref} {
		if used := fs.ram.Used() - start; used != 10 {
			t.Errorf("step %d: %d pages in use, want 10", i, used)
		}
		release()
	}
	if used := fs.ram.Used(); used != start {
		t.Errorf("%d pages are never released", used-start)
	}
	if fs.inodes != 0 {
		t.Errorf("%d inodes are never released", fs.inodes)
	}
}

func TestReclaim(t *testing.T) {
	host := t.TempDir()
	for _, name := range []string{"/idle", "/changed", "/mapped"} {
		write(t, host+name, strings.Repeat("x", 4*arch.PageSize))
	}
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m"}}})
	c := as(fs, 0, 0)
	content := func(path string, flags int) *mm.Object {
		f, errno := fs.Open(c, nil, path, flags, 0)
		ok(t, errno)
		defer f.Unref()
		o, errno := f.Map(flags == unix.O_RDWR, flags == unix.O_RDWR)
		ok(t, errno)
		for i := range uint64(4) {
			_, errno := o.Page(i)
			ok(t, errno)
		}
		return o
	}
	content("/m/idle", unix.O_RDONLY).Unref()
	changed := content("/m/changed", unix.O_RDWR)
	defer changed.Unref()
	_, errno := changed.WriteAt([]byte("yy"), arch.PageSize-1) // two pages
	ok(t, errno)
	mapped := content("/m/mapped", unix.O_RDONLY)
	defer mapped.Unref()
	before := fs.ram.Used()
	if got := fs.Reclaim(); got != 4+2+4 || before-fs.ram.Used() != 10 {
		t.Errorf("%d pages were reclaimed and %d are free, want 10", got, before-fs.ram.Used())
	}
	want := strings.Repeat("x", 4*arch.PageSize)
	for _, name := range []string{"/m/idle", "/m/mapped"} {
		if read(t, fs, c, name) != want {
			t.Errorf("%s is another file than before", name)
		}
	}
	want = want[:arch.PageSize-1] + "yy" + want[arch.PageSize+1:]
	if read(t, fs, c, "/m/changed") != want {
		t.Error("what was written is lost")
	}
}

func TestLimits(t *testing.T) {
	fs := newFS(t, Config{MaxInodes: 3})
	c := as(fs, 0, 0)
	for i := range 3 {
		put(t, fs, c, fmt.Sprintf("/tmp/%d", i), "")
	}
	if _, errno := fs.Mknod(c, nil, "/tmp/3", 0o644); errno != unix.ENOSPC {
		t.Errorf("the fourth inode: %v", errno)
	}
	if errno := fs.Symlink(c, "x", nil, "/tmp/3"); errno != unix.ENOSPC {
		t.Errorf("a symbolic link: %v", errno)
	}
	f, errno := fs.Open(c, nil, "/tmp/0", unix.O_RDWR, 0)
	ok(t, errno)
	if errno := f.Allocate(c, 0, 0, 1<<40); errno != unix.ENOSPC {
		t.Errorf("fallocate of 1 TiB: %v", errno)
	}
	ok(t, f.Truncate(c, 1<<40))
	if _, errno := f.Pwrite(c, []byte("x"), 1<<39); errno != 0 {
		t.Errorf("one byte in 1 TiB: %v", errno)
	}
	data := make([]byte, 1<<20)
	written := 0
	for {
		n, errno := f.Write(c, data)
		written += n
		if errno == unix.ENOSPC {
			break
		}
		ok(t, errno)
		if written > 1<<30 {
			t.Fatal("memory has no end")
		}
	}
	if written < 59<<20 || written > 60<<20 { // the rest is for programs
		t.Errorf("%d bytes fit into 64 MiB", written)
	}
	if st := f.Inode().Stat(); st.Blocks*512 < int64(written) || st.Blocks*512 > 64<<20 {
		t.Errorf("%d blocks for %d bytes", st.Blocks, written)
	}
	if _, errno := f.Pwrite(c, []byte("xy"), 1<<63-1); errno != unix.EFBIG {
		t.Errorf("a write at the end of the world: %v", errno)
	}
}

func TestExecutingAndWriting(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	put(t, fs, c, "/tmp/prog", "#!")
	d, errno := fs.Lookup(c, nil, "/tmp/prog", true)
	ok(t, errno)
	if _, errno := fs.OpenExec(c, d); errno != unix.EACCES {
		t.Errorf("running without an execute bit: %v", errno)
	}
	ok(t, d.Inode().Chmod(c, 0o755))
	w, errno := fs.OpenDentry(c, d, unix.O_WRONLY)
	ok(t, errno)
	if _, errno := fs.OpenExec(c, d); errno != unix.ETXTBSY {
		t.Errorf("running what is open for writing: %v", errno)
	}
	w.Unref()
	x, errno := fs.OpenExec(c, d)
	ok(t, errno)
	if _, errno := fs.OpenDentry(c, d, unix.O_RDWR); errno != unix.ETXTBSY {
		t.Errorf("writing to what runs: %v", errno)
	}
	if errno := d.Inode().Truncate(c, 0); errno != unix.ETXTBSY {
		t.Errorf("cutting what runs: %v", errno)
	}
	x.Unref()
	w, errno = fs.OpenDentry(c, d, unix.O_RDWR)
	ok(t, errno)
	w.Unref()
	dir, errno := fs.Lookup(c, nil, "/tmp", true)
	ok(t, errno)
	if _, errno := fs.OpenExec(c, dir); errno != unix.EACCES {
		t.Errorf("running a folder: %v", errno)
	}
}

func TestTmpfile(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	f, errno := fs.Open(c, nil, "/tmp", unix.O_TMPFILE|unix.O_RDWR, 0o600)
	ok(t, errno)
	_, errno = f.Write(c, []byte("temporary"))
	ok(t, errno)
	if got := names(t, fs, c, "/tmp"); got != "" {
		t.Errorf("/tmp holds %q", got)
	}
	ok(t, fs.LinkDentry(c, f.Dentry(), nil, "/tmp/named"))
	if got := read(t, fs, c, "/tmp/named"); got != "temporary" {
		t.Errorf("it reads %q", got)
	}
	f.Unref()
	f, errno = fs.Open(c, nil, "/tmp", unix.O_TMPFILE|unix.O_RDWR|unix.O_EXCL, 0o600)
	ok(t, errno)
	if errno := fs.LinkDentry(c, f.Dentry(), nil, "/tmp/other"); errno != unix.ENOENT {
		t.Errorf("a name for an O_EXCL temporary file: %v", errno)
	}
	f.Unref()
}

// TestListingIsStable: names that stay are listed exactly once, whatever comes
// and goes meanwhile, and positions keep their meaning.
func TestListingIsStable(t *testing.T) {
	host := t.TempDir()
	var want []string
	for i := range 20 {
		name := fmt.Sprintf("f%02d", i)
		write(t, host+"/"+name, "")
		if i%3 != 0 {
			want = append(want, name)
		}
	}
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m"}}})
	c := as(fs, 0, 0)
	f, errno := fs.Open(c, nil, "/m", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	ok(t, errno)
	buf := make([]byte, 100)
	var got []string
	var marks []int64
	for i := 0; ; i++ {
		marks = append(marks, f.Offset)
		n, errno := f.Getdents(c, buf)
		ok(t, errno)
		if n == 0 {
			break
		}
		for _, e := range ParseDirents(buf[:n]) {
			got = append(got, e.Name)
		}
		if i == 1 {
			for j := 0; j < 20; j += 3 {
				ok(t, fs.Unlink(c, nil, fmt.Sprintf("/m/f%02d", j)))
			}
			put(t, fs, c, "/m/a-new", "")
		}
	}
	stayed := slices.DeleteFunc(slices.Clone(got), func(name string) bool { return !slices.Contains(want, name) })
	if !slices.Equal(stayed, want) {
		t.Errorf("listed %v, want %v and perhaps others", got, want)
	}
	_, errno = f.Lseek(marks[3], unix.SEEK_SET)
	ok(t, errno)
	n, errno := f.Getdents(c, buf)
	ok(t, errno)
	if first := ParseDirents(buf[:n])[0].Name; !strings.Contains(strings.Join(got[2:], " "), first) || first < "f05" {
		t.Errorf("at an old position comes %s", first)
	}
	_, errno = f.Lseek(0, unix.SEEK_SET)
	ok(t, errno)
	n, errno = f.Getdents(c, buf)
	ok(t, errno)
	if e := ParseDirents(buf[:n]); e[0].Name != "." || e[1].Name != ".." || e[2].Name != "a-new" {
		t.Errorf("after rewinding: %v", e)
	}
	if _, errno := f.Getdents(c, buf[:20]); errno != unix.EINVAL {
		t.Errorf("a buffer that is too small: %v", errno)
	}
}

// TestHoles compares data and holes with the host's file system.
func TestHoles(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	f, errno := fs.Open(c, nil, "/tmp/sparse", unix.O_RDWR|unix.O_CREAT, 0o600)
	ok(t, errno)
	native, err := os.CreateTemp("", "sparse")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = native.Close(); _ = os.Remove(native.Name()) }()
	for _, at := range []int64{0, 5 * arch.PageSize, 6 * arch.PageSize, 900 * arch.PageSize} {
		_, errno := f.Pwrite(c, []byte("data"), at)
		ok(t, errno)
		if _, err := native.WriteAt([]byte("data"), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := native.Truncate(1000 * arch.PageSize); err != nil {
		t.Fatal(err)
	}
	ok(t, f.Truncate(c, 1000*arch.PageSize))
	for _, from := range []int64{0, 1, 4096, 20480, 24576, 30000, 900 * 4096, 901 * 4096, 999 * 4096, 1000 * 4096, -1} {
		for _, whence := range []int{unix.SEEK_DATA, unix.SEEK_HOLE} {
			want, err := unix.Seek(int(native.Fd()), from, whence)
			got, errno := f.Lseek(from, whence)
			if errno != errnoOf(err) || errno == 0 && got != want {
				t.Errorf("seek %d from %d: %d %v, the host says %d %v", whence, from, got, errno, want, err)
			}
		}
	}
}

// TestHiddenFiles: hidden files are neither found nor listed, and their names are free.
func TestHiddenFiles(t *testing.T) {
	host := t.TempDir()
	write(t, filepath.Join(host, "d", "trace"), "host")
	write(t, filepath.Join(host, "d", "other"), "host")
	write(t, filepath.Join(host, "trace"), "host")
	if err := os.Symlink("d", filepath.Join(host, "link")); err != nil {
		t.Fatal(err)
	}
	fs := newFS(t, Config{
		RootFS: host, Hidden: []string{filepath.Join(host, "link", "trace"), filepath.Join(host, "d", "new"), filepath.Join(host, "no", "such")},
	})
	c := as(fs, 0, 0)
	if got := names(t, fs, c, "/d"); got != "other" {
		t.Errorf("it has %q", got)
	}
	if _, errno := fs.Open(c, nil, "/link/trace", unix.O_RDONLY, 0); errno != unix.ENOENT {
		t.Error(errno)
	}
	if got := read(t, fs, c, "/trace"); got != "host" {
		t.Errorf("the file of that name in another folder has %q", got)
	}
	put(t, fs, c, "/d/trace", "guest")
	if got := names(t, fs, c, "/d"); got != "other trace" {
		t.Errorf("it has %q", got)
	}
	if got := read(t, fs, c, "/d/trace"); got != "guest" {
		t.Errorf("the guest's own file has %q", got)
	}
}
