package mm

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// FaultResult is the result of a page fault.
type FaultResult uint8

// Results of a fault.
const (
	Resolved    FaultResult = iota // the access will succeed now
	MapErr                         // nothing is mapped there: SIGSEGV, SEGV_MAPERR
	AccErr                         // the mapping does not allow it: SIGSEGV, SEGV_ACCERR
	BusErr                         // past the end of the object: SIGBUS, BUS_ADRERR
	OutOfMemory                    // guest memory is exhausted
)

// Values of si_code, from the kernel's asm-generic/siginfo.h.
const (
	segvMapErr = 1
	segvAccErr = 2
	busAdrErr  = 2
)

// Signal returns the signal of the result and its si_code; 0 for Resolved. Exhausted
// memory kills, as Linux's OOM killer does.
func (r FaultResult) Signal() (sig unix.Signal, code int32) {
	switch r {
	case MapErr:
		return unix.SIGSEGV, segvMapErr
	case AccErr:
		return unix.SIGSEGV, segvAccErr
	case BusErr:
		return unix.SIGBUS, busAdrErr
	case OutOfMemory:
		return unix.SIGKILL, 0
	}
	return 0, 0
}

// Number of pages mapped around a faulting address, so that neighbours do not fault:
// pages of zeros cost nothing, so a whole node of the page tables is filled; of a file
// as many as Linux maps (fault_around_bytes).
const (
	zeroAround = 2 << 20
	fileAround = 16 * arch.PageSize
)

// Fault resolves an access to va that the page tables did not allow. When guest memory
// is exhausted it reclaims some.
func (as *AddressSpace) Fault(va arch.Addr, access arch.Access) FaultResult {
	r := as.resolveFault(va, access)
	if r == OutOfMemory && as.reclaimMemory() {
		r = as.resolveFault(va, access)
	}
	return r
}

func (as *AddressSpace) resolveFault(va arch.Addr, access arch.Access) FaultResult {
	if va >= TaskSize {
		return MapErr
	}
	v := as.findPointer(va)
	if v == nil {
		if v = as.growStack(va); v == nil {
			return MapErr
		}
	}
	if !v.allows(access) {
		return AccErr
	}
	va &^= arch.PageSize - 1
	if r := as.populate(v, va, access); r != Resolved {
		return r
	}
	switch _, why := as.space.Walk(va, access); why {
	case arch.NoFault:
		return Resolved
	case arch.NoMemory:
		return OutOfMemory
	default:
		panic("bug: a resolved page fault is none")
	}
}

// populate makes an entry at va, which is in v, that allows the access or that the
// first write will copy.
func (as *AddressSpace) populate(v *VMA, va arch.Addr, access arch.Access) FaultResult {
	have := as.space.Get(va)
	switch {
	case v.Object == nil && have.Present():
		return Resolved
	case v.Object == nil:
		from, to := v.alignedRange(va, zeroAround)
		if !as.space.FillZero(from, to, processorRights(v.Prot)) {
			return OutOfMemory
		}
		return Resolved
	case have.Present() && (!v.hasFlags(Shared) || access != arch.AccessWrite):
		return Resolved
	case as.ram.Full():
		return OutOfMemory
	case v.hasFlags(Shared) && access == arch.AccessWrite:
		return as.mapWritable(v, va)
	}
	if r := as.mapPage(v, va); r != Resolved {
		return r
	}
	from, to := v.alignedRange(va, fileAround)
	for at := from; at < to; at += arch.PageSize {
		if as.space.Get(at).Present() {
			continue
		}
		if as.mapPage(v, at) != Resolved {
			break
		}
	}
	return Resolved
}

// alignedRange returns the aligned range of the given size that holds va, within v.
func (v *VMA) alignedRange(va arch.Addr, size arch.Addr) (from, to arch.Addr) {
	from = va &^ (size - 1)
	return max(from, v.Start), min(from+size, v.End)
}

