package mm

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// newTest makes an address space over RAM of its own, and demands at the end
// that everything was given back.
func newTest(t testing.TB, bytes uint64) *AddressSpace {
	t.Helper()
	ram, err := mem.NewRAM(bytes)
	if err != nil {
		t.Fatal(err)
	}
	as := New(ram, DefaultLimits())
	t.Cleanup(func() {
		if as.users > 0 {
			as.Unref()
		}
		if ram.Used() != 0 || ram.Tables() != 0 {
			t.Errorf("%d pages and %d page tables are left", ram.Used(), ram.Tables())
		}
		ram.Close()
	})
	return as
}

const (
	rw      = unix.PROT_READ | unix.PROT_WRITE
	private = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	shared  = unix.MAP_SHARED | unix.MAP_ANONYMOUS
)

// mustMap maps anonymous memory.
func mustMap(t testing.TB, as *AddressSpace, addr arch.Addr, length uint64, prot, flags int) arch.Addr {
	t.Helper()
	at, errno := as.Mmap(MapRequest{Addr: addr, Length: length, Prot: prot, Flags: flags})
	if errno != 0 {
		t.Fatalf("mmap(%#x, %#x): %v", addr, length, errno)
	}
	return at
}

func TestCopyOutThenIn(t *testing.T) {
	as := newTest(t, 1<<20)
	at := mustMap(t, as, 0, 5*arch.PageSize, rw, private)
	if want := DefaultMmapBase - 5*arch.PageSize; at != want {
		t.Errorf("mapped at %#x, want %#x", at, want)
	}
	text := bytes.Repeat([]byte("heddle"), 2000)
	if errno := as.CopyOut(at+100, text); errno != 0 {
		t.Fatal(errno)
	}
	got := make([]byte, len(text))
	if errno := as.CopyIn(at+100, got); errno != 0 || !bytes.Equal(got, text) {
		t.Errorf("read back: %v", errno)
	}
	if n, errno := as.CopyOutPart(at+4*arch.PageSize+10, make([]byte, 2*arch.PageSize)); errno != unix.EFAULT || n != arch.PageSize-10 {
		t.Errorf("write over the end: %d bytes, %v", n, errno)
	}
}

func TestForkCopiesPrivateAndSharesShared(t *testing.T) {
	as := newTest(t, 1<<20)
	p := mustMap(t, as, 0, arch.PageSize, rw, private)
	s := mustMap(t, as, 0, arch.PageSize, rw, shared)
	as.WriteU32(p, 1)
	as.WriteU32(s, 1)
	child, errno := as.Fork()
	if errno != 0 {
		t.Fatal(errno)
	}
	defer child.Unref()
	child.WriteU32(p, 2)
	child.WriteU32(s, 2)
	if got, _ := as.ReadU32(p); got != 1 {
		t.Errorf("the parent's private word is %d", got)
	}
	if got, _ := as.ReadU32(s); got != 2 {
		t.Errorf("the shared word is %d in the parent", got)
	}
}
