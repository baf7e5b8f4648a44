package mm

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// MapRequest is the arguments of mmap.
type MapRequest struct {
	Addr   arch.Addr
	Length uint64
	Prot   int // unix.PROT_*
	Flags  int // unix.MAP_*

	// For a file mapping; ignored with MAP_ANONYMOUS, where an object is made if the
	// mapping is shared.
	Object   *Object
	Offset   uint64 // in bytes
	File     File
	Readable bool // the file was opened for reading
	Writable bool // ... for writing, and not only for appending
	NoExec   bool // the file system forbids execution
	Apart    bool // the mapping is never merged with a neighbour
}

func pageAlign(n uint64) uint64 { return (n + arch.PageSize - 1) &^ (arch.PageSize - 1) }

func isPageAligned(n uint64) bool { return n%arch.PageSize == 0 }

// legacyMapFlags are the flags that MAP_SHARED_VALIDATE knows (LEGACY_MAP_MASK
// of Linux); MAP_SHARED ignores all others.
const legacyMapFlags = mapAbove4G | mapUninitialized | unix.MAP_HUGE_2MB | unix.MAP_HUGE_1GB | unix.MAP_SHARED | unix.MAP_PRIVATE | unix.MAP_FIXED | unix.MAP_ANONYMOUS |
	unix.MAP_DENYWRITE | unix.MAP_EXECUTABLE | unix.MAP_GROWSDOWN | unix.MAP_LOCKED | unix.MAP_NORESERVE |
	unix.MAP_POPULATE | unix.MAP_NONBLOCK | unix.MAP_STACK | unix.MAP_HUGETLB | unix.MAP_32BIT

// Flags of mman.h that package unix lacks.
const (
	mapAbove4G       = 0x80
	mapUninitialized = 0x4000000
)

// Mmap maps memory as mmap(2) does and returns where.
func (as *AddressSpace) Mmap(r MapRequest) (arch.Addr, unix.Errno) {
	if !isPageAligned(r.Offset) || r.Length == 0 {
		return 0, unix.EINVAL
	}
	if r.Flags&unix.MAP_HUGETLB != 0 {
		// There is no pool of huge pages, and no file that is made of huge pages.
		if r.Flags&unix.MAP_ANONYMOUS == 0 {
			return 0, unix.EINVAL
		}
		return 0, unix.ENOMEM
	}
	if r.Flags&unix.MAP_FIXED_NOREPLACE != 0 {
		r.Flags |= unix.MAP_FIXED
	}
	if r.Flags&unix.MAP_FIXED == 0 {
		r.Addr = roundHint(r.Addr)
	}
	length := pageAlign(r.Length)
	if length == 0 {
		return 0, unix.ENOMEM
	}
	if as.vmas.count > MaxMappings {
		return 0, unix.ENOMEM
	}
	addr, errno := as.chooseAddress(r.Addr, length, r.Flags)
	if errno != 0 {
		return 0, errno
	}
	if r.Flags&unix.MAP_FIXED_NOREPLACE != 0 && as.isOccupied(addr, addr+arch.Addr(length)) {
		return 0, unix.EEXIST
	}
	v, errno := as.newMapping(&r, addr, length)
	if errno != 0 {
		return 0, errno
	}
	if errno := as.replaceRange(v); errno != 0 {
		return 0, errno
	}
	if r.Flags&unix.MAP_POPULATE != 0 && r.Flags&unix.MAP_NONBLOCK == 0 || v.hasFlags(Locked) && !v.hasFlags(LockOnFault) {
		as.prefault(v.Start, v.End)
	}
	return addr, 0
}

// roundHint rounds an address that is only a hint.
func roundHint(addr arch.Addr) arch.Addr {
	addr &^= arch.PageSize - 1
	if addr != 0 && addr < MinAddr {
		return MinAddr
	}
	return addr
}

func (as *AddressSpace) isOccupied(start, end arch.Addr) bool {
	v := as.vmas.at(as.vmas.find(start))
	return v != nil && v.Start < end
}