// mapPage maps the object's page at va, for writing in place only if v is shared and
// the page may be written.
func (as *AddressSpace) mapPage(v *VMA, va arch.Addr) FaultResult {
	index := v.objectIndex(va)
	if !v.Object.contains(index) {
		return BusErr
	}
	page, errno := v.Object.Page(index)
	if errno != 0 {
		return faultResultOf(errno)
	}
	rights := processorRights(v.Prot)
	if v.hasFlags(Shared) {
		if v.Object.isWritable(index) && v.tracking() != TrackFirst {
			as.writableShared = true
		} else {
			rights &^= arch.Write
		}
	}
	as.ram.Ref(page)
	as.space.Set(va, mem.MakePTE(page, rights, v.hasFlags(Shared)))
	return Resolved
}

// mapWritable maps the object's page at va for writing in place.
func (as *AddressSpace) mapWritable(v *VMA, va arch.Addr) FaultResult {
	index := v.objectIndex(va)
	if !v.Object.contains(index) {
		return BusErr
	}
	page, errno := v.Object.WritablePage(index)
	if errno != 0 {
		return faultResultOf(errno)
	}
	tracking, have := v.tracking(), as.space.Get(va)
	if tracking == TrackFirst && !have.Noted() || tracking == TrackFaults && !have.Present() {
		v.File.NoteWrite()
	}
	as.writableShared = true
	as.ram.Ref(page)
	as.space.Set(va, mem.MakePTE(page, processorRights(v.Prot), true).Note(tracking == TrackFirst))
	return Resolved
}

// tracking returns which writes to v its file notes.
func (v *VMA) tracking() Tracking {
	if v.File == nil {
		return TrackNone
	}
	return v.File.Tracking()
}

// Sync has the effect on mappings of writing back all files.
func (as *AddressSpace) Sync() {
	for p := (position{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		v := as.vmas.at(p)
		as.protectClean(v, v.Start, v.End)
	}
}

// Clean has the effect on mappings of writing back the pages of [first, end): the next
// write to each page is noted.
func (o *Object) Clean(first, end uint64) {
	for _, m := range o.mappers {
		m.space.cleanObject(o, first, end)
	}
}

func (as *AddressSpace) cleanObject(o *Object, first, end uint64) {
	for p := (position{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		v := as.vmas.at(p)
		begin := v.Offset / arch.PageSize
		from, to := max(first, begin), min(end, begin+v.pageCount())
		if v.Object == o && from < to {
			as.protectClean(v, v.Start+arch.Addr((from-begin)*arch.PageSize), v.Start+arch.Addr((to-begin)*arch.PageSize))
		}
	}
}

// protectClean removes the right to write from the pages of [start, end), which is in v, if
// their writes are noted.
func (as *AddressSpace) protectClean(v *VMA, start, end arch.Addr) {
	if !v.hasFlags(Shared) || v.tracking() != TrackFirst {
		return
	}
	for _, m := range as.space.Mappings(start, end) {
		if m.PTE.Noted() {
			as.ram.Ref(m.PTE.Page())
			as.space.Set(m.Addr, m.PTE.With(m.PTE.Page(), m.PTE.Perm()&^arch.Write).Note(false))
		}
	}
}

func faultResultOf(errno unix.Errno) FaultResult {
	if errno == unix.ENOMEM {
		return OutOfMemory
	}
	return BusErr
}

// growStack extends the stack above va down to it and returns it, or nil.
func (as *AddressSpace) growStack(va arch.Addr) *VMA {
	p := as.vmas.find(va)
	v := as.vmas.at(p)
	if v == nil || !v.hasFlags(GrowsDown) {
		return nil
	}
	start := va &^ (arch.PageSize - 1)
	if start < MinAddr || uint64(v.End-start) > as.Limits.Stack {
		return nil
	}
	below := as.vmas.before(p)
	if below != nil && !below.hasFlags(GrowsDown) && below.Prot&protMask != 0 && start-below.End < stackGuard {
		return nil
	}
	pages := uint64(v.Start-start) / arch.PageSize
	if !as.mayExpand(v, pages) || !as.mayCommit(pages) || !as.mayLock(v.Flags, pages) {
		return nil
	}
	as.updateAt(p, func(v *VMA) { v.Start = start })
	return as.vmas.at(p)
}
