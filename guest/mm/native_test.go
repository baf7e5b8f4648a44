package mm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// The tests of this file run the same operations on an AddressSpace and on the
// real kernel, in the process testdata/native.c.

// both is the real kernel and an address space that should be alike.
type both struct {
	native             *native
	as                 *AddressSpace
	readOnly, writable *Object
	firstBrk           arch.Addr
	kernelPages        uint64   // here begin the vDSO and its data, up to the stack
	recent             []uint64 // addresses that were results
}

type named string

func (n *named) NoteMapping()   {}
func (n *named) NoteUnmapping() {}

func (n *named) MapName() (path string, dev, inode uint64) { return string(*n), 0, 0 }

// newBoth makes the address space look like the process at its start.
func newBoth(as *AddressSpace, n *native, first answer, contents [2][]byte) *both {
	b := &both{
		native: n, as: as, firstBrk: arch.Addr(first.result),
		readOnly: NewObject(as.ram, text(contents[0]), int64(len(contents[0]))),
		writable: NewObject(as.ram, text(contents[1]), int64(len(contents[1]))),
	}
	as.Limits.MayLock = os.Geteuid() == 0
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil {
		as.Limits.MemLock = limit.Cur
	}
	for _, m := range first.maps {
		if arch.Addr(m.start) >= TaskSize {
			continue
		}
		if b.kernelPages == 0 && m.start >= uint64(DefaultMmapBase-1<<20) {
			b.kernelPages = m.start
		}
		flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED
		if arch.Addr(m.end) == TaskSize {
			flags |= unix.MAP_GROWSDOWN
		}
		prot := 0
		for i, bit := range []int{unix.PROT_READ, unix.PROT_WRITE, unix.PROT_EXEC} {
			if m.perms[i] != '-' {
				prot |= bit
			}
		}
		as.Mmap(MapRequest{Addr: arch.Addr(m.start), Length: m.end - m.start, Prot: prot, Flags: flags})
	}
	as.SetBrk(b.firstBrk)
	return b
}

func (b *both) close() {
	b.native.stop()
	b.readOnly.Unref()
	b.writable.Unref()
	b.as.Unref()
}

// result is the result of a system call.
func result(x arch.Addr, errno unix.Errno) int64 {
	if errno != 0 {
		return -int64(errno)
	}
	return int64(x)
}

func access(as *AddressSpace, va arch.Addr, how arch.Access) (mem.PTE, int64) {
	for {
		pte, why := as.space.Walk(va, how)
		if why == arch.NoFault {
			return pte, 0
		}
		if r := as.Fault(va, how); r != Resolved {
			sig, code := r.Signal()
			return 0, -(int64(sig)*1000 + int64(code))
		}
	}
}

// load is the byte at va, or minus the signal that reading it raises.
func load(as *AddressSpace, va arch.Addr) int64 {
	pte, failed := access(as, va, arch.AccessRead)
	if failed != 0 {
		return failed
	}
	return int64(as.ram.Bytes(pte.Page())[va%arch.PageSize])
}

func store(as *AddressSpace, va arch.Addr, x byte) int64 {
	pte, failed := access(as, va, arch.AccessWrite)
	if failed == 0 {
		as.ram.Bytes(pte.Page())[va%arch.PageSize] = x
	}
	return failed
}

// region is where most operations act.
const region = 0x10000000

func (b *both) addr(t *rapid.T, label string) uint64 {
	kind := rapid.IntRange(0, 30).Draw(t, label+" kind")
	page := uint64(region) + uint64(rapid.IntRange(0, 40).Draw(t, label+" page"))*arch.PageSize
	switch {
	case kind == 0:
		return page + 123
	case kind == 1:
		return rapid.SampledFrom([]uint64{0, arch.PageSize, uint64(MinAddr), uint64(TaskSize), ^uint64(0) - arch.PageSize + 1}).Draw(t, label)
	case kind < 5 && len(b.recent) > 0:
		return rapid.SampledFrom(b.recent).Draw(t, label) + uint64(rapid.IntRange(0, 3).Draw(t, label+" page"))*arch.PageSize
	}
	return page
}

