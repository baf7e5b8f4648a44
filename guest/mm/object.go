package mm

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// Source supplies the initial bytes of an object, for example from a file of
// the host. A source never changes; it is shared by snapshots.
type Source interface {
	// ReadAt fills p with the bytes from off on; bytes past the end are zero.
	ReadAt(p []byte, off int64) unix.Errno
	SharedInSnapshot()
}

// Object is a memory object: bytes in pages of guest RAM that come into being
// at need, from a source or as zeros. It is the content of a file, of a memfd
// or of a shared anonymous mapping, and what address spaces map. Reading,
// writing and mapping see the same bytes.
//
// An object has reference counts of its own: one for its creator, one for each
// mapping. When the last is gone its pages go back.
type Object struct {
	ram       *emu.RAM
	source    Source
	sourceEnd int64 // bytes of the source from here on are not part of the object
	size      int64
	pages     pageTree
	refs      int
	mappers   []mapper // in the order in which they first mapped the object
}

// mapper is an address space that maps the object, with the number of its
// mappings.
type mapper struct {
	space *AddressSpace
	count int
}

// NewObject makes an object of the given size with one reference, the
// caller's. A nil source means zeros.
func NewObject(ram *emu.RAM, source Source, size int64) *Object {
	return &Object{ram: ram, source: source, sourceEnd: size, size: size, refs: 1}
}

// Size is the number of bytes; mappings fault beyond the page of the last.
func (o *Object) Size() int64 { return o.size }

// MayBeWritten reports whether a shared mapping of the object may be written, or be
// made writable.
func (o *Object) MayBeWritten() bool {
	for _, m := range o.mappers {
		for _, v := range m.space.VMAs() {
			if v.Object == o && v.has(Shared) && v.MayProt&unix.PROT_WRITE != 0 {
				return true
			}
		}
	}
	return false
}

// Resident is the number of pages held in RAM.
func (o *Object) Resident() int { return o.pages.count }

// Ref adds a reference.
func (o *Object) Ref() { o.refs++ }

// Unref takes a reference away, and gives the pages back with the last.
func (o *Object) Unref() {
	if o.refs--; o.refs == 0 {
		o.Release()
	}
}

// Release gives all pages back; a snapshot that is thrown away calls it. It may
// be called again.
func (o *Object) Release() { o.pages.dropFrom(o.ram, 0) }

// ReadAt copies bytes from off on to p and returns how many there are: fewer
// than len(p) only at the end of the object.
func (o *Object) ReadAt(p []byte, off int64) (int, unix.Errno) {
	if off >= o.size {
		return 0, 0
	}
	p = p[:min(int64(len(p)), o.size-off)]
	for done := 0; done < len(p); {
		part := p[done:min(len(p), done+pageRoom(off+int64(done)))]
		if errno := o.readPart(part, off+int64(done)); errno != 0 {
			return done, errno
		}
		done += len(part)
	}
	return len(p), 0
}

// pageRoom is the number of bytes from off to the end of its page.
func pageRoom(off int64) int { return emu.PageSize - int(off%emu.PageSize) }

// readPart reads within one page without making it resident.
func (o *Object) readPart(p []byte, off int64) unix.Errno {
	if have := o.pages.get(uint64(off) / emu.PageSize); have.present() {
		copy(p, o.ram.Bytes(have.page)[off%emu.PageSize:])
		return 0
	}
	return o.readSource(p, off)
}

// readSource fills p with what the source says, and zeros past its end.
func (o *Object) readSource(p []byte, off int64) unix.Errno {
	n := max(0, min(int64(len(p)), o.sourceEnd-off))
	clear(p[n:])
	if o.source == nil || n == 0 {
		clear(p)
		return 0
	}
	return o.source.ReadAt(p[:n], off)
}

// WriteAt copies p to off and grows the object as needed. It fails with ENOSPC
// when guest memory is used up, and with the source's error when the rest of a
// page cannot be read; what was written before stays.
func (o *Object) WriteAt(p []byte, off int64) (int, unix.Errno) {
	for done := 0; done < len(p); {
		at := off + int64(done)
		page, errno := o.WritablePage(uint64(at) / emu.PageSize)
		if errno == unix.ENOMEM {
			errno = unix.ENOSPC
		}
		if errno != 0 {
			return done, errno
		}
		n := copy(o.ram.Bytes(page)[at%emu.PageSize:], p[done:])
		o.ram.Written(page)
		done += n
		o.size = max(o.size, at+int64(n))
	}
	return len(p), 0
}

// Truncate sets the size. Bytes cut off are zero if the object grows again,
// and mappings of whole pages past the end fault.
func (o *Object) Truncate(size int64) unix.Errno {
	if size < o.size {
		if errno := o.zeroTail(size); errno != 0 {
			return errno
		}
		first := uint64(size+emu.PageSize-1) / emu.PageSize
		o.unmapFrom(first)
		o.pages.dropFrom(o.ram, first)
		o.sourceEnd = min(o.sourceEnd, size)
	}
	o.size = size
	return 0
}

// zeroTail clears the rest of the page that holds the byte at size.
func (o *Object) zeroTail(size int64) unix.Errno {
	if size%emu.PageSize == 0 {
		return 0
	}
	if !o.resident(uint64(size) / emu.PageSize) {
		return 0 // sourceEnd hides the source's bytes
	}
	page, errno := o.WritablePage(uint64(size) / emu.PageSize)
	if errno != 0 {
		return errno
	}
	clear(o.ram.Bytes(page)[size%emu.PageSize:])
	o.ram.Written(page)
	return 0
}

