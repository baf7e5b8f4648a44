package mm

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// numbered is a source whose pages begin with their number.
type numbered struct{}

func (numbered) SharedInSnapshot() {}

func (numbered) ReadAt(p []byte, off int64) unix.Errno {
	for i := range p {
		at := off + int64(i)
		p[i] = byte(at / arch.PageSize >> (8 * min(at%arch.PageSize, 7)))
	}
	return 0
}

// cache is a Reclaimer that drops the clean pages of one object.
type cache struct {
	o     *Object
	times int
}

func (c *cache) Reclaim() int {
	c.times++
	return c.o.DropClean()
}

// TestFilesLargerThanMemory walks over a mapped file of eight times the memory
// and writes to a part of it, in a private mapping and through a shared one.
func TestFilesLargerThanMemory(t *testing.T) {
	const ram, pages = 1024, 8 * 1024
	as := newTest(t, ram*arch.PageSize)
	o := NewObject(as.RAM(), numbered{}, pages*arch.PageSize)
	defer o.Release()
	c := &cache{o: o}
	as.Reclaimer = c
	mapping := func(flags int) arch.Addr {
		at, errno := as.Mmap(MapRequest{
			Length: pages * arch.PageSize, Prot: rw, Flags: flags, Object: o, Readable: true, Writable: true,
		})
		if errno != 0 {
			t.Fatal(errno)
		}
		return at
	}
	private, shared := mapping(unix.MAP_PRIVATE|unix.MAP_NORESERVE), mapping(unix.MAP_SHARED)
	own := func(i arch.Addr) bool { return i%61 == 7 }
	for i := arch.Addr(0); i < pages; i++ {
		at := private
		if i%2 == 1 {
			at = shared
		}
		if got, errno := as.ReadU64(at + i*arch.PageSize); errno != 0 || got != uint64(i) {
			t.Fatalf("page %d: %d, %v", i, got, errno)
		}
		if !own(i) {
			continue
		}
		if errno := as.WriteU64(at+i*arch.PageSize, uint64(i)+1e6); errno != 0 {
			t.Fatalf("write to page %d: %v", i, errno)
		}
	}
	for i := arch.Addr(0); i < pages; i++ {
		want := [2]uint64{uint64(i), uint64(i)} // private, shared
		switch {
		case own(i) && i%2 == 1:
			want = [2]uint64{uint64(i) + 1e6, uint64(i) + 1e6}
		case own(i):
			want[0] += 1e6
		}
		for n, at := range []arch.Addr{private, shared} {
			if got, errno := as.ReadU64(at + i*arch.PageSize); errno != 0 || got != want[n] {
				t.Fatalf("page %d of mapping %d: %d, %v, want %d", i, n, got, errno, want[n])
			}
		}
	}
	if c.times == 0 || as.Starved() {
		t.Errorf("memory was reclaimed %d times", c.times)
	}
}

// TestReclaimGivesUp checks that memory is used up when the memory left beside
// changed pages is not worth having.
func TestReclaimGivesUp(t *testing.T) {
	as := newTest(t, 1024*arch.PageSize)
	o := NewObject(as.RAM(), numbered{}, 16*arch.PageSize)
	defer o.Release()
	as.Reclaimer = &cache{o: o}
	at := mustMap(t, as, 0, 1020*arch.PageSize, rw, private)
	for i := arch.Addr(0); ; i++ {
		if _, errno := o.Page(uint64(i) % 16); errno != 0 && errno != unix.ENOMEM {
			t.Fatal(errno)
		}
		errno := as.WriteU8(at+i*arch.PageSize, 1)
		if errno == unix.EFAULT && i > 900 && as.Starved() && !as.Starved() {
			return
		}
		if errno != 0 || i == 1019 {
			t.Fatalf("page %d: %v", i, errno)
		}
	}
}

// TestLockedPagesStay checks that mlock holds pages of files.
func TestLockedPagesStay(t *testing.T) {
	as := newTest(t, 1024*arch.PageSize)
	o := NewObject(as.RAM(), numbered{}, 16*arch.PageSize)
	defer o.Release()
	at, errno := as.Mmap(MapRequest{Length: 16 * arch.PageSize, Prot: rw, Flags: unix.MAP_PRIVATE, Object: o, Readable: true})
	if errno != 0 {
		t.Fatal(errno)
	}
	if errno := as.Mlock(at, arch.PageSize, 0); errno != 0 {
		t.Fatal(errno)
	}
	have := o.Resident()
	if n := o.DropClean(); n != 0 || o.Resident() != have {
		t.Errorf("%d of %d pages were dropped", n, have)
	}
	if errno := as.Munlock(at, arch.PageSize); errno != 0 {
		t.Fatal(errno)
	}
	if n := o.DropClean(); n != have || o.Resident() != 0 {
		t.Errorf("%d of %d pages were dropped", n, have)
	}
}