// chooseAddress chooses the address of a mapping (get_unmapped_area of Linux).
func (as *AddressSpace) chooseAddress(addr arch.Addr, length uint64, flags int) (arch.Addr, unix.Errno) {
	if length > uint64(TaskSize) {
		return 0, unix.ENOMEM
	}
	if flags&unix.MAP_FIXED != 0 {
		switch {
		case addr > TaskSize-arch.Addr(length):
			return 0, unix.ENOMEM
		case !isPageAligned(uint64(addr)):
			return 0, unix.EINVAL
		case addr < MinAddr:
			return 0, unix.EPERM
		}
		return addr, 0
	}
	if flags&unix.MAP_32BIT != 0 {
		return as.chooseUpwards(addr, length, 1<<30, 2<<30)
	}
	if as.isFree(addr, length, TaskSize) {
		return addr, 0
	}
	if at, ok := as.vmas.highestGap(length, MinAddr, as.Layout.MmapBase); ok && !as.Layout.BottomUp {
		return at, 0
	}
	return as.chooseUpwards(addr, length, legacyBase, TaskSize)
}

// isFree reports whether the range at an address that is only a hint is free.
func (as *AddressSpace) isFree(addr arch.Addr, length uint64, end arch.Addr) bool {
	if addr == 0 || uint64(end) < length || addr > end-arch.Addr(length) {
		return false
	}
	p := as.vmas.find(addr)
	v := as.vmas.at(p)
	return v == nil || addr+arch.Addr(length) <= v.lowestReserved()
}

func (as *AddressSpace) chooseUpwards(addr arch.Addr, length uint64, low, high arch.Addr) (arch.Addr, unix.Errno) {
	if as.isFree(addr, length, high) {
		return addr, 0
	}
	if at, ok := as.vmas.lowestGap(length, low, high); ok {
		return at, 0
	}
	return 0, unix.ENOMEM
}

// newMapping checks the request and makes its mapping, which is in no list yet.
func (as *AddressSpace) newMapping(r *MapRequest, addr arch.Addr, length uint64) (VMA, unix.Errno) {
	v := VMA{
		Start: addr, End: addr + arch.Addr(length),
		Prot: r.Prot & protMask, MayProt: protMask, Flags: as.lockFuture,
	}
	if r.Flags&unix.MAP_LOCKED != 0 {
		if as.Limits.MemLock == 0 && !as.Limits.MayLock {
			return v, unix.EPERM
		}
		v.Flags |= Locked
	}
	if !as.mayLock(v.Flags, v.pageCount()) {
		return v, unix.EAGAIN
	}
	if r.Flags&unix.MAP_GROWSDOWN != 0 {
		v.Flags |= GrowsDown | Stack
	}
	if r.Flags&unix.MAP_NORESERVE != 0 {
		v.Flags |= NoReserve
	}
	if r.Flags&unix.MAP_ANONYMOUS != 0 {
		return v, as.makeAnonymous(&v, r)
	}
	return v, makeFileBacked(&v, r)
}

func (as *AddressSpace) makeAnonymous(v *VMA, r *MapRequest) unix.Errno {
	switch r.Flags & unix.MAP_TYPE {
	case unix.MAP_PRIVATE:
		return 0
	case unix.MAP_SHARED:
		if v.hasFlags(GrowsDown) {
			return unix.EINVAL
		}
		v.Flags |= Shared
		v.File = sharedZeros
		// The creator's reference is dropped when the mapping has its own.
		v.Object = NewObject(as.ram, nil, int64(v.Len()))
		v.Object.refs = 0
		return 0
	default:
		return unix.EINVAL
	}
}

// zerosFile is the name of shared anonymous memory in listings.
type zerosFile struct{}

func (zerosFile) NoteMapping() {}

func (zerosFile) NoteUnmapping() {}

func (zerosFile) Tracking() Tracking { return TrackNone }

func (zerosFile) NoteWrite() {}

func (zerosFile) MapName() (path string, dev, inode uint64) { return "/dev/zero (deleted)", 1, 1 }

var sharedZeros = zerosFile{}

// maxFile is the largest size of a file.
const maxFile = 1<<63 - 1

