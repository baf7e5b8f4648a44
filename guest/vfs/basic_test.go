package vfs

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/mem"
)

// tick is a clock that moves by one second at each look.
type tick struct{ now int64 }

func (t *tick) RealtimeNS() int64 {
	t.now += 1e9
	return t.now
}

const epoch = 1_700_000_000 * nsPerSec

// newFS makes a file system for a test, with 64 MiB of memory.
func newFS(t testing.TB, cfg Config) *FS {
	t.Helper()
	cfg.RAM = testRAM(t)
	if cfg.FileTimeNS == 0 {
		cfg.FileTimeNS = epoch
	}
	fs, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	fs.Clock = &tick{epoch}
	t.Cleanup(func() {
		if err := fs.Close(); err != nil {
			t.Error(err)
		}
	})
	return fs
}

func testRAM(t testing.TB) *mem.RAM {
	t.Helper()
	ram, err := mem.NewRAM(64 << 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ram.Close)
	return ram
}

// as is the context of a user in the root of the tree.
func as(fs *FS, uid, gid uint32) *Ctx {
	return &Ctx{Cred: NewCred(uid, gid), Root: fs.Root(), Cwd: fs.Root(), Umask: 0o22}
}

func ok(t testing.TB, errno unix.Errno) {
	t.Helper()
	if errno != 0 {
		t.Fatalf("errno %d: %v", int(errno), errno)
	}
}

// write makes a host file with its folders.
func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// read returns a guest file's bytes.
func read(t testing.TB, fs *FS, c *Ctx, path string) string {
	t.Helper()
	f, errno := fs.Open(c, nil, path, unix.O_RDONLY, 0)
	if errno != 0 {
		t.Fatalf("open %s: %v", path, errno)
	}
	defer f.Unref()
	buf := make([]byte, 1<<16)
	n, errno := f.Read(c, buf)
	ok(t, errno)
	return string(buf[:n])
}

// put makes a guest file.
func put(t testing.TB, fs *FS, c *Ctx, path, text string) {
	t.Helper()
	f, errno := fs.Open(c, nil, path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o644)
	if errno != 0 {
		t.Fatalf("open %s: %v", path, errno)
	}
	defer f.Unref()
	_, errno = f.Write(c, []byte(text))
	ok(t, errno)
}

func TestReadWriteStat(t *testing.T) {
	host := t.TempDir()
	write(t, host+"/a/b", "hello")
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m"}}})
	c := as(fs, 0, 0)
	if got := read(t, fs, c, "/m/a/b"); got != "hello" {
		t.Fatalf("read %q", got)
	}
	put(t, fs, c, "/m/a/c", "new")
	f, errno := fs.Open(c, nil, "/m/a/b", unix.O_RDWR|unix.O_APPEND, 0)
	ok(t, errno)
	_, errno = f.Write(c, []byte(" world"))
	ok(t, errno)
	f.Unref()
	if got := read(t, fs, c, "/m/a/b"); got != "hello world" {
		t.Fatalf("read %q", got)
	}
	d, errno := fs.Open(c, nil, "/m/a", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	ok(t, errno)
	buf := make([]byte, 4096)
	n, errno := d.Getdents(c, buf)
	ok(t, errno)
	var names []string
	for _, e := range ParseDirents(buf[:n]) {
		names = append(names, e.Name)
	}
	if got := len(names); got != 4 || names[2] != "b" || names[3] != "c" {
		t.Fatalf("names %v", names)
	}
	if data, _ := os.ReadFile(host + "/a/b"); string(data) != "hello" {
		t.Fatalf("the host's file became %q", data)
	}
	dn, errno := fs.Lookup(c, nil, "/m/a/b", true)
	ok(t, errno)
	if st := dn.Inode().Stat(); st.Size != 11 || st.Mode != unix.S_IFREG|0o644 {
		t.Fatalf("stat %+v", st)
	}
	if dn.Path() != "/m/a/b" {
		t.Fatalf("path %s", dn.Path())
	}
}
