package mm

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// wild are addresses at which nothing is or may be.
var wild = []arch.Addr{
	0, 1, MinAddr, TaskSize - 1, TaskSize, arch.UserEnd - 1, arch.UserEnd, 1 << 48, 1 << 63,
	^arch.Addr(0), ^arch.Addr(0) - arch.PageSize, 0xffffffffff600000,
}

func TestWildPointersAreEFAULT(t *testing.T) {
	as := newTest(t, 1<<20)
	as.SetBrk(region)
	for _, va := range wild {
		_, range64 := as.ReadRanges(va, 3)
		_, text := as.ReadCString(va, 100)
		_, swap := as.CompareAndSwapU32(va, 0, 1)
		_, u8 := as.ReadU8(va)
		_, u16 := as.ReadU16(va)
		_, u32 := as.ReadU32(va)
		_, u64 := as.ReadU64(va)
		for i, errno := range []unix.Errno{
			as.CopyIn(va, make([]byte, 1)), as.CopyIn(va, make([]byte, 3*arch.PageSize)),
			as.CopyOut(va, make([]byte, 1)), as.CopyOut(va, make([]byte, 3*arch.PageSize)),
			as.Zero(va, 10), as.Zero(va, 1<<60), range64, text, swap, u8, u16, u32, u64,
			as.WriteU8(va, 1), as.WriteU16(va, 1), as.WriteU32(va, 1), as.WriteU64(va, 1),
		} {
			if errno != unix.EFAULT {
				t.Errorf("access %d at %#x: %v", i, va, errno)
			}
		}
		if n, errno := as.CopyInPart(va, nil); n != 0 || errno != 0 {
			t.Errorf("nothing at %#x: %d, %v", va, n, errno)
		}
	}
}

// TestWildArgumentsDoNotPanic hands nonsense to every call.
func TestWildArgumentsDoNotPanic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ram, err := mem.NewRAM(4 << 20)
		if err != nil {
			t.Fatal(err)
		}
		defer ram.Close()
		as := New(ram, DefaultLimits())
		defer as.Unref()
		as.SetBrk(region)
		addr := func() arch.Addr {
			a := rapid.SampledFrom(append(slices.Clone(wild), region, region+arch.PageSize, TaskSize-arch.PageSize)).Draw(t, "address")
			return a + arch.Addr(rapid.IntRange(-1, 1).Draw(t, "near"))
		}
		size := func() uint64 {
			return rapid.SampledFrom([]uint64{0, 1, arch.PageSize, 2 * arch.PageSize, 1 << 20, 1 << 40, 1<<47 - arch.PageSize, 1 << 47, 1 << 63, ^uint64(0), ^uint64(0) - arch.PageSize}).Draw(t, "size")
		}
		number := func() int { return int(rapid.Int32().Draw(t, "number")) }
		for range 30 {
			switch rapid.IntRange(0, 12).Draw(t, "call") {
			case 0, 1, 2:
				flags := private | rapid.SampledFrom([]int{0, unix.MAP_FIXED, unix.MAP_GROWSDOWN, unix.MAP_FIXED | unix.MAP_GROWSDOWN, unix.MAP_NORESERVE}).Draw(t, "flags")
				as.Mmap(MapRequest{Addr: addr(), Length: size(), Prot: rw, Flags: flags, Offset: size()})
			case 3:
				as.Munmap(addr(), size())
			case 4:
				as.Mprotect(addr(), size(), number())
			case 5:
				as.Mremap(addr(), size(), size(), rapid.IntRange(0, 8).Draw(t, "flags"), addr())
			case 6:
				as.Madvise(addr(), size(), rapid.IntRange(0, 30).Draw(t, "advice"))
			case 7:
				as.Msync(addr(), size(), number())
			case 8:
				as.Mincore(addr(), size(), addr())
			case 9:
				as.Mlock(addr(), size(), 0)
			case 10:
				as.Brk(addr(), unix.PROT_READ|unix.PROT_WRITE)
			case 11:
				as.Fault(addr(), arch.AccessWrite)
			case 12:
				as.CopyOut(addr(), make([]byte, 5000))
			}
		}
	})
}

