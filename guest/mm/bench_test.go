package mm

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// withMappings makes an address space with a number of mappings that do not
// merge, of two pages each, from region on, with resident pages.
func withMappings(b *testing.B, count int) *AddressSpace {
	as := newTest(b, 1<<30)
	for i := range count {
		prot := []int{rw, unix.PROT_READ}[i%2]
		at := mustMap(b, as, region+arch.Addr(2*i)*arch.PageSize, 2*arch.PageSize, prot, private|unix.MAP_FIXED)
		if prot == rw {
			as.WriteU8(at, 1)
		}
	}
	if as.Count() != count {
		b.Fatalf("%d mappings", as.Count())
	}
	return as
}

// BenchmarkMprotectPage is the price of changing the rights of one page and of
// changing them back, among 30 and 5,000 mappings.
func BenchmarkMprotectPage(b *testing.B) {
	for name, count := range map[string]int{"30": 30, "5000": 5000, "60000": 60000} {
		b.Run(name, func(b *testing.B) {
			as := withMappings(b, count)
			at := region + arch.Addr(count/2&^1)*2*arch.PageSize
			for b.Loop() {
				as.Mprotect(at, arch.PageSize, unix.PROT_NONE)
				as.Mprotect(at, arch.PageSize, rw)
			}
		})
	}
}

func BenchmarkMmapMunmap(b *testing.B) {
	for name, count := range map[string]int{"30": 30, "5000": 5000} {
		b.Run(name, func(b *testing.B) {
			as := withMappings(b, count)
			for b.Loop() {
				at := mustMap(b, as, 0, 16*arch.PageSize, rw, private)
				as.Munmap(at, 16*arch.PageSize)
			}
		})
	}
}

// BenchmarkFirstWrites is the price of a page that is written for the first
// time, by the kernel.
func BenchmarkFirstWrites(b *testing.B) {
	as := newTest(b, 1<<30)
	const size = 256 << 20
	at := mustMap(b, as, 0, size, rw, private)
	va := at
	for b.Loop() {
		if va == at+size {
			as.Madvise(at, size, unix.MADV_DONTNEED)
			va = at
		}
		as.WriteU8(va, 1)
		va += arch.PageSize
	}
}

func BenchmarkReadU32(b *testing.B) {
	as := newTest(b, 1<<20)
	at := mustMap(b, as, 0, arch.PageSize, rw, private)
	for b.Loop() {
		as.ReadU32(at)
	}
}

func BenchmarkWriteU64(b *testing.B) {
	as := newTest(b, 1<<20)
	at := mustMap(b, as, 0, arch.PageSize, rw, private)
	for b.Loop() {
		as.WriteU64(at, 1)
	}
}

func BenchmarkFork(b *testing.B) {
	as := withMappings(b, 30)
	for b.Loop() {
		child, _ := as.Fork()
		child.Unref()
	}
}

// BenchmarkSnapshot is the cost of an address space at a snapshot, whatever its
// size: the list of mappings.
func BenchmarkSnapshot(b *testing.B) {
	for name, count := range map[string]int{"30": 30, "5000": 5000} {
		b.Run(name, func(b *testing.B) {
			as := withMappings(b, count)
			for b.Loop() {
				deepcopy.Copy(deepcopy.New(), as).Release()
				as.ram.NextGeneration()
			}
		})
	}
}

func BenchmarkDigest(b *testing.B) {
	as := newTest(b, 1<<30)
	const size = 64 << 20
	at := mustMap(b, as, 0, size, rw, private)
	for off := arch.Addr(0); off < size; off += arch.PageSize {
		as.WriteU8(at+off, 1)
	}
	b.SetBytes(size)
	for b.Loop() {
		digest(as)
	}
}