// skipKernelPages avoids the addresses that only look like memory on the host, and
// from the native process's own.
func (b *both) skipKernelPages(t *rapid.T, addr, n uint64) {
	if addr < uint64(TaskSize) && (n < 1<<46 || addr > 1<<46) && addr+n > b.kernelPages || addr < region && addr+n > 0x400000 {
		t.Skip("the vDSO or the program")
	}
}

func length(t *rapid.T, label string) uint64 {
	switch kind := rapid.IntRange(0, 30).Draw(t, label+" kind"); kind {
	case 0:
		return 0
	case 1:
		return uint64(rapid.IntRange(1, 3*arch.PageSize).Draw(t, label))
	case 2:
		// Not whole huge pages, which newer kernels align.
		return rapid.SampledFrom([]uint64{1<<40 + arch.PageSize, 1 << 47, 1 << 63, ^uint64(0), ^uint64(0) - 2*arch.PageSize}).Draw(t, label)
	}
	return uint64(rapid.IntRange(1, 12).Draw(t, label)) * arch.PageSize
}

func prot(t *rapid.T) int {
	if rapid.IntRange(0, 20).Draw(t, "prot kind") == 0 {
		return rapid.SampledFrom([]int{8 | unix.PROT_READ, 0x100, unix.PROT_GROWSDOWN, unix.PROT_GROWSUP, unix.PROT_GROWSDOWN | unix.PROT_GROWSUP}).Draw(t, "prot")
	}
	return rapid.IntRange(0, 7).Draw(t, "prot")
}

// agree compares a result and the mappings.
func (b *both) agree(t *rapid.T, what string, a answer, err error, got int64) {
	if err != nil {
		t.Fatalf("%s: the native process: %v", what, err)
	}
	if a.result != got {
		t.Fatalf("%s = %#x (%d), want %#x (%d), where\n%v", what, got, got, a.result, a.result, canonical(a.maps))
	}
	var maps []mapping
	for line := range strings.Lines(b.as.Maps()) {
		maps = append(maps, parseMapping(strings.TrimSuffix(line, "\n")))
	}
	for i := range a.maps { // the process's own files are anonymous in the model
		if m := &a.maps[i]; m.start < region && m.name == "/native" {
			m.name, m.offset = "", 0
		}
	}
	if got, want := canonical(maps), canonical(a.maps); !slices.Equal(got, want) {
		t.Fatalf("%s = %#x: mappings\n%v\nwant\n%v", what, a.result, got, want)
	}
	if a.result >= region && arch.Addr(a.result) < TaskSize {
		b.recent = append(b.recent, uint64(a.result)&^(arch.PageSize-1))
	}
}

func (b *both) mmap(t *rapid.T) {
	flags := rapid.SampledFrom([]int{unix.MAP_PRIVATE, unix.MAP_PRIVATE, unix.MAP_SHARED, unix.MAP_SHARED_VALIDATE, 0}).Draw(t, "type")
	for _, f := range []struct{ flag, in int }{
		{unix.MAP_FIXED, 2},
		{unix.MAP_FIXED_NOREPLACE, 6},
		{unix.MAP_NORESERVE, 6},
		{unix.MAP_GROWSDOWN, 8},
		{unix.MAP_LOCKED, 12},
		{unix.MAP_POPULATE, 12},
		{unix.MAP_32BIT, 12},
		{unix.MAP_STACK, 12},
		{0x200, 30},
	} {
		if rapid.IntRange(0, f.in-1).Draw(t, "flag") == 0 {
			flags |= f.flag
		}
	}
	r := MapRequest{Addr: arch.Addr(b.addr(t, "address")), Length: length(t, "length"), Prot: prot(t), Flags: flags}
	if r.Flags&unix.MAP_GROWSDOWN != 0 {
		// Kernels differ in where they place other mappings near a stack.
		r.Flags |= unix.MAP_FIXED
		r.Addr = region + arch.Addr(rapid.IntRange(0, 40).Draw(t, "page"))*arch.PageSize
	}
	fd := rapid.SampledFrom([]int{-1, -1, -1, 3, 4}).Draw(t, "fd")
	switch fd {
	case -1:
		r.Flags |= unix.MAP_ANONYMOUS
	case 3:
		r.Object, r.Readable = b.readOnly, true
	case 4:
		r.Object, r.Readable, r.Writable = b.writable, true, true
	}
	r.Offset = uint64(rapid.IntRange(0, 6).Draw(t, "offset")) * arch.PageSize
	if rapid.IntRange(0, 20).Draw(t, "offset kind") == 0 {
		r.Offset = rapid.SampledFrom([]uint64{5, 1 << 62, ^uint64(0) - arch.PageSize + 1}).Draw(t, "offset")
	}
	if r.Object != nil {
		name := named("/file" + strconv.Itoa(fd))
		r.File = &name
	}
	if r.Object != nil && (r.Offset > 1<<50 || r.Length >= 1<<40) {
		t.Skip("limits and alignment of the host's file system")
	}
	if r.Length >= 1<<40 && r.Length < 1<<47 && r.Flags&(unix.MAP_LOCKED|unix.MAP_POPULATE) != 0 {
		t.Skip("more than the host has")
	}
	if r.Flags&(unix.MAP_FIXED|unix.MAP_FIXED_NOREPLACE) != 0 && r.Addr < MinAddr {
		t.Skip("root may map low addresses of the host")
	}
	b.skipKernelPages(t, uint64(r.Addr), r.Length)
	a, err := b.native.ask(nativeSyscall, unix.SYS_MMAP, uint64(r.Addr), r.Length, uint64(r.Prot), uint64(r.Flags), uint64(fd), r.Offset)
	addr, errno := b.as.Mmap(r)
	b.agree(t, fmt.Sprintf("mmap(%#x, %#x, %#x, %#x, %d, %#x)", r.Addr, r.Length, r.Prot, r.Flags, fd, r.Offset), a, err, result(addr, errno))
}

