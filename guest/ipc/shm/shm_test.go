package shm_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/guest/ipc"
	"github.com/heddle-dmt/heddle/guest/ipc/shm"
	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// host is a kernel in which one process acts.
type host struct{ caller ipc.Caller }

func (h *host) Caller() *ipc.Caller { return &h.caller }

type world struct {
	RAM     *mem.RAM
	Account *kmem.Account
	Host    *host
	System  *shm.System
	Space   *mm.AddressSpace
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ram, err := mem.NewRAM(16 << 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ram.Close)
	w := &world{RAM: ram, Account: kmem.New(1 << 30), Host: &host{ipc.Caller{PID: 5, Owner: true, Now: 10}}}
	w.System = shm.New(ram, w.Account, w.Host)
	w.Space = mm.New(ram, mm.DefaultLimits())
	t.Cleanup(func() { w.Space.Release() })
	return w
}

func (w *world) make(t *testing.T, size uint64) (*shm.Segment, int32) {
	t.Helper()
	id, errno := w.System.Get(&w.Host.caller, ipc.Private, size, 0o600)
	if errno != 0 {
		t.Fatal(errno)
	}
	s, _ := w.System.Find(id)
	return s, id
}

func (w *world) attach(t *testing.T, id int32, addr arch.Addr, flags uint32) arch.Addr {
	t.Helper()
	at, errno := w.System.Attach(&w.Host.caller, w.Space, id, addr, flags)
	if errno != 0 {
		t.Fatal(errno)
	}
	return at
}

// TestMappingsAreCounted follows a segment through everything that maps and
// unmaps: the last mapping destroys it.
func TestMappingsAreCounted(t *testing.T) {
	w := newWorld(t)
	before := w.RAM.Used()
	s, id := w.make(t, 3*arch.PageSize)
	at := w.attach(t, id, 0, 0)
	if errno := w.Space.CopyOut(at, []byte("bytes")); errno != 0 {
		t.Fatal(errno)
	}
	check := func(when string, want uint64) {
		t.Helper()
		if got := s.Status().Mappings; got != want {
			t.Errorf("%s: %d mappings, want %d", when, got, want)
		}
	}
	check("attached", 1)
	w.Host.caller.PID, w.Host.caller.Now = 6, 20
	child, errno := w.Space.Fork()
	if errno != 0 {
		t.Fatal(errno)
	}
	check("forked", 2)
	if st := s.Status(); st.Last != 6 || st.Attached != 20 || st.Creator != 5 || st.Change != 10 {
		t.Errorf("status %+v", st)
	}
	if errno := w.Space.Mprotect(at+arch.PageSize, arch.PageSize, unix.PROT_READ); errno != 0 {
		t.Fatal(errno)
	}
	check("split", 4)
	if errno := w.Space.Mprotect(at+arch.PageSize, arch.PageSize, unix.PROT_READ|unix.PROT_WRITE); errno != 0 {
		t.Fatal(errno)
	}
	check("alike again", 4)
	w.System.Remove(s)
	child.Unref()
	check("the child is gone", 3)
	if errno := shm.Detach(w.Space, at); errno != 0 {
		t.Fatal(errno)
	}
	check("detached", 0)
	if _, errno := w.System.Find(id); errno != unix.EINVAL {
		t.Errorf("the segment is still there: %v", errno)
	}
	if w.Account.Used() != 0 || w.RAM.Used() > before+4 {
		t.Errorf("%d bytes of the kernel and %d pages are left", w.Account.Used(), w.RAM.Used()-before)
	}
}

func TestPlaces(t *testing.T) {
	w := newWorld(t)
	_, id := w.make(t, 2*arch.PageSize)
	const base = 0x10000000
	for _, c := range []struct {
		addr  arch.Addr
		flags uint32
		at    arch.Addr
		errno unix.Errno
	}{
		{base, 0, base, 0},
		{base, 0, 0, unix.EINVAL},
		{base + arch.PageSize, 0, 0, unix.EINVAL},
		{base + arch.PageSize, 0o40000, base + arch.PageSize, 0},
		{base + 5, 0, 0, unix.EINVAL},
		{base + 4*arch.PageSize + 5, 0o20000, base + 4*arch.PageSize, 0},
		{0, 0o40000, 0, unix.EINVAL},
		{5, 0o60000, 0, unix.EINVAL},
	} {
		at, errno := w.System.Attach(&w.Host.caller, w.Space, id, c.addr, c.flags)
		if at != c.at || errno != c.errno {
			t.Errorf("%#x with %#o: %#x, %v; want %#x, %v", c.addr, c.flags, at, errno, c.at, c.errno)
		}
	}
	if errno := shm.Detach(w.Space, base+1); errno != unix.EINVAL {
		t.Errorf("odd address: %v", errno)
	}
}

func TestLimits(t *testing.T) {
	w := newWorld(t)
	all := w.RAM.Limit() * arch.PageSize
	for size, want := range map[uint64]unix.Errno{
		0: unix.EINVAL, ^uint64(0): unix.EINVAL, 1 << 40: unix.ENOMEM, all + 1: unix.ENOMEM, 1: 0, all: 0,
	} {
		if _, errno := w.System.Get(&w.Host.caller, ipc.Private, size, 0); errno != want {
			t.Errorf("size %d: %v, want %v", size, errno, want)
		}
	}
	for range shm.MaxSegments - 2 {
		w.make(t, 1)
	}
	if _, errno := w.System.Get(&w.Host.caller, ipc.Private, 1, 0); errno != unix.ENOSPC {
		t.Errorf("one segment too many: %v", errno)
	}
	if u := w.System.Usage(); u.Segments != shm.MaxSegments || u.Resident != 0 {
		t.Errorf("usage %+v", u)
	}
}

// TestCopiesAreIndependent takes a snapshot of a segment that is attached.
func TestCopiesAreIndependent(t *testing.T) {
	w := newWorld(t)
	_, id := w.make(t, arch.PageSize)
	at := w.attach(t, id, 0, 0)
	if errno := w.Space.CopyOut(at, []byte("old")); errno != 0 {
		t.Fatal(errno)
	}
	n := deepcopy.Copy(deepcopy.New(), w)
	w.RAM.NextGeneration()
	t.Cleanup(func() { n.Space.Release() })
	if errno := w.Space.CopyOut(at, []byte("new")); errno != 0 {
		t.Fatal(errno)
	}
	b := make([]byte, 3)
	if errno := n.Space.CopyIn(at, b); errno != 0 || string(b) != "old" {
		t.Errorf("the copy has %q, %v", b, errno)
	}
	s, _ := n.System.Find(id)
	n.System.Remove(s)
	if errno := shm.Detach(n.Space, at); errno != 0 || n.System.Len() != 0 || w.System.Len() != 1 {
		t.Errorf("detached in the copy: %v, %d and %d segments", errno, n.System.Len(), w.System.Len())
	}
}
