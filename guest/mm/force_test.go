package mm

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

func peekForced(t *testing.T, as *AddressSpace, at arch.Addr, n, want int) string {
	t.Helper()
	b := make([]byte, n)
	if got := as.PeekForced(at, b); got != want {
		t.Errorf("%d of %d bytes at %#x, want %d", got, n, at, want)
	}
	return string(b[:want])
}

// TestForcedAccess: a debugger reaches private memory whatever its protection, and the memory that it
// writes is in a copy if others have the page.
func TestForcedAccess(t *testing.T) {
	as := newTest(t, 4<<20)
	object := NewObject(as.RAM(), nil, 2*arch.PageSize)
	defer object.Unref()
	if _, errno := object.WriteAt([]byte("the file"), 0); errno != 0 {
		t.Fatal(errno)
	}
	at, errno := as.Mmap(MapRequest{Length: 2 * arch.PageSize, Prot: unix.PROT_READ | unix.PROT_EXEC, Flags: unix.MAP_PRIVATE, Object: object, Readable: true})
	if errno != 0 {
		t.Fatal(errno)
	}
	child, errno := as.Fork()
	if errno != 0 {
		t.Fatal(errno)
	}
	defer child.Unref()
	if n := as.PokeForced(at+4, []byte("FILE")); n != 4 {
		t.Errorf("%d bytes written", n)
	}
	if got := peekForced(t, as, at, 8, 8); got != "the FILE" {
		t.Errorf("%q after it was written", got)
	}
	if got := peekForced(t, child, at, 8, 8); got != "the file" {
		t.Errorf("the child has %q", got)
	}
	b := make([]byte, 8)
	if _, errno := object.ReadAt(b, 0); errno != 0 || string(b) != "the file" {
		t.Errorf("the object has %q", b)
	}
	if got := as.Space().Get(at).Perm(); got != arch.Read|arch.Exec {
		t.Errorf("the page has the rights %v afterwards", got)
	}
	if r := as.Fault(at, arch.AccessWrite); r != AccErr {
		t.Errorf("the program may write: %v", r)
	}
}

func TestForcedAccessEnds(t *testing.T) {
	as := newTest(t, 4<<20)
	hidden := mustMap(t, as, 0x100000, 2*arch.PageSize, unix.PROT_NONE, private|unix.MAP_FIXED)
	across := hidden + 2*arch.PageSize - 3
	if n := as.PokeForced(across, []byte("abcdef")); n != 3 {
		t.Errorf("%d bytes written up to the end", n)
	}
	if got := peekForced(t, as, across, 6, 3); got != "abc" {
		t.Errorf("%q", got)
	}
	peekForced(t, as, 0x1000, 8, 0)
	peekForced(t, as, TaskSize, 8, 0)
	if n := as.PokeForced(0x1000, []byte("x")); n != 0 {
		t.Error("memory that is not there was written")
	}
	readOnly := mustMap(t, as, 0, arch.PageSize, unix.PROT_READ, shared)
	if n := as.PokeForced(readOnly, []byte("x")); n != 0 {
		t.Error("shared memory was written against its protection")
	}
	writable := mustMap(t, as, 0, arch.PageSize, rw, shared)
	if n := as.PokeForced(writable, []byte("x")); n != 1 {
		t.Error("shared memory cannot be written")
	}
}
