package mm

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// adviceRange checks address and length as madvise and its relatives do. An
// empty range ends at its start.
func adviceRange(addr event.Addr, length uint64) (end event.Addr, errno unix.Errno) {
	rounded := pageAlign(length)
	if !aligned(uint64(addr)) || length != 0 && rounded == 0 || addr+event.Addr(rounded) < addr {
		return 0, unix.EINVAL
	}
	return addr + event.Addr(rounded), 0
}

// Madvise takes advice on a range as madvise(2) does. What only concerns speed
// is accepted and has no effect.
func (as *AddressSpace) Madvise(addr event.Addr, length uint64, advice int) unix.Errno {
	apply, errno := adviser(advice)
	if errno != 0 {
		return errno
	}
	end, errno := adviceRange(addr, length)
	if errno != 0 {
		return errno
	}
	stopAtHoles := advice == unix.MADV_POPULATE_READ || advice == unix.MADV_POPULATE_WRITE
	if stopAtHoles && as.lookup(addr) == nil && addr < end {
		return unix.ENOMEM
	}
	return as.walk(addr, end, func(v *VMA, start, to event.Addr) unix.Errno {
		errno := apply(as, v, start, to)
		if errno == 0 && stopAtHoles && to < end && as.lookup(to) == nil {
			return unix.ENOMEM
		}
		return errno
	})
}

// walk calls f for the part [start, end) of each mapping in a range, until f
// fails. ENOMEM: there are holes, which did not stop it.
func (as *AddressSpace) walk(start, end event.Addr, f func(v *VMA, start, end event.Addr) unix.Errno) unix.Errno {
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

// applyAdvice acts on [start, end), which lies in v.
type applyAdvice func(as *AddressSpace, v *VMA, start, end event.Addr) unix.Errno

func adviser(advice int) (applyAdvice, unix.Errno) {
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
		return advisePopulate(emu.AccessRead), 0
	case unix.MADV_POPULATE_WRITE:
		return advisePopulate(emu.AccessWrite), 0
	case unix.MADV_HWPOISON, softOffline:
		return nil, unix.EPERM
	}
	return nil, unix.EINVAL
}

func adviseNothing(*AddressSpace, *VMA, event.Addr, event.Addr) unix.Errno { return 0 }

func adviseDontNeed(as *AddressSpace, v *VMA, start, end event.Addr) unix.Errno {
	if v.has(Locked) {
		return unix.EINVAL
	}
	return adviseDontNeedLocked(as, v, start, end)
}

func adviseDontNeedLocked(as *AddressSpace, _ *VMA, start, end event.Addr) unix.Errno {
	as.space.Unmap(start, end)
	return 0
}

// adviseFree lets the contents go when memory is short, which it never is.
func adviseFree(_ *AddressSpace, v *VMA, _, _ event.Addr) unix.Errno {
	if v.Object != nil {
		return unix.EINVAL
	}
	return 0
}

func adviseCold(_ *AddressSpace, v *VMA, _, _ event.Addr) unix.Errno {
	if v.has(Locked) {
		return unix.EINVAL
	}
	return 0
}

// adviseRemove punches a hole in the object.
func adviseRemove(_ *AddressSpace, v *VMA, start, end event.Addr) unix.Errno {
	switch {
	case v.has(Locked), v.Object == nil:
		return unix.EINVAL
	case !v.has(Shared), v.MayProt&unix.PROT_WRITE == 0:
		return unix.EACCES
	}
	return v.Object.Zero(int64(v.Offset+uint64(start-v.Start)), int64(end-start))
}

func adviseWipeOnFork(as *AddressSpace, v *VMA, start, end event.Addr) unix.Errno {
	if v.Object != nil {
		return unix.EINVAL
	}
	return adviseFlags(WipeOnFork, 0)(as, v, start, end)
}

func adviseFlags(set, unset Flags) applyAdvice {
	return func(as *AddressSpace, v *VMA, start, end event.Addr) unix.Errno {
		if flags := v.Flags&^unset | set; flags != v.Flags {
			return as.change(start, end, func(v *VMA) { v.Flags = flags })
		}
		return 0
	}
}

func advisePopulate(access emu.Access) applyAdvice {
	return func(as *AddressSpace, v *VMA, start, end event.Addr) unix.Errno {
		if access == emu.AccessRead && v.Prot&unix.PROT_READ == 0 {
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

// Msync checks a range as msync(2) does. Mappings and their files are the same
// bytes, so there is nothing to write; but the next writes are noted.
func (as *AddressSpace) Msync(addr event.Addr, length uint64, flags int) unix.Errno {
	if flags&^(unix.MS_ASYNC|unix.MS_INVALIDATE|unix.MS_SYNC) != 0 || !aligned(uint64(addr)) ||
		flags&unix.MS_ASYNC != 0 && flags&unix.MS_SYNC != 0 {
		return unix.EINVAL
	}
	end := addr + event.Addr(pageAlign(length))
	if end < addr {
		return unix.ENOMEM
	}
	return as.walk(addr, end, func(v *VMA, from, to event.Addr) unix.Errno {
		if flags&unix.MS_INVALIDATE != 0 && v.has(Locked) {
			return unix.EBUSY
		}
		if flags&unix.MS_SYNC != 0 && v.has(Shared) {
			v.Object.Clean(v.index(from), v.index(to-1)+1)
		}
		return 0
	})
}

// Mincore writes to vec one byte for each page of a range, 1 for those in
// memory, as mincore(2) does.
func (as *AddressSpace) Mincore(addr event.Addr, length uint64, vec event.Addr) unix.Errno {
	if !aligned(uint64(addr)) {
		return unix.EINVAL
	}
	if addr > TaskSize || length > uint64(TaskSize-addr) {
		return unix.ENOMEM
	}
	const batch = emu.PageSize // pages at a time, as in Linux
	for end := addr + event.Addr(pageAlign(length)); addr < end; {
		v := as.lookup(addr)
		if v == nil {
			return unix.ENOMEM
		}
		to := min(v.End, end, addr+batch*emu.PageSize)
		in := as.residency(v, addr, to)
		if errno := as.CopyOut(vec, in); errno != 0 {
			return errno
		}
		vec += event.Addr(len(in))
		addr = to
	}
	return 0
}

func (as *AddressSpace) residency(v *VMA, start, end event.Addr) []byte {
	in := make([]byte, (end-start)/emu.PageSize)
	for i := range in {
		va := start + event.Addr(i*emu.PageSize)
		e := as.space.Get(va)
		if e.Present() && e.Page() != emu.ZeroPage || v.Object != nil && v.Object.resident(v.index(va)) {
			in[i] = 1
		}
	}
	return in
}
