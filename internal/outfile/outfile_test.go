package outfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// chdir makes a folder for a test the current one.
func chdir(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// demand compares the files of the current folder, as "name=content".
func demand(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			text, err := os.ReadFile(e.Name())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Name()+"="+string(text))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the folder has %q, want %q", got, want)
	}
}

func TestOldContentStaysUntilCommit(t *testing.T) {
	chdir(t)
	write(t, "a", "old")
	f, err := Create("a")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, "new")
	demand(t, "a=old", "a.part=new")
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Discard()
	demand(t, "a=new")
}

func TestEndings(t *testing.T) {
	chdir(t)
	write(t, "a", "old")
	broken := errors.New("broken")
	if err := Write("a", func(w io.Writer) error { fmt.Fprint(w, "ne"); return broken }); err != broken {
		t.Error(err)
	}
	demand(t, "a=old")
	first, err := Create("a")
	if err != nil {
		t.Fatal(err)
	}
	second, err := Create("a")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(first, "1")
	fmt.Fprint(second, "2")
	if kept := second.Keep(); kept != "a.part-2" {
		t.Errorf("kept as %q", kept)
	}
	second.Discard()
	if err := first.Commit(); err != nil {
		t.Fatal(err)
	}
	demand(t, "a=1", "a.part-2=2")
}

func TestPermissionsAreKept(t *testing.T) {
	chdir(t)
	write(t, "a", "old")
	if err := os.Chmod("a", 0o640); err != nil {
		t.Fatal(err)
	}
	old := unix.Umask(0o027)
	defer unix.Umask(old)
	for name, want := range map[string]os.FileMode{"a": 0o640, "b": 0o640} {
		if err := WriteBytes(name, nil); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// TestLinksAreFollowed: the target of a symbolic link is replaced, not the link.
func TestLinksAreFollowed(t *testing.T) {
	chdir(t)
	if err := os.Mkdir("d", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"first": "d/second", "d/second": "../third", "loop": "loop", "dir": "d"} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"new", "newer"} {
		if err := WriteBytes("first", []byte(text)); err != nil {
			t.Fatal(err)
		}
		demand(t, "third="+text)
	}
	if err := WriteBytes("loop", nil); err != unix.ELOOP {
		t.Error(err)
	}
	if err := WriteBytes("dir", nil); err != unix.EISDIR {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	chdir(t)
	write(t, "file", "old")
	for path, want := range map[string]error{
		"": unix.ENOENT, ".": unix.EISDIR, "new/": unix.EISDIR, "no/such": unix.ENOENT, "file/a": unix.ENOTDIR,
		strings.Repeat("x", 256): unix.ENAMETOOLONG, "/dev/fd/987": unix.EBADF,
	} {
		if err := Check(path); !errors.Is(err, want) {
			t.Errorf("check %q: %v, want %v", path, err, want)
		}
		if err := WriteBytes(path, nil); !errors.Is(err, want) {
			t.Errorf("write %q: %v, want %v", path, err, want)
		}
	}
	demand(t, "file=old")
	if err := WriteBytes(strings.Repeat("x", 255), nil); err != nil {
		t.Errorf("the longest name: %v", err)
	}
}

// TestReadOnly needs a user whom permissions bind.
func TestReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("permissions do not bind root")
	}
	chdir(t)
	write(t, "file", "old")
	if err := os.Chmod("file", 0o444); err != nil {
		t.Fatal(err)
	}
	if err := Check("file"); err != unix.EACCES {
		t.Error(err)
	}
	if err := os.Chmod(".", 0o555); err != nil {
		t.Fatal(err)
	}
	if err := Check("new"); err != unix.EACCES {
		t.Error(err)
	}
	if err := os.Chmod(".", 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestCheckChangesNothing(t *testing.T) {
	chdir(t)
	write(t, "file", "old")
	for _, path := range []string{"file", "new", "/dev/null"} {
		if err := Check(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	demand(t, "file=old")
}

// TestDirectFiles: devices, pipes and open descriptors are written as they are.
func TestDirectFiles(t *testing.T) {
	chdir(t)
	if err := WriteBytes("/dev/full", []byte("x")); !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
	if err := unix.Mkfifo("pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		text, _ := os.ReadFile("pipe")
		read <- string(text)
	}()
	if err := WriteBytes("pipe", []byte("through")); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "through" {
		t.Errorf("the pipe gave %q", got)
	}
	file, err := os.Create("file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fmt.Fprint(file, "before ")
	if err := WriteBytes(fmt.Sprintf("/dev/fd/%d", file.Fd()), []byte("during ")); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(file, "after")
	demand(t, "file=before during after")
}

// TestFullDisk needs a file system of its own, which only root can mount.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "file")
	write(t, path, "old")
	if err := WriteBytes(path, make([]byte, 1<<20)); !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
	entries, err := os.ReadDir(dir)
	if text, _ := os.ReadFile(path); string(text) != "old" || len(entries) != 1 || err != nil {
		t.Errorf("the file has %q, the folder %v, %v", text, entries, err)
	}
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, "whole")
	if _, err := f.Write(make([]byte, 1<<20)); !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
	if err := f.Truncate(5); err != nil {
		t.Error(err)
	}
	part := f.Keep()
	if text, _ := os.ReadFile(part); string(text) != "whole" || part != path+".part" {
		t.Errorf("%s has %q", part, text)
	}
}
