package mm

import "github.com/heddle-dmt/heddle/emu/arch"

// SetBrk sets the start of the heap; the loader calls it.
func (as *AddressSpace) SetBrk(start arch.Addr) {
	as.Layout.StartBrk = start
	as.brk = start
}

// HeapEnd returns the end of the heap.
func (as *AddressSpace) HeapEnd() arch.Addr { return as.brk }

// Brk moves the end of the heap as brk(2) does and returns the end afterwards: the old
// one if it cannot be moved. Added memory has the rights prot.
func (as *AddressSpace) Brk(to arch.Addr, prot int) arch.Addr {
	if to < as.Layout.StartBrk || to > TaskSize {
		return as.brk
	}
	old, end := arch.Addr(pageAlign(uint64(as.brk))), arch.Addr(pageAlign(uint64(to)))
	switch {
	case end < old:
		if as.unmapRange(end, old) != 0 {
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
func (as *AddressSpace) growHeap(to, old, end arch.Addr, prot int) bool {
	size := uint64(to-as.Layout.StartBrk) + uint64(as.Layout.EndData-as.Layout.StartData)
	if size > as.Limits.Data {
		return false
	}
	// Linux keeps a page of distance to the next mapping.
	if next := as.vmas.at(as.vmas.find(old)); next != nil && end+arch.PageSize > next.lowestReserved() {
		return false
	}
	v := VMA{
		Start: old, End: end, Prot: prot, MayProt: protMask,
		Flags: Account | as.lockFuture,
	}
	if !as.mayLock(v.Flags, v.pageCount()) || as.vmas.count > MaxMappings || as.replaceRange(v) != 0 {
		return false
	}
	if v.hasFlags(Locked) && !v.hasFlags(LockOnFault) {
		as.prefault(old, end)
	}
	return true
}
