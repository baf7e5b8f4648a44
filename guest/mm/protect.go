package mm

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Mprotect changes the rights of a range as mprotect(2) does. On an error the mappings
// before the one at fault are changed already, as in Linux.
func (as *AddressSpace) Mprotect(addr arch.Addr, length uint64, prot int) unix.Errno {
	grows := prot & (unix.PROT_GROWSDOWN | unix.PROT_GROWSUP)
	prot &^= unix.PROT_GROWSDOWN | unix.PROT_GROWSUP
	if grows == unix.PROT_GROWSDOWN|unix.PROT_GROWSUP || !isPageAligned(uint64(addr)) {
		return unix.EINVAL
	}
	if length == 0 {
		return 0
	}
	end := addr + arch.Addr(pageAlign(length))
	if end <= addr {
		return unix.ENOMEM
	}
	if prot&^(protMask|protSem) != 0 {
		return unix.EINVAL
	}
	v := as.vmas.at(as.vmas.find(addr))
	if v == nil {
		return unix.ENOMEM
	}
	switch {
	case grows == unix.PROT_GROWSDOWN:
		if v.Start >= end {
			return unix.ENOMEM
		}
		addr = v.Start
		if !v.hasFlags(GrowsDown) {
			return unix.EINVAL
		}
	case v.Start > addr:
		return unix.ENOMEM
	case grows == unix.PROT_GROWSUP:
		return unix.EINVAL // no mapping grows up on x86
	}
	return as.protectRange(addr, end, prot&protMask)
}

// protSem is PROT_SEM: memory for atomic operations, which all memory is.
const protSem = 8

func (as *AddressSpace) protectRange(addr, end arch.Addr, prot int) unix.Errno {
	for addr < end {
		v := as.findPointer(addr)
		if v == nil {
			return unix.ENOMEM
		}
		to := min(v.End, end)
		if errno := as.protectMapping(v, addr, to, prot); errno != 0 {
			return errno
		}
		addr = to
	}
	return 0
}

// protectMapping changes [start, end) of v.
func (as *AddressSpace) protectMapping(v *VMA, start, end arch.Addr, prot int) unix.Errno {
	if prot&^v.MayProt != 0 {
		return unix.EACCES
	}
	if prot == v.Prot {
		return 0
	}
	after, pages := *v, uint64(end-start)/arch.PageSize
	after.Prot = prot
	if prot&unix.PROT_WRITE != 0 {
		if !as.mayExpand(&after, pages) && as.mayExpand(v, pages) {
			return unix.ENOMEM
		}
		if v.Prot&unix.PROT_WRITE == 0 && v.Flags&(Account|Shared|NoReserve) == 0 {
			if !as.mayCommit(pages) {
				return unix.ENOMEM
			}
			after.Flags |= Account
		}
	}
	rights := processorRights(prot)
	if v.hasFlags(Shared) {
		rights &^= arch.Write // a write faults, and gets a page that may be written
	}
	errno := as.changeRange(start, end, func(v *VMA) { v.Prot, v.Flags = after.Prot, after.Flags })
	if errno == 0 {
		as.space.Protect(start, end, rights)
	}
	return errno
}