func (b *both) munmap(t *rapid.T) {
	addr, n := b.addr(t, "address"), length(t, "length")
	b.skipKernelPages(t, addr, n)
	a, err := b.native.ask(nativeSyscall, unix.SYS_MUNMAP, addr, n)
	b.agree(t, fmt.Sprintf("munmap(%#x, %#x)", addr, n), a, err, result(0, b.as.Munmap(arch.Addr(addr), n)))
}

func (b *both) mprotect(t *rapid.T) {
	addr, n, p := b.addr(t, "address"), length(t, "length"), prot(t)
	b.skipKernelPages(t, addr, n)
	a, err := b.native.ask(nativeSyscall, unix.SYS_MPROTECT, addr, n, uint64(p))
	b.agree(t, fmt.Sprintf("mprotect(%#x, %#x, %#x)", addr, n, p), a, err, result(0, b.as.Mprotect(arch.Addr(addr), n, p)))
}

func (b *both) mremap(t *rapid.T) {
	addr, old, size, to := b.addr(t, "address"), length(t, "old"), length(t, "new"), b.addr(t, "to")
	flags := rapid.SampledFrom([]int{
		0, unix.MREMAP_MAYMOVE, unix.MREMAP_MAYMOVE, unix.MREMAP_MAYMOVE | unix.MREMAP_FIXED,
		unix.MREMAP_MAYMOVE | unix.MREMAP_DONTUNMAP, unix.MREMAP_MAYMOVE | unix.MREMAP_DONTUNMAP | unix.MREMAP_FIXED,
		unix.MREMAP_FIXED, 8,
	}).Draw(t, "flags")
	if flags&unix.MREMAP_DONTUNMAP != 0 {
		size = old
	}
	if flags&(unix.MREMAP_FIXED|unix.MREMAP_DONTUNMAP) != 0 && to < uint64(MinAddr) {
		t.Skip("root may map low addresses of the host")
	}
	if v := b.as.findPointer(arch.Addr(addr)); pageAlign(old) == pageAlign(size) && (v == nil || pageAlign(old) > uint64(v.End)-addr) {
		t.Skip("newer kernels move several mappings at once")
	}
	if v := b.as.findPointer(arch.Addr(addr)); v != nil && (v.hasFlags(GrowsDown) || size >= 1<<40 && (v.hasFlags(Locked) || v.Object != nil)) {
		t.Skip("more than the host has, or placed in another way")
	}
	if old >= 1<<40 && flags&(unix.MREMAP_FIXED|unix.MREMAP_DONTUNMAP) != 0 {
		t.Skip("kernels differ in what they count")
	}
	b.skipKernelPages(t, addr, max(old, size))
	b.skipKernelPages(t, to, size)
	a, err := b.native.ask(nativeSyscall, unix.SYS_MREMAP, addr, old, size, uint64(flags), to)
	got, errno := b.as.Mremap(arch.Addr(addr), old, size, flags, arch.Addr(to))
	if errno != 0 && a.result < 0 {
		a.result = -int64(errno) // which of several errors is reported has changed between kernels
	}
	b.agree(t, fmt.Sprintf("mremap(%#x, %#x, %#x, %#x, %#x)", addr, old, size, flags, to), a, err, result(got, errno))
}

