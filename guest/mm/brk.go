package mm

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// SetBrk says where the heap begins; the loader calls it.
func (as *AddressSpace) SetBrk(start event.Addr) {
	as.Layout.StartBrk = start
	as.brk = start
}

// HeapEnd is where the heap ends.
func (as *AddressSpace) HeapEnd() event.Addr { return as.brk }

// Brk moves the end of the heap as brk(2) does and returns where it is
// afterwards: where it was if it cannot be moved. What is added has the rights
// prot.
func (as *AddressSpace) Brk(to event.Addr, prot int) event.Addr {
	if to < as.Layout.StartBrk || to > TaskSize {
		return as.brk
	}
	old, end := event.Addr(pageAlign(uint64(as.brk))), event.Addr(pageAlign(uint64(to)))
	switch {
	case end < old:
		if as.unmap(end, old) != 0 {
			return as.brk
		}
	case end > old:
		if !as.growHeap(to, old, end, prot) {
			return as.brk
		}
	}
	as.brk = to
	return to
}

// growHeap maps [old, end) for the heap.
func (as *AddressSpace) growHeap(to, old, end event.Addr, prot int) bool {
	size := uint64(to-as.Layout.StartBrk) + uint64(as.Layout.EndData-as.Layout.StartData)
	if size > as.Limits.Data {
		return false
	}
	// Linux keeps a page of distance to what follows.
	if next := as.vmas.at(as.vmas.find(old)); next != nil && end+emu.PageSize > next.floor() {
		return false
	}
	v := VMA{
		Start: old, End: end, Prot: prot, MayProt: protMask,
		Flags: Account | as.lockFuture,
	}
	if !as.mayLock(v.Flags, v.pages()) || as.vmas.count > MaxMappings || as.install(v) != 0 {
		return false
	}
	if v.has(Locked) && !v.has(LockOnFault) {
		as.prefault(old, end)
	}
	return true
}
