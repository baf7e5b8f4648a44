package mm

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// adviceRange checks address and length as madvise and its relatives do. An
// empty range ends at its start.
func adviceRange(addr arch.Addr, length uint64) (end arch.Addr, errno unix.Errno) {
	rounded := pageAlign(length)
	if !isPageAligned(uint64(addr)) || length != 0 && rounded == 0 || addr+arch.Addr(rounded) < addr {
		return 0, unix.EINVAL
	}
	return addr + arch.Addr(rounded), 0
}

// Madvise handles advice on a range as madvise(2) does. Advice that only concerns speed
// is accepted and has no effect.
func (as *AddressSpace) Madvise(addr arch.Addr, length uint64, advice int) unix.Errno {
	apply, errno := adviceAction(advice)
	if errno != 0 {
		return errno
	}
	end, errno := adviceRange(addr, length)
	if errno != 0 {
		return errno
	}
	stopAtHoles := advice == unix.MADV_POPULATE_READ || advice == unix.MADV_POPULATE_WRITE
	if stopAtHoles && as.findPointer(addr) == nil && addr < end {
		return unix.ENOMEM
	}
	return as.forEachPart(addr, end, func(v *VMA, start, to arch.Addr) unix.Errno {
		errno := apply(as, v, start, to)
		if errno == 0 && stopAtHoles && to < end && as.findPointer(to) == nil {
			return unix.ENOMEM
		}
		return errno
	})
}

// forEachPart calls f for the part [start, end) of each mapping in a range, until f
// fails. ENOMEM: there are holes, which did not stop it.
func (as *AddressSpace) forEachPart(start, end arch.Addr, f func(v *VMA, start, end arch.Addr) unix.Errno) unix.Errno {
	var holes unix.Errno
	for start < end {
		v := as.vmas.at(as.vmas.find(start))
		if v == nil || v.Start >= end {
			return unix.ENOMEM
		}
		if v.Start > start {
			holes = unix.ENOMEM
			start = v.Start
		}
		to := min(v.End, end)
		if errno := f(v, start, to); errno != 0 {
			return errno
		}
		start = to
	}
	return holes
}

// softOffline is MADV_SOFT_OFFLINE of the kernel's mman-common.h.
const softOffline = 101

// adviceFunc applies advice to [start, end), which lies in v.
type adviceFunc func(as *AddressSpace, v *VMA, start, end arch.Addr) unix.Errno

func adviceAction(advice int) (adviceFunc, unix.Errno) {
	switch advice {
	case unix.MADV_NORMAL, unix.MADV_RANDOM, unix.MADV_SEQUENTIAL, unix.MADV_WILLNEED,
		unix.MADV_MERGEABLE, unix.MADV_UNMERGEABLE, unix.MADV_HUGEPAGE, unix.MADV_NOHUGEPAGE:
		return adviseNothing, 0
	case unix.MADV_DONTNEED:
		return adviseDontNeed, 0
	case unix.MADV_DONTNEED_LOCKED:
		return adviseDontNeedLocked, 0
	case unix.MADV_FREE:
		return adviseFree, 0
	case unix.MADV_COLD, unix.MADV_PAGEOUT:
		return adviseCold, 0
	case unix.MADV_REMOVE:
		return adviseRemove, 0
	case unix.MADV_DONTFORK:
		return adviseFlags(DontFork, 0), 0
	case unix.MADV_DOFORK:
		return adviseFlags(0, DontFork), 0
	case unix.MADV_WIPEONFORK:
		return adviseWipeOnFork, 0
	case unix.MADV_KEEPONFORK:
		return adviseFlags(0, WipeOnFork), 0
	case unix.MADV_DONTDUMP:
		return adviseFlags(DontDump, 0), 0
	case unix.MADV_DODUMP:
		return adviseFlags(0, DontDump), 0
	case unix.MADV_POPULATE_READ:
		return advisePopulate(arch.AccessRead), 0
	case unix.MADV_POPULATE_WRITE:
		return advisePopulate(arch.AccessWrite), 0
	case unix.MADV_HWPOISON, softOffline:
		return nil, unix.EPERM
	}
	return nil, unix.EINVAL
}

func adviseNothing(*AddressSpace, *VMA, arch.Addr, arch.Addr) unix.Errno { return 0 }

func adviseDontNeed(as *AddressSpace, v *VMA, start, end arch.Addr) unix.Errno {
	if v.hasFlags(Locked) {
		return unix.EINVAL
	}
	return adviseDontNeedLocked(as, v, start, end)
}

func adviseDontNeedLocked(as *AddressSpace, _ *VMA, start, end arch.Addr) unix.Errno {
	as.space.Unmap(start, end)
	return 0
}

