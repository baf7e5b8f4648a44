package vfs

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// queue counts how often it is released.
type queue struct{ released int }

func (q *queue) Release() { q.released++ }

// TestQueueFiles expects the answers of a mounted mqueue file system of Linux.
func TestQueueFiles(t *testing.T) {
	fs := newFS(t, Config{})
	c, stranger := as(fs, 1000, 1000), as(fs, 1001, 1001)
	dir := fs.Queues()
	f, errno := fs.Open(c, dir, "q", unix.O_RDWR|unix.O_CREAT, 0o666)
	if errno != 0 {
		t.Fatal(errno)
	}
	q := &queue{}
	i := f.Inode()
	i.Object = q
	if !i.IsQueue() || f.Impl != nil || i.Size() != 80 || i.Mode() != unix.S_IFREG|0o644 {
		t.Errorf("queue %v, impl %v, size %d, mode %o", i.IsQueue(), f.Impl, i.Size(), i.Mode())
	}
	for what, errno := range map[string]unix.Errno{
		"mkdir":   fs.Mkdir(c, dir, "d", 0o755),
		"symlink": fs.Symlink(c, "x", dir, "l"),
		"link":    fs.Link(c, dir, "q", dir, "r", false),
		"rename":  fs.Rename(c, dir, "q", dir, "r", 0),
	} {
		if errno != unix.EPERM {
			t.Errorf("%s: %v, want EPERM", what, errno)
		}
	}
	if _, errno := fs.Open(stranger, dir, "q", unix.O_WRONLY, 0); errno != unix.EACCES {
		t.Errorf("a stranger opens it: %v", errno)
	}
	if errno := fs.Unlink(stranger, dir, "q"); errno != unix.EPERM {
		t.Errorf("a stranger removes it: %v", errno)
	}
	if errno := fs.Unlink(c, dir, "q"); errno != 0 || q.released != 0 {
		t.Errorf("unlink: %v, released %d times", errno, q.released)
	}
	if f.Unref(); q.released != 1 {
		t.Errorf("released %d times, want once", q.released)
	}
}

// TestQueueFilesAreCopied opens a queue in a snapshot.
func TestQueueFilesAreCopied(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	if _, errno := fs.Open(c, fs.Queues(), "q", unix.O_RDWR|unix.O_CREAT, 0o666); errno != 0 {
		t.Fatal(errno)
	}
	n := deepcopy.Copy(deepcopy.New(), fs)
	if errno := n.Unlink(as(n, 0, 0), n.Queues(), "q"); errno != 0 {
		t.Error(errno)
	}
	if _, errno := fs.Lookup(c, fs.Queues(), "q", true); errno != 0 {
		t.Errorf("in the original: %v", errno)
	}
}
