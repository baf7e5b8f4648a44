package mm

import (
	"bytes"
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

var zeroPage [arch.PageSize]byte

// Digest feeds h with the address and the bytes of every page that the program can
// distinguish from untouched memory: of memory without an object the pages that are not
// zero, of private file mappings the pages that were written, of shared mappings the
// pages of the object that were written. Pages that are merely resident do not count.
func (as *AddressSpace) Digest(h *xxh3.Hasher) {
	as.digestObjects(h, func(*Object) bool { return true })
}

// DigestLast is Digest for an address space that is about to end: it leaves out shared
// memory that another address space still maps and changes.
func (as *AddressSpace) DigestLast(h *xxh3.Hasher) {
	as.digestObjects(h, func(o *Object) bool { return len(o.mappers) < 2 })
}

// digestObjects is Digest restricted to the shared memory of the objects that include
// accepts.
func (as *AddressSpace) digestObjects(h *xxh3.Hasher, of func(*Object) bool) {
	for p := (position{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		switch v := as.vmas.at(p); {
		case v.hasFlags(Shared):
			if of(v.Object) {
				as.digestShared(h, v)
			}
		case v.Prot&protMask == 0 && v.Object == nil && as.space.Resident() == 0:
			// An address space without tables has no pages.
		default:
			as.digestPrivate(h, v)
		}
	}
}

func (as *AddressSpace) digestPrivate(h *xxh3.Hasher, v *VMA) {
	for _, m := range as.space.Mappings(v.Start, v.End) {
		page := m.PTE.Page()
		if v.Object == nil {
			if b := as.ram.Bytes(page); page != mem.ZeroPage && !bytes.Equal(b, zeroPage[:]) {
				digestPage(h, m.Addr, b)
			}
		} else if !v.Object.isPage(v.objectIndex(m.Addr), page) {
			digestPage(h, m.Addr, as.ram.Bytes(page))
		}
	}
}

func (as *AddressSpace) digestShared(h *xxh3.Hasher, v *VMA) {
	first := v.Offset / arch.PageSize
	v.Object.forEachDirty(first, first+v.pageCount(), func(index uint64, page mem.Page) {
		va, _ := v.addressOf(index)
		if b := as.ram.Bytes(page); v.Object.source != nil || !bytes.Equal(b, zeroPage[:]) {
			digestPage(h, va, b)
		}
	})
}

func digestPage(h *xxh3.Hasher, va arch.Addr, b []byte) {
	var at [8]byte
	binary.LittleEndian.PutUint64(at[:], uint64(va))
	h.Write(at[:])
	h.Write(b)
}