// Zero makes the bytes of [off, off+n) zero without changing the size: a hole.
// Whole pages that the source does not cover are given back.
func (o *Object) Zero(off, n int64) unix.Errno {
	zeros := make([]byte, emu.PageSize)
	for end := min(off+n, o.size); off < end; {
		part := min(end-off, int64(pageRoom(off)))
		index := uint64(off) / emu.PageSize
		switch {
		case off < o.sourceEnd && o.source != nil, part < emu.PageSize && o.resident(index):
			if _, errno := o.WriteAt(zeros[:part], off); errno != 0 {
				return errno
			}
		case o.resident(index):
			o.drop(index)
		default:
			next, ok := o.pages.next(index)
			if !ok {
				return 0
			}
			off = int64(max(next, index+1)) * emu.PageSize
			continue
		}
		off += part
	}
	return 0
}

// Missing is the number of pages with the bytes from off to off+n that are not
// resident.
func (o *Object) Missing(off, n int64) int64 {
	missing := int64(0)
	for index := uint64(off) / emu.PageSize; n > 0 && index <= uint64(off+n-1)/emu.PageSize; index++ {
		if !o.resident(index) {
			missing++
		}
	}
	return missing
}

// drop gives a page back, which mappings then find as zeros.
func (o *Object) drop(index uint64) {
	page := o.pages.get(index).page
	for _, m := range o.mappers {
		m.space.dropObjectPage(o, index, page)
	}
	o.pages.remove(o.ram, index)
}

// Page returns the page of the given index for reading, making it resident. The
// caller must Ref it to keep it. ENOMEM: guest memory is used up.
func (o *Object) Page(index uint64) (emu.Page, unix.Errno) {
	if have := o.pages.get(index); have.present() {
		return have.page, 0
	}
	page, ok := o.ram.Alloc()
	if !ok {
		return 0, unix.ENOMEM
	}
	if errno := o.readSource(o.ram.Bytes(page), int64(index)*emu.PageSize); errno != 0 {
		o.ram.Unref(page)
		return 0, errno
	}
	o.pages.set(o.ram, index, objectPage{page, stampFor(o.ram.Generation(), false)})
	return page, 0
}

// holds tells whether some byte of the page is part of the object.
func (o *Object) holds(index uint64) bool { return index < uint64(o.size+emu.PageSize-1)/emu.PageSize }

// resident tells whether the page is in RAM.
func (o *Object) resident(index uint64) bool { return o.pages.get(index).present() }

// isWritable tells whether WritablePage would return the resident page as it
// is, with nothing left to do.
func (o *Object) isWritable(index uint64) bool {
	p := o.pages.get(index)
	return p.present() && p.stamp == stampFor(o.ram.Generation(), true)
}

// isDirty tells whether the page was asked for to be written.
func (o *Object) isDirty(index uint64) bool { return o.pages.get(index).dirty() }

// isPage tells whether page is the object's page of the given index.
func (o *Object) isPage(index uint64, page emu.Page) bool {
	p := o.pages.get(index)
	return p.present() && p.page == page
}

// eachDirty calls f for the pages with indices in [first, end) that were asked
// for to be written, in order.
func (o *Object) eachDirty(first, end uint64, f func(index uint64, page emu.Page)) {
	o.pages.each(first, end, func(i uint64, p objectPage) {
		if p.dirty() {
			f(i, p.page)
		}
	})
}

// WritablePage returns the page of the given index for writing in place. A page
// that a snapshot may hold is copied first, and mappings of the old one get the
// new one.
func (o *Object) WritablePage(index uint64) (emu.Page, unix.Errno) {
	page, errno := o.Page(index)
	if errno != 0 {
		return 0, errno
	}
	have, stamp := o.pages.get(index), stampFor(o.ram.Generation(), true)
	if have.generation() == o.ram.Generation() {
		if have.stamp != stamp {
			o.ram.Ref(page)
			o.pages.set(o.ram, index, objectPage{page, stamp})
		}
		return page, 0
	}
	fresh, ok := o.ram.Alloc()
	if !ok {
		return 0, unix.ENOMEM
	}
	copy(o.ram.Bytes(fresh), o.ram.Bytes(page))
	o.ram.Ref(page) // until no mapping has it any more
	o.pages.set(o.ram, index, objectPage{fresh, stamp})
	for _, m := range o.mappers {
		m.space.replaceObjectPage(o, index, page, fresh)
	}
	o.ram.Unref(page)
	return fresh, 0
}

// unmapFrom drops all mappings of the pages from first on.
func (o *Object) unmapFrom(first uint64) {
	for _, m := range o.mappers {
		m.space.dropObjectFrom(o, first)
	}
}

// attach and detach count the mappings that s has of o.
func (o *Object) attach(s *AddressSpace) {
	o.refs++
	for i := range o.mappers {
		if o.mappers[i].space == s {
			o.mappers[i].count++
			return
		}
	}
	o.mappers = append(o.mappers, mapper{s, 1})
}

func (o *Object) detach(s *AddressSpace) {
	for i := range o.mappers {
		if o.mappers[i].space != s {
			continue
		}
		if o.mappers[i].count--; o.mappers[i].count == 0 {
			o.mappers = slices.Delete(o.mappers, i, i+1)
		}
		break
	}
	o.Unref()
}

// CopyForSnapshot copies the object; the pages are shared until one is written.
func (o *Object) CopyForSnapshot(c *deepcopy.Copier) any {
	n := &Object{ram: deepcopy.Copy(c, o.ram), source: o.source, sourceEnd: o.sourceEnd, size: o.size, refs: o.refs}
	c.Made(o, n)
	n.pages = o.pages.clone(n.ram)
	n.mappers = deepcopy.Copy(c, o.mappers)
	return n
}