// adviseFree permits the kernel to discard the contents when memory is short, which
// never happens.
func adviseFree(_ *AddressSpace, v *VMA, _, _ arch.Addr) unix.Errno {
	if v.Object != nil {
		return unix.EINVAL
	}
	return 0
}

func adviseCold(_ *AddressSpace, v *VMA, _, _ arch.Addr) unix.Errno {
	if v.hasFlags(Locked) {
		return unix.EINVAL
	}
	return 0
}

// adviseRemove punches a hole in the object.
func adviseRemove(_ *AddressSpace, v *VMA, start, end arch.Addr) unix.Errno {
	switch {
	case v.hasFlags(Locked), v.Object == nil:
		return unix.EINVAL
	case !v.hasFlags(Shared), v.MayProt&unix.PROT_WRITE == 0:
		return unix.EACCES
	}
	return v.Object.Zero(int64(v.Offset+uint64(start-v.Start)), int64(end-start))
}

func adviseWipeOnFork(as *AddressSpace, v *VMA, start, end arch.Addr) unix.Errno {
	if v.Object != nil {
		return unix.EINVAL
	}
	return adviseFlags(WipeOnFork, 0)(as, v, start, end)
}

func adviseFlags(set, unset Flags) adviceFunc {
	return func(as *AddressSpace, v *VMA, start, end arch.Addr) unix.Errno {
		if flags := v.Flags&^unset | set; flags != v.Flags {
			return as.changeRange(start, end, func(v *VMA) { v.Flags = flags })
		}
		return 0
	}
}

func advisePopulate(access arch.Access) adviceFunc {
	return func(as *AddressSpace, v *VMA, start, end arch.Addr) unix.Errno {
		if access == arch.AccessRead && v.Prot&unix.PROT_READ == 0 {
			return unix.EINVAL // although the processor would allow it
		}
		switch as.prefaultFor(start, end, access) {
		case Resolved:
			return 0
		case AccErr, MapErr:
			return unix.EINVAL
		case BusErr:
			return unix.EFAULT
		default:
			return unix.ENOMEM
		}
	}
}

// Msync checks a range as msync(2) does. Mappings and their files are the same bytes,
// so nothing has to be written; but the next writes are noted.
func (as *AddressSpace) Msync(addr arch.Addr, length uint64, flags int) unix.Errno {
	if flags&^(unix.MS_ASYNC|unix.MS_INVALIDATE|unix.MS_SYNC) != 0 || !isPageAligned(uint64(addr)) ||
		flags&unix.MS_ASYNC != 0 && flags&unix.MS_SYNC != 0 {
		return unix.EINVAL
	}
	end := addr + arch.Addr(pageAlign(length))
	if end < addr {
		return unix.ENOMEM
	}
	return as.forEachPart(addr, end, func(v *VMA, from, to arch.Addr) unix.Errno {
		if flags&unix.MS_INVALIDATE != 0 && v.hasFlags(Locked) {
			return unix.EBUSY
		}
		if flags&unix.MS_SYNC != 0 && v.hasFlags(Shared) {
			v.Object.Clean(v.objectIndex(from), v.objectIndex(to-1)+1)
		}
		return 0
	})
}

// Mincore writes to vec one byte for each page of a range, 1 for those in
// memory, as mincore(2) does.
func (as *AddressSpace) Mincore(addr arch.Addr, length uint64, vec arch.Addr) unix.Errno {
	if !isPageAligned(uint64(addr)) {
		return unix.EINVAL
	}
	if addr > TaskSize || length > uint64(TaskSize-addr) {
		return unix.ENOMEM
	}
	const batch = arch.PageSize // pages at a time, as in Linux
	for end := addr + arch.Addr(pageAlign(length)); addr < end; {
		v := as.findPointer(addr)
		if v == nil {
			return unix.ENOMEM
		}
		to := min(v.End, end, addr+batch*arch.PageSize)
		in := as.residencyBytes(v, addr, to)
		if errno := as.CopyOut(vec, in); errno != 0 {
			return errno
		}
		vec += arch.Addr(len(in))
		addr = to
	}
	return 0
}

func (as *AddressSpace) residencyBytes(v *VMA, start, end arch.Addr) []byte {
	in := make([]byte, (end-start)/arch.PageSize)
	for i := range in {
		va := start + arch.Addr(i*arch.PageSize)
		e := as.space.Get(va)
		if e.Present() && e.Page() != mem.ZeroPage || v.Object != nil && v.Object.isResident(v.objectIndex(va)) {
			in[i] = 1
		}
	}
	return in
}
