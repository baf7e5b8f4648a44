package mm

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Mremap changes the size or the place of a mapping as mremap(2) does, and
// returns where it is. To matters only with MREMAP_FIXED, and as a wish with
// MREMAP_DONTUNMAP.
func (as *AddressSpace) Mremap(addr event.Addr, oldLen, newLen uint64, flags int, to event.Addr) (event.Addr, unix.Errno) {
	const fixed, mayMove, keep = unix.MREMAP_FIXED, unix.MREMAP_MAYMOVE, unix.MREMAP_DONTUNMAP
	switch {
	case flags&^(fixed|mayMove|keep) != 0,
		flags&fixed != 0 && flags&mayMove == 0,
		flags&keep != 0 && (flags&mayMove == 0 || oldLen != newLen),
		!aligned(uint64(addr)):
		return 0, unix.EINVAL
	}
	oldLen, newLen = pageAlign(oldLen), pageAlign(newLen)
	if newLen == 0 {
		return 0, unix.EINVAL
	}
	v := as.lookup(addr)
	if v == nil {
		return 0, unix.EFAULT
	}
	if flags&(fixed|keep) != 0 {
		return as.remapTo(addr, oldLen, newLen, flags, to)
	}
	if oldLen >= newLen {
		if oldLen > newLen {
			if errno := as.Munmap(addr+event.Addr(newLen), oldLen-newLen); errno != 0 {
				return 0, errno
			}
		}
		return addr, 0
	}
	if errno := as.mayResize(v, addr, oldLen, newLen); errno != 0 {
		return 0, errno
	}
	if oldLen == uint64(v.End-addr) && as.extend(v, newLen-oldLen) {
		return addr, 0
	}
	if flags&mayMove == 0 {
		return 0, unix.ENOMEM
	}
	to, errno := as.place(0, newLen, 0)
	if errno != 0 {
		return 0, errno
	}
	return as.relocate(addr, oldLen, newLen, flags, to)
}

// mayResize checks that oldLen bytes of v at addr can become newLen
// (vma_to_resize of Linux).
func (as *AddressSpace) mayResize(v *VMA, addr event.Addr, oldLen, newLen uint64) unix.Errno {
	if oldLen == 0 && !v.has(Shared) {
		return unix.EINVAL // only a shared mapping can be had twice
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
	pages := (newLen - oldLen) / emu.PageSize
	switch {
	case !as.mayLock(v.Flags, pages):
		return unix.EAGAIN
	case !as.mayExpand(v, pages), v.has(Account) && !as.mayPromise(pages):
		return unix.ENOMEM
	}
	return 0
}

// extend makes v longer where it is, if what follows is free.
func (as *AddressSpace) extend(v *VMA, by uint64) bool {
	start, end := v.End, v.End+event.Addr(by)
	if end < start || end > TaskSize || as.occupied(start, end) {
		return false
	}
	p := as.vmas.find(start - 1)
	as.update(p, func(v *VMA) { v.End = end })
	v = as.vmas.at(p)
	if v.has(Locked) && !v.has(LockOnFault) {
		as.prefault(start, end)
	}
	as.merge(end)
	return true
}

// remapTo moves to an address that the caller has chosen (mremap_to of Linux).
func (as *AddressSpace) remapTo(addr event.Addr, oldLen, newLen uint64, flags int, to event.Addr) (event.Addr, unix.Errno) {
	if !aligned(uint64(to)) || newLen > uint64(TaskSize) || to > TaskSize-event.Addr(newLen) {
		return 0, unix.EINVAL
	}
	if addr+event.Addr(oldLen) > to && to+event.Addr(newLen) > addr {
		return 0, unix.EINVAL
	}
	if as.vmas.count+2 >= MaxMappings-3 {
		return 0, unix.ENOMEM
	}
	if flags&unix.MREMAP_FIXED != 0 && to < MinAddr {
		return 0, unix.EPERM
	}
	if errno := as.mayResize(as.lookup(addr), addr, min(oldLen, newLen), newLen); errno != 0 {
		return 0, errno
	}
	if flags&unix.MREMAP_FIXED != 0 {
		if errno := as.Munmap(to, newLen); errno != 0 {
			return 0, errno
		}
	}
	if oldLen > newLen {
		if errno := as.Munmap(addr+event.Addr(newLen), oldLen-newLen); errno != 0 {
			return 0, errno
		}
		oldLen = newLen
	}
	v := as.lookup(addr)
	if v == nil {
		return 0, unix.EFAULT // a mapping of no length, moved onto itself
	}
	if flags&unix.MREMAP_DONTUNMAP != 0 && !as.mayExpand(v, oldLen/emu.PageSize) {
		return 0, unix.ENOMEM
	}
	if flags&unix.MREMAP_FIXED == 0 {
		var errno unix.Errno
		if to, errno = as.place(to, newLen, 0); errno != 0 {
			return 0, errno
		}
		if to < MinAddr {
			return 0, unix.EPERM
		}
	}
	return as.relocate(addr, oldLen, newLen, flags, to)
}

// relocate moves oldLen bytes at addr to a free range of newLen bytes (move_vma
// of Linux).
func (as *AddressSpace) relocate(addr event.Addr, oldLen, newLen uint64, flags int, to event.Addr) (event.Addr, unix.Errno) {
	if as.vmas.count >= MaxMappings-3 {
		return 0, unix.ENOMEM
	}
	v := *as.lookup(addr)
	old := v
	if v.Object != nil {
		v.Offset += uint64(addr - v.Start)
	}
	v.Start, v.End = to, to+event.Addr(newLen)
	as.add(v)
	if oldLen > 0 {
		as.space.Move(addr, to, oldLen)
		if errno := as.leave(&old, addr, addr+event.Addr(oldLen), flags); errno != 0 {
			return 0, errno
		}
	}
	as.merge(v.End)
	as.merge(v.Start)
	if v.has(Locked) && !v.has(LockOnFault) {
		as.prefault(to+event.Addr(oldLen), v.End)
	}
	return to, 0
}

// leave disposes of the range of v that was moved away.
func (as *AddressSpace) leave(v *VMA, start, end event.Addr, flags int) unix.Errno {
	if flags&unix.MREMAP_DONTUNMAP == 0 {
		return as.unmap(start, end)
	}
	// Not only of the range: so does Linux.
	return as.change(v.Start, v.End, func(v *VMA) { v.Flags &^= Locked | LockOnFault })
}
