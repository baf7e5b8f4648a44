package mm

import (
	"bytes"
	"testing"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

func digest(as *AddressSpace) xxh3.Uint128 {
	h := xxh3.New()
	as.Digest(h)
	return h.Sum128()
}

// TestDigestSeesWhatTheProgramSees: pages that are only resident do not count,
// every byte that was changed does.
func TestDigestSeesWhatTheProgramSees(t *testing.T) {
	as := newTest(t, 4<<20)
	o := NewObject(as.ram, text(bytes.Repeat([]byte{1}, 4*arch.PageSize)), 4*arch.PageSize)
	defer o.Unref()
	request := MapRequest{Length: 4 * arch.PageSize, Prot: rw, Object: o, Readable: true, Writable: true}
	request.Flags = unix.MAP_PRIVATE
	p, _ := as.Mmap(request)
	request.Flags = unix.MAP_SHARED
	s, _ := as.Mmap(request)
	a := mustMap(t, as, 0, 4*arch.PageSize, rw, private)
	z := mustMap(t, as, 0, 4*arch.PageSize, rw, shared)

	seen := map[xxh3.Uint128]string{}
	last := digest(as)
	seen[last] = "the start"
	same := func(what string, act func()) {
		t.Helper()
		if act(); digest(as) != last {
			t.Errorf("%s changes the digest", what)
		}
	}
	differs := func(what string, act func()) {
		t.Helper()
		act()
		last = digest(as)
		if seen[last] != "" {
			t.Errorf("after %s the digest is that of %s", what, seen[last])
		}
		seen[last] = what
	}
	same("reading", func() {
		for _, at := range []arch.Addr{p, s, a, z} {
			as.CopyIn(at, make([]byte, 4*arch.PageSize))
		}
	})
	same("writing zeros to zeros", func() { as.WriteU64(a+arch.PageSize, 0); as.WriteU64(z+arch.PageSize, 0) })
	same("fork", func() {
		child, _ := as.Fork()
		if digest(child) != last {
			t.Error("the child's digest differs")
		}
		child.Unref()
	})
	differs("anonymous memory", func() { as.WriteU8(a+3*arch.PageSize, 1) })
	differs("another byte", func() { as.WriteU8(a+3*arch.PageSize+1, 1) })
	differs("a private file page", func() { as.WriteU8(p, 2) })
	differs("zeros over a private file page", func() { as.Zero(p+arch.PageSize, arch.PageSize) })
	differs("a shared file page", func() { as.WriteU8(s+2*arch.PageSize, 2) })
	differs("shared memory", func() { as.WriteU8(z, 2) })
	differs("the file by write", func() { o.WriteAt([]byte{9}, 3*arch.PageSize) })
	same("dropping what comes back", func() { as.Madvise(s, 4*arch.PageSize, unix.MADV_DONTNEED) })
	same("a mapping that nobody touched", func() { mustMap(t, as, 0, 1<<40, unix.PROT_NONE, private) })
	same("rights", func() { as.Mprotect(a, 4*arch.PageSize, unix.PROT_READ) })
	differs("moving", func() { as.Mremap(a, 4*arch.PageSize, 4*arch.PageSize, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED, region) })
	differs("dropping", func() { as.Madvise(region, 4*arch.PageSize, unix.MADV_DONTNEED) })
}

// TestDigestDoesNotSeePhysicalPages: other numbers, same digest.
func TestDigestDoesNotSeePhysicalPages(t *testing.T) {
	first, second := newTest(t, 4<<20), newTest(t, 4<<20)
	for range 5 {
		p, _ := second.ram.Alloc()
		defer second.ram.Unref(p)
	}
	for i, as := range []*AddressSpace{first, second} {
		at := mustMap(t, as, region, 16*arch.PageSize, rw, private|unix.MAP_FIXED)
		for j := range arch.Addr(16) {
			page := j
			if i == 1 {
				page = 15 - j // in the other order
			}
			as.WriteU64(at+page*arch.PageSize, uint64(page)*77)
		}
	}
	if digest(first) != digest(second) {
		t.Error("the digests differ")
	}
}

// TestDigestLast: later changes by another process do not belong to the end of the first.
func TestDigestLast(t *testing.T) {
	last := func(as *AddressSpace) xxh3.Uint128 {
		h := xxh3.New()
		as.DigestLast(h)
		return h.Sum128()
	}
	as := newTest(t, 4<<20)
	at := mustMap(t, as, 0, arch.PageSize, rw, shared)
	none := digest(as)
	as.WriteU8(at, 1)
	child, _ := as.Fork()
	if last(as) != none || digest(as) == none {
		t.Error("shared memory of two counts at the end of one")
	}
	child.Unref()
	if last(as) != digest(as) {
		t.Error("shared memory that nobody else maps does not count")
	}
}
