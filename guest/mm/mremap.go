package mm

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Mremap changes the size or the address of a mapping as mremap(2) does, and returns
// its address. Argument to matters only with MREMAP_FIXED, and as a hint with
// MREMAP_DONTUNMAP.
func (as *AddressSpace) Mremap(addr arch.Addr, oldLen, newLen uint64, flags int, to arch.Addr) (arch.Addr, unix.Errno) {
	const fixed, mayMove, keep = unix.MREMAP_FIXED, unix.MREMAP_MAYMOVE, unix.MREMAP_DONTUNMAP
	switch {
	case flags&^(fixed|mayMove|keep) != 0,
		flags&fixed != 0 && flags&mayMove == 0,
		flags&keep != 0 && (flags&mayMove == 0 || oldLen != newLen),
		!isPageAligned(uint64(addr)):
		return 0, unix.EINVAL
	}
	oldLen, newLen = pageAlign(oldLen), pageAlign(newLen)
	if newLen == 0 {
		return 0, unix.EINVAL
	}
	v := as.findPointer(addr)
	if v == nil {
		return 0, unix.EFAULT
	}
	if flags&(fixed|keep) != 0 {
		return as.remapTo(addr, oldLen, newLen, flags, to)
	}
	if oldLen >= newLen {
		if oldLen > newLen {
			if errno := as.Munmap(addr+arch.Addr(newLen), oldLen-newLen); errno != 0 {
				return 0, errno
			}
		}
		return addr, 0
	}
	if errno := as.mayResize(v, addr, oldLen, newLen); errno != 0 {
		return 0, errno
	}
	if oldLen == uint64(v.End-addr) && as.extendInPlace(v, newLen-oldLen) {
		return addr, 0
	}
	if flags&mayMove == 0 {
		return 0, unix.ENOMEM
	}
	to, errno := as.chooseAddress(0, newLen, 0)
	if errno != 0 {
		return 0, errno
	}
	return as.moveMapping(addr, oldLen, newLen, flags, to)
}

// mayResize checks that oldLen bytes of v at addr can become newLen
// (vma_to_resize of Linux).
func (as *AddressSpace) mayResize(v *VMA, addr arch.Addr, oldLen, newLen uint64) unix.Errno {
	if oldLen == 0 && !v.hasFlags(Shared) {
		return unix.EINVAL // only a shared mapping can be duplicated
	}
	if oldLen > uint64(v.End-addr) {
		return unix.EFAULT
	}
	if newLen == oldLen {
		return 0
	}
	if v.Object != nil && v.Offset+uint64(addr-v.Start)+newLen < newLen {
		return unix.EINVAL
	}
	pages := (newLen - oldLen) / arch.PageSize
	switch {
	case !as.mayLock(v.Flags, pages):
		return unix.EAGAIN
	case !as.mayExpand(v, pages), v.hasFlags(Account) && !as.mayCommit(pages):
		return unix.ENOMEM
	}
	return 0
}

// extendInPlace makes v longer in place, if the range after it is free.
func (as *AddressSpace) extendInPlace(v *VMA, by uint64) bool {
	start, end := v.End, v.End+arch.Addr(by)
	if end < start || end > TaskSize || as.isOccupied(start, end) {
		return false
	}
	p := as.vmas.find(start - 1)
	as.updateAt(p, func(v *VMA) { v.End = end })
	v = as.vmas.at(p)
	if v.hasFlags(Locked) && !v.hasFlags(LockOnFault) {
		as.prefault(start, end)
	}
	as.mergeAt(end)
	return true
}

// remapTo moves to an address that the caller has chosen (mremap_to of Linux).
func (as *AddressSpace) remapTo(addr arch.Addr, oldLen, newLen uint64, flags int, to arch.Addr) (arch.Addr, unix.Errno) {
	if !isPageAligned(uint64(to)) || newLen > uint64(TaskSize) || to > TaskSize-arch.Addr(newLen) {
		return 0, unix.EINVAL
	}
	if addr+arch.Addr(oldLen) > to && to+arch.Addr(newLen) > addr {
		return 0, unix.EINVAL
	}
	if as.vmas.count+2 >= MaxMappings-3 {
		return 0, unix.ENOMEM
	}
	if flags&unix.MREMAP_FIXED != 0 && to < MinAddr {
		return 0, unix.EPERM
	}
	if errno := as.mayResize(as.findPointer(addr), addr, min(oldLen, newLen), newLen); errno != 0 {
		return 0, errno
	}
	if flags&unix.MREMAP_FIXED != 0 {
		if errno := as.Munmap(to, newLen); errno != 0 {
			return 0, errno
		}
	}
	if oldLen > newLen {
		if errno := as.Munmap(addr+arch.Addr(newLen), oldLen-newLen); errno != 0 {
			return 0, errno
		}
		oldLen = newLen
	}
	v := as.findPointer(addr)
	if v == nil {
		return 0, unix.EFAULT // a mapping of no length, moved onto itself
	}
	if flags&unix.MREMAP_DONTUNMAP != 0 && !as.mayExpand(v, oldLen/arch.PageSize) {
		return 0, unix.ENOMEM
	}
	if flags&unix.MREMAP_FIXED == 0 {
		var errno unix.Errno
		if to, errno = as.chooseAddress(to, newLen, 0); errno != 0 {
			return 0, errno
		}
		if to < MinAddr {
			return 0, unix.EPERM
		}
	}
	return as.moveMapping(addr, oldLen, newLen, flags, to)
}

// moveMapping moves oldLen bytes at addr to a free range of newLen bytes (move_vma
// of Linux).
func (as *AddressSpace) moveMapping(addr arch.Addr, oldLen, newLen uint64, flags int, to arch.Addr) (arch.Addr, unix.Errno) {
	if as.vmas.count >= MaxMappings-3 {
		return 0, unix.ENOMEM
	}
	v := *as.findPointer(addr)
	old := v
	if v.Object != nil {
		v.Offset += uint64(addr - v.Start)
	}
	v.Start, v.End = to, to+arch.Addr(newLen)
	as.add(v)
	if oldLen > 0 {
		as.space.Move(addr, to, oldLen)
		if errno := as.removeMoved(&old, addr, addr+arch.Addr(oldLen), flags); errno != 0 {
			return 0, errno
		}
	}
	as.mergeAt(v.End)
	as.mergeAt(v.Start)
	if v.hasFlags(Locked) && !v.hasFlags(LockOnFault) {
		as.prefault(to+arch.Addr(oldLen), v.End)
	}
	return to, 0
}

// removeMoved removes the range of v that was moved away.
func (as *AddressSpace) removeMoved(v *VMA, start, end arch.Addr, flags int) unix.Errno {
	if flags&unix.MREMAP_DONTUNMAP == 0 {
		return as.unmapRange(start, end)
	}
	// Not only of the range: Linux does so, too.
	return as.changeRange(v.Start, v.End, func(v *VMA) { v.Flags &^= Locked | LockOnFault })
}
