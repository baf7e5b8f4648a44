package mm

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// library is a file as /proc shows it.
type library struct{ path string }

func (l *library) NoteMapping()   {}
func (l *library) NoteUnmapping() {}

func (l *library) MapName() (path string, dev, inode uint64) { return l.path, unix.Mkdev(8, 1), 1234 }

// newListed makes an address space with mappings of every kind. Expectations
// are lines of proc(5) and of a Debian kernel.
func newListed(t *testing.T) *AddressSpace {
	as := newTest(t, 4<<20)
	o := NewObject(as.ram, nil, 8*arch.PageSize)
	defer o.Unref()
	as.Mmap(MapRequest{
		Addr: 0x400000, Length: 4 * arch.PageSize, Prot: unix.PROT_READ | unix.PROT_EXEC, Flags: unix.MAP_PRIVATE | unix.MAP_FIXED,
		Object: o, Offset: arch.PageSize, File: &library{"/usr/lib/a b\nc.so"}, Readable: true,
	})
	as.SetBrk(0x10000000)
	as.Brk(0x10000000+3*arch.PageSize-5, unix.PROT_READ|unix.PROT_WRITE)
	mustMap(t, as, 0x7f0000000000, arch.PageSize, unix.PROT_NONE, private|unix.MAP_FIXED)
	mustMap(t, as, 0x7f0000001000, 2*arch.PageSize, rw, shared|unix.MAP_FIXED)
	mustMap(t, as, TaskSize-0x21000, 0x21000, rw, private|unix.MAP_FIXED|unix.MAP_GROWSDOWN)
	as.Layout.StartStack = TaskSize - 100
	return as
}

func TestMaps(t *testing.T) {
	want := `00400000-00404000 r-xp 00001000 08:01 1234                               /usr/lib/a b\012c.so
10000000-10003000 rw-p 00000000 00:00 0                                  [heap]
7f0000000000-7f0000001000 ---p 00000000 00:00 0 
7f0000001000-7f0000003000 rw-s 00000000 00:01 1                          /dev/zero (deleted)
7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0                          [stack]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
`
	if got := newListed(t).Maps(); got != want {
		t.Errorf("maps\n%swant\n%s", got, want)
	}
}

func TestUsage(t *testing.T) {
	as := newListed(t)
	as.WriteU8(0x10000000, 1)     // the heap's page
	as.ReadU8(0x10001000)         // the page of zeros does not count
	as.WriteU8(TaskSize-1, 1)     // the stack's
	as.WriteU8(0x7f0000001000, 1) // shared memory, with its neighbour
	as.ReadU8(0x400000)           // four pages of the file
	got := as.Usage()
	want := Usage{
		Total: 4 + 3 + 1 + 2 + 0x21, PeakTotal: 4 + 3 + 1 + 2 + 0x21, Data: 3, Stack: 0x21, Exec: 4,
		Resident: got.Anon + got.OfFile + got.OfShm, PeakRes: got.Resident,
		Anon: 2, OfFile: 4, OfShm: got.OfShm, Tables: 4, Promised: 3 + 0x21,
	}
	if got != want || got.OfShm < 1 {
		t.Errorf("%+v, want %+v", got, want)
	}
	as.Munmap(TaskSize-0x21000, 0x21000)
	if u := as.Usage(); u.Stack != 0 || u.Total != 10 || u.PeakTotal != want.Total || u.PeakRes != want.Resident {
		t.Errorf("after munmap %+v", u)
	}
}

// TestSmaps compares the fields with the ones of Linux 6.1.
func TestSmaps(t *testing.T) {
	as := newListed(t)
	as.WriteU8(0x10000000, 1)
	as.Mlock(0x10000000, arch.PageSize, 0)
	blocks := strings.Split(as.Smaps(), "VmFlags:")
	want := `10000000-10001000 rw-p 00000000 00:00 0                                  [heap]
Size:                  4 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Rss:                   4 kB
Pss:                   4 kB
Pss_Dirty:             4 kB
Shared_Clean:          0 kB
Shared_Dirty:          0 kB
Private_Clean:         0 kB
Private_Dirty:         4 kB
Referenced:            4 kB
Anonymous:             4 kB
LazyFree:              0 kB
AnonHugePages:         0 kB
ShmemPmdMapped:        0 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
Swap:                  0 kB
SwapPss:               0 kB
Locked:                4 kB
THPeligible:    0
`
	_, heap, _ := strings.Cut(blocks[1], "\n")
	if heap != want {
		t.Errorf("the heap's block is\n%swant\n%s", heap, want)
	}
	if flags, _, _ := strings.Cut(blocks[2], "\n"); flags != " rd wr mr mw me lo ac " {
		t.Errorf("the heap's flags are %q", flags)
	}
}

// TestNeighboursMerge: a program that changes rights page by page and back
// ends with one mapping.
func TestNeighboursMerge(t *testing.T) {
	as := newTest(t, 4<<20)
	at := mustMap(t, as, 0, 64*arch.PageSize, rw, private)
	for _, step := range []arch.Addr{1, 2} {
		for i := arch.Addr(0); i < 64; i += step {
			as.Mprotect(at+i*arch.PageSize, arch.PageSize, unix.PROT_READ)
		}
		for i := arch.Addr(0); i < 64; i++ {
			as.Mprotect(at+i*arch.PageSize, arch.PageSize, rw)
		}
		if as.Count() != 1 {
			t.Errorf("%d mappings", as.Count())
		}
	}
	// Apart and together again.
	as.Munmap(at+10*arch.PageSize, arch.PageSize)
	mustMap(t, as, at+10*arch.PageSize, arch.PageSize, rw, private|unix.MAP_FIXED)
	if as.Count() != 1 {
		t.Errorf("%d mappings after filling the hole", as.Count())
	}
}

func (*library) Tracking() Tracking { return TrackNone }

func (*library) NoteWrite() {}
