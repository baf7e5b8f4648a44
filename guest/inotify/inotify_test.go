package inotify_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/guest/inotify"
	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// world is a file system with a user, and instances that watch it.
type world struct {
	FS      *vfs.FS
	Ctx     *vfs.Ctx
	System  *inotify.System
	Account *kmem.Account
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ram, err := mem.NewRAM(16 << 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ram.Close)
	account := kmem.New(1 << 30)
	fs, err := vfs.New(vfs.Config{RAM: ram, Memory: account})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	c := &vfs.Ctx{Cred: vfs.NewCred(0, 0), Root: fs.Root(), Cwd: fs.Root()}
	return &world{fs, c, inotify.New(account), account}
}

func (w *world) instance(t *testing.T) *inotify.Instance {
	t.Helper()
	x, errno := w.System.NewInstance(5)
	if errno != 0 {
		t.Fatal(errno)
	}
	return x
}

func (w *world) watch(t *testing.T, x *inotify.Instance, path string, mask uint32) int32 {
	t.Helper()
	d, errno := w.FS.Lookup(w.Ctx, nil, path, true)
	if errno != 0 {
		t.Fatal(errno)
	}
	wd, errno := x.Add(d.Inode(), mask)
	if errno != 0 {
		t.Fatal(errno)
	}
	return wd
}

func (w *world) create(t *testing.T, path string) {
	t.Helper()
	f, errno := w.FS.Open(w.Ctx, nil, path, unix.O_CREAT|unix.O_WRONLY, 0o644)
	if errno != 0 {
		t.Fatal(errno)
	}
	f.Opened()
	f.Unref()
}

// take reads all events that wait.
func take(x *inotify.Instance) string {
	var all []string
	b := make([]byte, 1<<16)
	n, _ := x.Read(nil, b, 0)
	for b = b[:n]; len(b) > 0; {
		wd, mask, size := int32(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[12:])
		all = append(all, fmt.Sprintf("%d:%x:%s", wd, mask, strings.TrimRight(string(b[16:16+size]), "\x00")))
		b = b[16+size:]
	}
	return strings.Join(all, " ")
}

func TestEvents(t *testing.T) {
	w := newWorld(t)
	x := w.instance(t)
	if wd := w.watch(t, x, "/tmp", unix.IN_CREATE|unix.IN_DELETE); wd != 1 {
		t.Errorf("the first watch is %d", wd)
	}
	w.create(t, "/tmp/a")
	w.watch(t, x, "/tmp/a", unix.IN_ALL_EVENTS)
	w.create(t, "/tmp/a")
	if errno := w.FS.Unlink(w.Ctx, nil, "/tmp/a"); errno != 0 {
		t.Fatal(errno)
	}
	want := fmt.Sprintf("1:%x:a 2:%x: 2:%x: 2:%x: 2:%x: 2:%x: 1:%x:a", unix.IN_CREATE, unix.IN_OPEN, unix.IN_CLOSE_WRITE,
		unix.IN_ATTRIB, unix.IN_DELETE_SELF, unix.IN_IGNORED, unix.IN_DELETE)
	if got := take(x); got != want {
		t.Errorf("events %s\nwant   %s", got, want)
	}
	if errno := x.Remove(2); errno != unix.EINVAL {
		t.Errorf("a watch that ended is removed: %v", errno)
	}
}

// TestOverflow fills a queue: the last event says that others are lost.
func TestOverflow(t *testing.T) {
	w := newWorld(t)
	x := w.instance(t)
	w.watch(t, x, "/tmp", unix.IN_CREATE)
	for n := range linux.InotifyMaxQueuedEvents + 10 {
		if errno := w.FS.Symlink(w.Ctx, "x", nil, fmt.Sprintf("/tmp/%d", n)); errno != 0 {
			t.Fatal(errno)
		}
		if errno := w.FS.Unlink(w.Ctx, nil, fmt.Sprintf("/tmp/%d", n)); errno != 0 {
			t.Fatal(errno)
		}
	}
	n := 0
	b := make([]byte, 40) // for one event
	for {
		if _, errno := x.Read(nil, b, 0); errno == unix.EAGAIN {
			break
		}
		n++
	}
	if mask := binary.LittleEndian.Uint32(b[4:]); n != linux.InotifyMaxQueuedEvents+1 || mask != unix.IN_Q_OVERFLOW {
		t.Errorf("%d reads, the last event is %x", n, mask)
	}
}

func TestMemoryIsGivenBack(t *testing.T) {
	w := newWorld(t)
	before := w.Account.Used()
	x := w.instance(t)
	w.watch(t, x, "/tmp", unix.IN_ALL_EVENTS)
	wd := w.watch(t, x, "/", unix.IN_ALL_EVENTS)
	w.create(t, "/tmp/a")
	if errno := x.Remove(wd); errno != 0 {
		t.Fatal(errno)
	}
	x.Close()
	if used := w.Account.Used(); used != before {
		t.Errorf("%d bytes are left", used-before)
	}
	w.create(t, "/tmp/b")
	for range linux.InotifyMaxUserInstances {
		w.instance(t)
	}
	if _, errno := w.System.NewInstance(5); errno != unix.EMFILE {
		t.Errorf("one instance too many: %v", errno)
	}
	if _, errno := w.System.NewInstance(6); errno != 0 {
		t.Errorf("an instance of another user: %v", errno)
	}
}

func TestMasks(t *testing.T) {
	for mask, want := range map[uint32]unix.Errno{
		unix.IN_OPEN: 0, 0: unix.EINVAL, 1 << 20: unix.EINVAL, unix.IN_ONLYDIR: 0,
		unix.IN_OPEN | unix.IN_MASK_ADD | unix.IN_MASK_CREATE: unix.EINVAL,
	} {
		if errno := inotify.CheckMask(mask); errno != want {
			t.Errorf("mask %x: %v, want %v", mask, errno, want)
		}
	}
}

func TestCopiesAreIndependent(t *testing.T) {
	w := newWorld(t)
	type both struct {
		World    *world
		Instance *inotify.Instance
	}
	a := both{w, w.instance(t)}
	w.watch(t, a.Instance, "/tmp", unix.IN_CREATE)
	b := deepcopy.Copy(deepcopy.New(), a)
	b.World.create(t, "/tmp/in-the-copy")
	if got := take(b.Instance); !strings.HasSuffix(got, "in-the-copy") {
		t.Errorf("events of the copy: %q", got)
	}
	if got := take(a.Instance); got != "" {
		t.Errorf("events of the original: %q", got)
	}
}
