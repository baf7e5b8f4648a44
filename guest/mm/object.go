package mm

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// Source supplies the initial bytes of an object, for example from a file of
// the host. A source never changes; it is shared by snapshots.
type Source interface {
	// ReadAt fills p with the bytes from off on; bytes past the end are zero.
	ReadAt(p []byte, off int64) unix.Errno
	SharedInSnapshot()
}

// Object is a memory object: bytes in pages of guest RAM that are allocated when they
// are first used, from a source or as zeros. It is the content of a file, of a memfd or
// of a shared anonymous mapping; address spaces map objects. Reading, writing and
// mapping see the same bytes.
//
// An object has a reference count: one for its creator, one for each mapping. When the
// last reference is dropped its pages are freed.
type Object struct {
	ram       *mem.RAM
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
func NewObject(ram *mem.RAM, source Source, size int64) *Object {
	return &Object{ram: ram, source: source, sourceEnd: size, size: size, refs: 1}
}

// Size is the number of bytes; mappings fault beyond the page of the last byte.
func (o *Object) Size() int64 { return o.size }

// MayBeWritten reports whether a shared mapping of the object may be written, or be
// made writable.
func (o *Object) MayBeWritten() bool {
	for _, m := range o.mappers {
		for _, v := range m.space.VMAs() {
			if v.Object == o && v.hasFlags(Shared) && v.MayProt&unix.PROT_WRITE != 0 {
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

// Unref drops a reference, and frees the pages with the last.
func (o *Object) Unref() {
	if o.refs--; o.refs == 0 {
		o.Release()
	}
}

// Release frees all pages; it is called for a snapshot that is discarded. It may be
// called again.
func (o *Object) Release() { o.pages.dropFrom(o.ram, 0) }

// ReadAt copies bytes from off on to p and returns how many there are: fewer
// than len(p) only at the end of the object.
func (o *Object) ReadAt(p []byte, off int64) (int, unix.Errno) {
	if off >= o.size {
		return 0, 0
	}
	p = p[:min(int64(len(p)), o.size-off)]
	for done := 0; done < len(p); {
		part := p[done:min(len(p), done+bytesToPageEnd(off+int64(done)))]
		if errno := o.readWithinPage(part, off+int64(done)); errno != 0 {
			return done, errno
		}
		done += len(part)
	}
	return len(p), 0
}

// bytesToPageEnd is the number of bytes from off to the end of its page.
func bytesToPageEnd(off int64) int { return arch.PageSize - int(off%arch.PageSize) }

// readWithinPage reads within one page without making it resident.
func (o *Object) readWithinPage(p []byte, off int64) unix.Errno {
	if have := o.pages.get(uint64(off) / arch.PageSize); have.isPresent() {
		copy(p, o.ram.Bytes(have.page)[off%arch.PageSize:])
		return 0
	}
	return o.readSource(p, off)
}

// readSource fills p with the source's bytes, and zeros past its end.
func (o *Object) readSource(p []byte, off int64) unix.Errno {
	n := max(0, min(int64(len(p)), o.sourceEnd-off))
	clear(p[n:])
	if o.source == nil || n == 0 {
		clear(p)
		return 0
	}
	return o.source.ReadAt(p[:n], off)
}

// WriteAt copies p to off and grows the object as needed. It fails with ENOSPC when
// guest memory is exhausted, and with the source's error when the rest of a page cannot
// be read; bytes written before the error stay.
func (o *Object) WriteAt(p []byte, off int64) (int, unix.Errno) {
	for done := 0; done < len(p); {
		at := off + int64(done)
		page, errno := o.WritablePage(uint64(at) / arch.PageSize)
		if errno == unix.ENOMEM {
			errno = unix.ENOSPC
		}
		if errno != 0 {
			return done, errno
		}
		n := copy(o.ram.Bytes(page)[at%arch.PageSize:], p[done:])
		o.ram.Written(page)
		done += n
		o.size = max(o.size, at+int64(n))
	}
	return len(p), 0
}

// Truncate sets the size. Bytes cut off are zero if the object grows again, and
// mappings of whole pages past the end fault.
func (o *Object) Truncate(size int64) unix.Errno {
	if size < o.size {
		if errno := o.clearTail(size); errno != 0 {
			return errno
		}
		first := uint64(size+arch.PageSize-1) / arch.PageSize
		o.unmapFrom(first)
		o.pages.dropFrom(o.ram, first)
		o.sourceEnd = min(o.sourceEnd, size)
	}
	o.size = size
	return 0
}

// clearTail clears the rest of the page that holds the byte at size.
func (o *Object) clearTail(size int64) unix.Errno {
	if size%arch.PageSize == 0 {
		return 0
	}
	if !o.isResident(uint64(size) / arch.PageSize) {
		return 0 // sourceEnd hides the source's bytes
	}
	page, errno := o.WritablePage(uint64(size) / arch.PageSize)
	if errno != 0 {
		return errno
	}
	clear(o.ram.Bytes(page)[size%arch.PageSize:])
	o.ram.Written(page)
	return 0
}

// Zero makes the bytes of [off, off+n) zero without changing the size: a hole. Whole
// pages that the source does not cover are freed.
func (o *Object) Zero(off, n int64) unix.Errno {
	zeros := make([]byte, arch.PageSize)
	for end := min(off+n, o.size); off < end; {
		part := min(end-off, int64(bytesToPageEnd(off)))
		index := uint64(off) / arch.PageSize
		switch {
		case off < o.sourceEnd && o.source != nil, part < arch.PageSize && o.isResident(index):
			if _, errno := o.WriteAt(zeros[:part], off); errno != 0 {
				return errno
			}
		case o.isResident(index):
			o.freePage(index)
		default:
			next, ok := o.pages.nextPresent(index)
			if !ok {
				return 0
			}
			off = int64(max(next, index+1)) * arch.PageSize
			continue
		}
		off += part
	}
	return 0
}

// Missing is the number of pages with bytes of [off, off+n) that are not resident.
func (o *Object) Missing(off, n int64) int64 {
	missing := int64(0)
	for index := uint64(off) / arch.PageSize; n > 0 && index <= uint64(off+n-1)/arch.PageSize; index++ {
		if !o.isResident(index) {
			missing++
		}
	}
	return missing
}

// freePage frees a page; mappings of it then read zeros.
func (o *Object) freePage(index uint64) {
	page := o.pages.get(index).page
	for _, m := range o.mappers {
		m.space.dropObjectPage(o, index, page)
	}
	o.pages.remove(o.ram, index)
}

// Page returns the page of the given index for reading, making it resident. The caller
// must Ref it to keep it. ENOMEM: guest memory is exhausted.
func (o *Object) Page(index uint64) (mem.Page, unix.Errno) {
	if have := o.pages.get(index); have.isPresent() {
		return have.page, 0
	}
	page, errno := o.readPage(index)
	if errno != 0 {
		return 0, errno
	}
	o.pages.set(o.ram, index, objectPage{page, stampFor(o.ram.Generation(), false)})
	return page, 0
}

// readPage allocates a page with the source's bytes.
func (o *Object) readPage(index uint64) (mem.Page, unix.Errno) {
	off := int64(index) * arch.PageSize
	if o.source == nil || off >= o.sourceEnd {
		page, ok := o.ram.Alloc()
		if !ok {
			return 0, unix.ENOMEM
		}
		return page, 0
	}
	if o.ram.Full() {
		return 0, unix.ENOMEM
	}
	if errno := o.readSource(o.ram.Draft()[:], off); errno != 0 {
		return 0, errno
	}
	page, ok := o.ram.AllocFilled()
	if !ok {
		return 0, unix.ENOMEM
	}
	return page, 0
}

// contains reports whether some byte of the page is part of the object.
func (o *Object) contains(index uint64) bool {
	return index < uint64(o.size+arch.PageSize-1)/arch.PageSize
}

// isResident reports whether the page is in RAM.
func (o *Object) isResident(index uint64) bool { return o.pages.get(index).isPresent() }

// isWritable reports whether WritablePage would return the resident page unchanged,
// with nothing left to do.
func (o *Object) isWritable(index uint64) bool {
	p := o.pages.get(index)
	return p.isPresent() && p.stamp == stampFor(o.ram.Generation(), true)
}

// isDirty reports whether the page was requested for writing.
func (o *Object) isDirty(index uint64) bool { return o.pages.get(index).isDirty() }

// isPage reports whether page is the object's page of the given index.
func (o *Object) isPage(index uint64, page mem.Page) bool {
	p := o.pages.get(index)
	return p.isPresent() && p.page == page
}

// forEachDirty calls f for the pages with indices in [first, end) that were requested
// for writing, in order.
func (o *Object) forEachDirty(first, end uint64, f func(index uint64, page mem.Page)) {
	o.pages.forEach(first, end, func(i uint64, p objectPage) {
		if p.isDirty() {
			f(i, p.page)
		}
	})
}

// WritablePage returns the page of the given index for writing in place. A page
// that a snapshot may hold is copied first, and mappings of the old one get the
// new one.
func (o *Object) WritablePage(index uint64) (mem.Page, unix.Errno) {
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
	o.ram.Ref(page) // until no mapping has it
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

// addMapping and removeMapping count the mappings that s has of o.
func (o *Object) addMapping(s *AddressSpace) {
	o.refs++
	for i := range o.mappers {
		if o.mappers[i].space == s {
			o.mappers[i].count++
			return
		}
	}
	o.mappers = append(o.mappers, mapper{s, 1})
}

func (o *Object) removeMapping(s *AddressSpace) {
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
	n.pages = o.pages.cloneTo(n.ram)
	n.mappers = deepcopy.Copy(c, o.mappers)
	return n
}
