package vfs

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// TestTerminalFiles expects the answers of devpts of Linux.
func TestTerminalFiles(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 1000, 1000)
	d := fs.AddTerminal(c, 7, nil)
	if !fs.HasTerminal(7) || fs.HasTerminal(6) {
		t.Error("the file is not there, or another")
	}
	found, errno := fs.Lookup(c, nil, "/dev/pts/7", true)
	if errno != 0 || found != d {
		t.Fatal(errno)
	}
	st := found.Inode().Stat()
	if st.Mode != unix.S_IFCHR|0o620 || st.Uid != 1000 || st.Gid != 5 || st.Ino != 10 || st.Rdev != unix.Mkdev(136, 7) {
		t.Errorf("%+v", st)
	}
	for name, want := range map[string]bool{"/dev/pts/7": true, "/dev/pts/ptmx": true, "/dev/ptmx": true, "/dev/tty": true, "/dev/null": false} {
		x, errno := fs.Lookup(c, nil, name, true)
		if errno != 0 {
			t.Fatal(errno)
		}
		if _, ok := x.Inode().TerminalDevice(); ok != want {
			t.Errorf("%s: a terminal %v", name, ok)
		}
	}
	root := as(fs, 0, 0)
	for what, got := range map[string][2]unix.Errno{
		"mkdir":  {fs.Mkdir(root, nil, "/dev/pts/d", 0o755), unix.EPERM},
		"unlink": {fs.Unlink(root, nil, "/dev/pts/7"), unix.EPERM},
		"rename": {fs.Rename(root, nil, "/dev/pts/7", nil, "/dev/pts/8", 0), unix.EPERM},
		"chmod":  {d.Inode().Chmod(c, 0o600), 0},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %v, want %v", what, got[0], got[1])
		}
	}
	if _, errno := fs.Open(root, nil, "/dev/pts/new", unix.O_CREAT|unix.O_RDWR, 0o600); errno != unix.EACCES {
		t.Errorf("create: %v", errno)
	}
	n := deepcopy.Copy(deepcopy.New(), fs)
	fs.RemoveTerminal(d)
	if fs.HasTerminal(7) || !n.HasTerminal(7) {
		t.Error("removed in the copy, or not in the original")
	}
}