func (b *both) madvise(t *rapid.T) {
	addr, n := b.addr(t, "address"), length(t, "length")
	b.skipKernelPages(t, addr, n)
	advice := rapid.SampledFrom([]int{
		unix.MADV_NORMAL, unix.MADV_WILLNEED, unix.MADV_DONTNEED, unix.MADV_DONTNEED, unix.MADV_REMOVE,
		unix.MADV_DONTFORK, unix.MADV_DOFORK, unix.MADV_WIPEONFORK, unix.MADV_KEEPONFORK, unix.MADV_DONTDUMP,
		unix.MADV_DODUMP, unix.MADV_COLD, unix.MADV_POPULATE_READ, unix.MADV_POPULATE_WRITE, 77, -1,
	}).Draw(t, "advice")
	if advice == unix.MADV_POPULATE_READ || advice == unix.MADV_POPULATE_WRITE {
		n = min(n, 1<<20)
	}
	if n >= 1<<46 && n <= 1<<63 {
		t.Skip("the stack of the native process")
	}
	a, err := b.native.ask(nativeSyscall, unix.SYS_MADVISE, addr, n, uint64(advice))
	got := result(0, b.as.Madvise(arch.Addr(addr), n, advice))
	if got < 0 && a.result < 0 && (n > uint64(TaskSize) || addr > uint64(TaskSize)-n) {
		a.result = got // not always ENOMEM in newer kernels
	}
	b.agree(t, fmt.Sprintf("madvise(%#x, %#x, %d)", addr, n, advice), a, err, got)
}

func (b *both) msync(t *rapid.T) {
	addr, n := b.addr(t, "address"), length(t, "length")
	b.skipKernelPages(t, addr, n)
	flags := rapid.IntRange(0, 8).Draw(t, "flags")
	a, err := b.native.ask(nativeSyscall, unix.SYS_MSYNC, addr, n, uint64(flags))
	b.agree(t, fmt.Sprintf("msync(%#x, %#x, %d)", addr, n, flags), a, err, result(0, b.as.Msync(arch.Addr(addr), n, flags)))
}

func (b *both) lock(t *rapid.T) {
	addr, n := b.addr(t, "address"), length(t, "length")
	b.skipKernelPages(t, addr, n)
	if n >= 1<<40 {
		t.Skip("more than the host has")
	}
	call, what := uint64(unix.SYS_MLOCK), func() unix.Errno { return b.as.Mlock(arch.Addr(addr), n, 0) }
	if rapid.Bool().Draw(t, "unlock") {
		call, what = unix.SYS_MUNLOCK, func() unix.Errno { return b.as.Munlock(arch.Addr(addr), n) }
	}
	a, err := b.native.ask(nativeSyscall, call, addr, n)
	b.agree(t, fmt.Sprintf("system call %d(%#x, %#x)", call, addr, n), a, err, result(0, what()))
}

func (b *both) mincore(t *rapid.T) {
	addr, n := b.addr(t, "address"), length(t, "length")
	b.skipKernelPages(t, addr, n)
	if n > 1<<25 && n < 1<<47 {
		t.Skip("longer than the vector")
	}
	a, err := b.native.ask(nativeMincore, addr, n)
	onStack := TaskSize - 1<<16
	got := b.as.Mincore(arch.Addr(addr), n, onStack)
	b.agree(t, fmt.Sprintf("mincore(%#x, %#x)", addr, n), a, err, result(0, got))
}