func TestPartialTransfers(t *testing.T) {
	as := newTest(t, 1<<20)
	a := mustMap(t, as, region, arch.PageSize, rw, private|unix.MAP_FIXED)
	b := mustMap(t, as, region+4*arch.PageSize, arch.PageSize, rw, private|unix.MAP_FIXED)
	ranges := []Range{{a + arch.PageSize - 3, 3}, {b, 0}, {b, 5}, {b + arch.PageSize - 2, 4}, {a, 1}}
	if n := TotalLen(ranges); n != 13 {
		t.Errorf("total %d", n)
	}
	n, errno := as.CopyOutRanges(ranges, []byte("0123456789abc"))
	if n != 10 || errno != unix.EFAULT {
		t.Errorf("copied %d bytes, %v", n, errno)
	}
	got := make([]byte, 20)
	n, errno = as.CopyInRanges(ranges, got)
	if n != 10 || errno != unix.EFAULT || string(got[:n]) != "0123456789" {
		t.Errorf("copied %q, %v", got[:n], errno)
	}
	if n, errno = as.CopyInRanges(ranges, got[:7]); n != 7 || errno != 0 {
		t.Errorf("copied %d bytes, %v", n, errno)
	}
	for skip, want := range [][]Range{
		ranges,
		{{a + arch.PageSize - 2, 2}, {b, 0}, {b, 5}, {b + arch.PageSize - 2, 4}, {a, 1}},
		{{a + arch.PageSize - 1, 1}, {b, 0}, {b, 5}, {b + arch.PageSize - 2, 4}, {a, 1}},
		{{b, 5}, {b + arch.PageSize - 2, 4}, {a, 1}},
		{{b + 1, 4}, {b + arch.PageSize - 2, 4}, {a, 1}},
	} {
		if got := SkipRanges(ranges, uint64(skip)); !slices.Equal(got, want) {
			t.Errorf("without %d: %v", skip, got)
		}
	}
	if got := SkipRanges(ranges, 13); len(got) != 0 {
		t.Errorf("without all: %v", got)
	}
}

// TestReadRanges checks the limits of readv(2).
func TestReadRanges(t *testing.T) {
	as := newTest(t, 1<<20)
	at := mustMap(t, as, region, 8*arch.PageSize, rw, private|unix.MAP_FIXED)
	put := func(values ...uint64) {
		for i, x := range values {
			as.WriteU64(at+arch.Addr(8*i), x)
		}
	}
	put(0x1000, 5, 0x2000, MaxTransfer, 0x3000, 7)
	got, errno := as.ReadRanges(at, 3)
	if want := []Range{{0x1000, 5}, {0x2000, MaxTransfer - 5}, {0x3000, 0}}; errno != 0 || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, errno)
	}
	put(0x1000, 1<<63)
	if _, errno := as.ReadRanges(at, 1); errno != unix.EINVAL {
		t.Errorf("a negative length: %v", errno)
	}
	put(1<<63, 1)
	if _, errno := as.ReadRanges(at, 1); errno != unix.EFAULT {
		t.Errorf("a kernel address: %v", errno)
	}
	if _, errno := as.ReadRanges(at, MaxRanges+1); errno != unix.EINVAL {
		t.Errorf("too many: %v", errno)
	}
	if got, errno := as.ReadRanges(0, 0); errno != 0 || len(got) != 0 {
		t.Errorf("none: %v, %v", got, errno)
	}
}

func TestReadCString(t *testing.T) {
	as := newTest(t, 1<<20)
	at := mustMap(t, as, region, 2*arch.PageSize, rw, private|unix.MAP_FIXED)
	long := strings.Repeat("x", 1000)
	end := at + 2*arch.PageSize
	as.CopyOut(at+4000, append([]byte(long), 0))
	as.CopyOut(end-3, []byte("abc"))
	for _, c := range []struct {
		va    arch.Addr
		limit int
		want  string
		errno unix.Errno
	}{
		{at + 4000, 4096, long, 0},
		{at + 4000, 1001, long, 0},
		{at + 4000, 1000, "", unix.ENAMETOOLONG},
		{at, 4096, "", 0},
		{end - 3, 100, "", unix.EFAULT},
		{end - 3, 3, "", unix.ENAMETOOLONG},
		{at, 0, "", unix.ENAMETOOLONG},
	} {
		if got, errno := as.ReadCString(c.va, c.limit); got != c.want || errno != c.errno {
			t.Errorf("at %#x, limit %d: %d bytes, %v", c.va, c.limit, len(got), errno)
		}
	}
}

func TestCompareAndSwap(t *testing.T) {
	as := newTest(t, 1<<20)
	at := mustMap(t, as, 0, arch.PageSize, rw, private)
	as.WriteU32(at, 5)
	if old, errno := as.CompareAndSwapU32(at, 4, 9); old != 5 || errno != 0 {
		t.Errorf("%d, %v", old, errno)
	}
	if old, errno := as.CompareAndSwapU32(at, 5, 9); old != 5 || errno != 0 {
		t.Errorf("%d, %v", old, errno)
	}
	if x, _ := as.ReadU32(at); x != 9 {
		t.Errorf("the word is %d", x)
	}
	as.Mprotect(at, arch.PageSize, unix.PROT_READ)
	if _, errno := as.CompareAndSwapU32(at, 1, 2); errno != unix.EFAULT {
		t.Errorf("of a read-only word: %v", errno)
	}
}

// TestZero crosses pages.
func TestZero(t *testing.T) {
	as := newTest(t, 1<<20)
	at := mustMap(t, as, 0, 4*arch.PageSize, rw, private)
	as.CopyOut(at, bytes.Repeat([]byte{7}, 4*arch.PageSize))
	if errno := as.Zero(at+5, 2*arch.PageSize); errno != 0 {
		t.Fatal(errno)
	}
	got := make([]byte, 4*arch.PageSize)
	as.CopyIn(at, got)
	want := bytes.Repeat([]byte{7}, 4*arch.PageSize)
	clear(want[5 : 5+2*arch.PageSize])
	if !bytes.Equal(got, want) {
		t.Error("other bytes are zero")
	}
}
