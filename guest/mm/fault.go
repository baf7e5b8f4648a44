package mm

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// FaultResult is what became of a page fault.
type FaultResult uint8

// Results of a fault.
const (
	Resolved    FaultResult = iota // the access will succeed now
	MapErr                         // nothing is mapped there: SIGSEGV, SEGV_MAPERR
	AccErr                         // the mapping does not allow it: SIGSEGV, SEGV_ACCERR
	BusErr                         // past the end of the object: SIGBUS, BUS_ADRERR
	OutOfMemory                    // guest memory is used up
)

// Values of si_code, from the kernel's asm-generic/siginfo.h.
const (
	segvMapErr = 1
	segvAccErr = 2
	busAdrErr  = 2
)

// Signal is the signal that the result stands for and its si_code; 0 for
// Resolved. Running out of memory kills, as Linux's OOM killer does.
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

// How much is mapped around a faulting address, so that neighbours do not
// fault: pages of zeros cost nothing, so a whole node of the page tables is
// filled; of a file as much as Linux maps (fault_around_bytes).
const (
	zeroAround = 2 << 20
	fileAround = 16 * emu.PageSize
)

// Fault resolves an access to va that the page tables did not allow. When guest
// memory is used up it reclaims some.
func (as *AddressSpace) Fault(va event.Addr, access emu.Access) FaultResult {
	r := as.fault(va, access)
	if r == OutOfMemory && as.reclaim() {
		r = as.fault(va, access)
	}
	return r
}

func (as *AddressSpace) fault(va event.Addr, access emu.Access) FaultResult {
	if va >= TaskSize {
		return MapErr
	}
	v := as.lookup(va)
	if v == nil {
		if v = as.growStack(va); v == nil {
			return MapErr
		}
	}
	if !v.allows(access) {
		return AccErr
	}
	va &^= emu.PageSize - 1
	if r := as.populate(v, va, access); r != Resolved {
		return r
	}
	switch _, why := as.space.Walk(va, access); why {
	case emu.NoFault:
		return Resolved
	case emu.NoMemory:
		return OutOfMemory
	default:
		panic("bug: a resolved page fault is none")
	}
}

// populate puts an entry at va, which is in v, that allows the access or that
// the first write will copy.
func (as *AddressSpace) populate(v *VMA, va event.Addr, access emu.Access) FaultResult {
	have := as.space.Get(va)
	switch {
	case v.Object == nil && have.Present():
		return Resolved
	case v.Object == nil:
		from, to := v.around(va, zeroAround)
		if !as.space.FillZero(from, to, perm(v.Prot)) {
			return OutOfMemory
		}
		return Resolved
	case have.Present() && (!v.has(Shared) || access != emu.AccessWrite):
		return Resolved
	case as.ram.Full():
		return OutOfMemory
	case v.has(Shared) && access == emu.AccessWrite:
		return as.mapWritable(v, va)
	}
	if r := as.mapPage(v, va); r != Resolved {
		return r
	}
	from, to := v.around(va, fileAround)
	for at := from; at < to; at += emu.PageSize {
		if as.space.Get(at).Present() {
			continue
		}
		if as.mapPage(v, at) != Resolved {
			break
		}
	}
	return Resolved
}

// around is the aligned range of the given size that holds va, within v.
func (v *VMA) around(va event.Addr, size event.Addr) (from, to event.Addr) {
	from = va &^ (size - 1)
	return max(from, v.Start), min(from+size, v.End)
}

// mapPage maps the object's page at va, for writing in place only if v is
// shared and the page may be.
func (as *AddressSpace) mapPage(v *VMA, va event.Addr) FaultResult {
	index := v.index(va)
	if !v.Object.holds(index) {
		return BusErr
	}
	page, errno := v.Object.Page(index)
	if errno != 0 {
		return failed(errno)
	}
	rights := perm(v.Prot)
	if v.has(Shared) {
		if v.Object.isWritable(index) && v.tracking() != TrackFirst {
			as.writableShared = true
		} else {
			rights &^= emu.Write
		}
	}
	as.ram.Ref(page)
	as.space.Set(va, emu.MakePTE(page, rights, v.has(Shared)))
	return Resolved
}

// mapWritable maps the object's page at va for writing in place.
func (as *AddressSpace) mapWritable(v *VMA, va event.Addr) FaultResult {
	index := v.index(va)
	if !v.Object.holds(index) {
		return BusErr
	}
	page, errno := v.Object.WritablePage(index)
	if errno != 0 {
		return failed(errno)
	}
	tracking, have := v.tracking(), as.space.Get(va)
	if tracking == TrackFirst && !have.Noted() || tracking == TrackFaults && !have.Present() {
		v.File.Written()
	}
	as.writableShared = true
	as.ram.Ref(page)
	as.space.Set(va, emu.MakePTE(page, perm(v.Prot), true).Note(tracking == TrackFirst))
	return Resolved
}

// tracking says which writes to v its file notes.
func (v *VMA) tracking() Tracking {
	if v.File == nil {
		return TrackNone
	}
	return v.File.Tracking()
}

// Sync is what writing back all files does to the mappings.
func (as *AddressSpace) Sync() {
	for p := (pos{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		v := as.vmas.at(p)
		as.clean(v, v.Start, v.End)
	}
}

// Clean is what writing back the pages of [first, end) does to mappings: the next write
// to each page is noted.
func (o *Object) Clean(first, end uint64) {
	for _, m := range o.mappers {
		m.space.cleanObject(o, first, end)
	}
}

func (as *AddressSpace) cleanObject(o *Object, first, end uint64) {
	for p := (pos{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		v := as.vmas.at(p)
		begin := v.Offset / emu.PageSize
		from, to := max(first, begin), min(end, begin+v.pages())
		if v.Object == o && from < to {
			as.clean(v, v.Start+event.Addr((from-begin)*emu.PageSize), v.Start+event.Addr((to-begin)*emu.PageSize))
		}
	}
}

// clean takes the right to write from the pages of [start, end), which is in v, whose
// writes were noted.
func (as *AddressSpace) clean(v *VMA, start, end event.Addr) {
	if !v.has(Shared) || v.tracking() != TrackFirst {
		return
	}
	for _, m := range as.space.Mappings(start, end) {
		if m.PTE.Noted() {
			as.ram.Ref(m.PTE.Page())
			as.space.Set(m.Addr, m.PTE.With(m.PTE.Page(), m.PTE.Perm()&^emu.Write).Note(false))
		}
	}
}

func failed(errno unix.Errno) FaultResult {
	if errno == unix.ENOMEM {
		return OutOfMemory
	}
	return BusErr
}

// growStack extends the stack above va down to it and returns it, or nil.
func (as *AddressSpace) growStack(va event.Addr) *VMA {
	p := as.vmas.find(va)
	v := as.vmas.at(p)
	if v == nil || !v.has(GrowsDown) {
		return nil
	}
	start := va &^ (emu.PageSize - 1)
	if start < MinAddr || uint64(v.End-start) > as.Limits.Stack {
		return nil
	}
	below := as.vmas.before(p)
	if below != nil && !below.has(GrowsDown) && below.Prot&protMask != 0 && start-below.End < stackGuard {
		return nil
	}
	pages := uint64(v.Start-start) / emu.PageSize
	if !as.mayExpand(v, pages) || !as.mayPromise(pages) || !as.mayLock(v.Flags, pages) {
		return nil
	}
	as.update(p, func(v *VMA) { v.Start = start })
	return as.vmas.at(p)
}