func (b *both) brk(t *rapid.T) {
	to := b.firstBrk + arch.Addr(rapid.IntRange(0, 50000).Draw(t, "bytes"))
	if rapid.IntRange(0, 5).Draw(t, "kind") == 0 {
		to = rapid.SampledFrom([]arch.Addr{0, arch.PageSize, TaskSize, 1 << 62, region + 0x10000000}).Draw(t, "address")
	}
	a, err := b.native.ask(nativeSyscall, unix.SYS_BRK, uint64(to))
	b.agree(t, fmt.Sprintf("brk(%#x)", to), a, err, int64(b.as.Brk(to, unix.PROT_READ|unix.PROT_WRITE)))
}

// address of an access by the program itself.
func (b *both) touched(t *rapid.T) arch.Addr {
	va := arch.Addr(b.addr(t, "address")) + arch.Addr(rapid.SampledFrom([]int{0, 1, 4095}).Draw(t, "byte"))
	if va >= TaskSize {
		t.Skip("not an address of programs")
	}
	b.skipKernelPages(t, uint64(va), 1)
	return va
}

func (b *both) load(t *rapid.T) {
	va := b.touched(t)
	a, err := b.native.ask(nativeLoad, uint64(va))
	b.agree(t, fmt.Sprintf("load(%#x)", va), a, err, load(b.as, va))
}

func (b *both) store(t *rapid.T) {
	va, x := b.touched(t), rapid.Byte().Draw(t, "value")
	a, err := b.native.ask(nativeStore, uint64(va), uint64(x))
	b.agree(t, fmt.Sprintf("store(%#x)", va), a, err, store(b.as, va, x))
}

func (b *both) fork(t *rapid.T) {
	va, x := b.touched(t), rapid.Byte().Draw(t, "value")
	a, err := b.native.ask(nativeFork, uint64(va), uint64(x))
	before := load(b.as, va)
	child, errno := b.as.Fork()
	if errno != 0 {
		t.Fatal(errno)
	}
	got := []int64{load(child, va), store(child, va, x), load(child, va)}
	child.Unref()
	if !slices.Equal(got, a.children) {
		t.Fatalf("fork: the child sees %d at %#x, want %d", got, va, a.children)
	}
	b.agree(t, fmt.Sprintf("fork(%#x)", va), a, err, before)
}

// TestAgreesWithLinux is the differential test: results, errors, mappings,
// contents and signals are those of the host's kernel.
func TestAgreesWithLinux(t *testing.T) {
	if mode, err := os.ReadFile("/proc/sys/vm/overcommit_memory"); err != nil || string(bytes.TrimSpace(mode)) != "0" {
		t.Skip("the host's overcommit mode is not the heuristic one")
	}
	program := gcctest.File(t, "testdata/native.c", "-static")
	// Bytes written past the end of a file are lost at any time on the host, so
	// the file that is written has whole pages.
	contents := [2][]byte{bytes.Repeat([]byte("read only "), 1500), bytes.Repeat([]byte("writable"), 4*arch.PageSize/8)}
	dir := t.TempDir()
	readOnly, writable := filepath.Join(dir, "file3"), filepath.Join(dir, "file4")
	if err := os.WriteFile(readOnly, contents[0], 0o644); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		if err := os.WriteFile(writable, contents[1], 0o644); err != nil {
			t.Fatal(err)
		}
		ram, err := mem.NewRAM(1 << 30)
		if err != nil {
			t.Fatal(err)
		}
		defer ram.Close()
		n, first, err := startNative(program, readOnly, writable)
		if err != nil {
			t.Fatalf("start the native process: %v", err)
		}
		b := newBoth(New(ram, DefaultLimits()), n, first, contents)
		t.Repeat(map[string]func(*rapid.T){
			"mmap": b.mmap, "mmap again": b.mmap, "munmap": b.munmap, "mprotect": b.mprotect, "mremap": b.mremap,
			"madvise": b.madvise, "msync": b.msync, "lock": b.lock, "mincore": b.mincore, "brk": b.brk,
			"load": b.load, "store": b.store, "fork": b.fork,
		})
		b.close()
		if ram.Used() != 0 || ram.Tables() != 0 {
			t.Fatalf("%d pages and %d page tables are left", ram.Used(), ram.Tables())
		}
	})
}

func (*named) Tracking() Tracking { return TrackNone }

func (*named) NoteWrite() {}