func makeFileBacked(v *VMA, r *MapRequest) unix.Errno {
	v.Object, v.Offset, v.File = r.Object, r.Offset, r.File
	if r.Apart {
		v.Flags |= Apart
	}
	if v.Len() > maxFile || r.Offset > maxFile-v.Len() {
		return unix.EOVERFLOW
	}
	switch kind := r.Flags & unix.MAP_TYPE; kind {
	case unix.MAP_SHARED, unix.MAP_SHARED_VALIDATE:
		if kind == unix.MAP_SHARED_VALIDATE && r.Flags&^(legacyMapFlags|unix.MAP_SHARED_VALIDATE) != 0 {
			return unix.EOPNOTSUPP
		}
		if r.Prot&unix.PROT_WRITE != 0 && !r.Writable {
			return unix.EACCES
		}
		v.Flags |= Shared
		if !r.Writable {
			v.MayProt &^= unix.PROT_WRITE
		}
	case unix.MAP_PRIVATE:
	default:
		return unix.EINVAL
	}
	if !r.Readable {
		return unix.EACCES
	}
	if r.NoExec {
		if v.Prot&unix.PROT_EXEC != 0 {
			return unix.EPERM
		}
		v.MayProt &^= unix.PROT_EXEC
	}
	if r.Object == nil {
		return unix.ENODEV
	}
	if v.hasFlags(GrowsDown) {
		return unix.EINVAL
	}
	return 0
}

// replaceRange replaces the mappings of a range by one; on some errors the old ones are
// removed all the same, as in Linux.
func (as *AddressSpace) replaceRange(v VMA) unix.Errno {
	if !as.mayExpand(&v, v.pageCount()-as.countMapped(v.Start, v.End)) {
		return unix.ENOMEM
	}
	if v.isCommitted() {
		if !as.mayCommit(v.pageCount()) {
			return unix.ENOMEM
		}
		v.Flags |= Account
	}
	if errno := as.unmapRange(v.Start, v.End); errno != 0 {
		return errno
	}
	if v.File == sharedZeros && !v.hasFlags(NoReserve) && !as.mayCommit(v.pageCount()) {
		return unix.ENOMEM
	}
	as.add(v)
	as.mergeAt(v.End)
	as.mergeAt(v.Start)
	return 0
}

// countMapped is the number of mapped pages in [start, end).
func (as *AddressSpace) countMapped(start, end arch.Addr) uint64 {
	var n uint64
	for p := as.vmas.find(start); ; p = as.vmas.next(p) {
		v := as.vmas.at(p)
		if v == nil || v.Start >= end {
			return n
		}
		n += uint64(min(v.End, end)-max(v.Start, start)) / arch.PageSize
	}
}

// Munmap removes the mappings of a range as munmap(2) does.
func (as *AddressSpace) Munmap(addr arch.Addr, length uint64) unix.Errno {
	if !isPageAligned(uint64(addr)) || addr > TaskSize || length > uint64(TaskSize-addr) || length == 0 {
		return unix.EINVAL
	}
	return as.unmapRange(addr, addr+arch.Addr(pageAlign(length)))
}

// unmapRange removes the mappings of [start, end).
func (as *AddressSpace) unmapRange(start, end arch.Addr) unix.Errno {
	if v := as.findPointer(start); v != nil && v.Start < start && v.End > end && as.vmas.count >= MaxMappings {
		return unix.ENOMEM
	}
	if !as.isOccupied(start, end) {
		return 0
	}
	as.splitAt(start)
	as.splitAt(end)
	as.space.Unmap(start, end)
	for {
		p := as.vmas.find(start)
		v := as.vmas.at(p)
		if v == nil || v.Start >= end {
			return 0
		}
		gone := as.removeAt(p)
		as.release(&gone)
	}
}

// prefault makes [start, end) resident, as far as that is possible: private writable
// memory as if it were written.
func (as *AddressSpace) prefault(start, end arch.Addr) FaultResult {
	for start < end {
		v := as.findPointer(start)
		if v == nil {
			return MapErr
		}
		access := arch.AccessRead
		if v.Prot&unix.PROT_WRITE != 0 && !v.hasFlags(Shared) {
			access = arch.AccessWrite
		}
		to := min(v.End, end)
		if r := as.prefaultFor(start, to, access); r != Resolved {
			return r
		}
		start = to
	}
	return Resolved
}

// prefaultFor makes [start, end) resident as if it were accessed.
func (as *AddressSpace) prefaultFor(start, end arch.Addr, access arch.Access) FaultResult {
	for va := start; va < end; va += arch.PageSize {
		if _, why := as.space.Walk(va, access); why == arch.NoFault {
			continue
		}
		if r := as.Fault(va, access); r != Resolved {
			return r
		}
	}
	return Resolved
}
