package mm

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Guest memory is never paged out: locking is accounting, and makes pages resident.

// MlockOnFault is the flag of mlock2 to lock pages as they become resident.
const MlockOnFault = 1

// mayLock reports whether pages more may be locked, if flags say that they are.
func (as *AddressSpace) mayLock(flags Flags, pages uint64) bool {
	return flags&Locked == 0 || as.Limits.MayLock || as.locked+pages <= as.Limits.MemLock/arch.PageSize
}

// mayLockAny is the condition of mlock and mlockall for EPERM.
func (as *AddressSpace) mayLockAny() bool { return as.Limits.MayLock || as.Limits.MemLock != 0 }

// Mlock locks a range as mlock2(2) does; flags is 0 or MlockOnFault.
func (as *AddressSpace) Mlock(addr arch.Addr, length uint64, flags int) unix.Errno {
	set := Locked
	switch flags {
	case 0:
	case MlockOnFault:
		set |= LockOnFault
	default:
		return unix.EINVAL
	}
	if !as.mayLockAny() {
		return unix.EPERM
	}
	start, end, errno := lockRange(addr, length)
	if errno != 0 || start == end {
		return errno
	}
	if !as.Limits.MayLock {
		more := uint64(end-start)/arch.PageSize - as.countLocked(start, end)
		if as.locked+more > as.Limits.MemLock/arch.PageSize {
			return unix.ENOMEM
		}
	}
	if errno := as.setLocked(start, end, set); errno != 0 {
		return errno
	}
	if set&LockOnFault != 0 {
		return 0
	}
	switch as.prefault(start, end) {
	case Resolved:
		return 0
	case OutOfMemory:
		return unix.EAGAIN
	default:
		return unix.ENOMEM
	}
}

// Munlock unlocks a range as munlock(2) does.
func (as *AddressSpace) Munlock(addr arch.Addr, length uint64) unix.Errno {
	start, end, errno := lockRange(addr, length)
	if errno != 0 || start == end {
		return errno
	}
	return as.setLocked(start, end, 0)
}

// lockRange rounds a range to whole pages, outwards.
func lockRange(addr arch.Addr, length uint64) (start, end arch.Addr, errno unix.Errno) {
	start = addr &^ (arch.PageSize - 1)
	size := pageAlign(length + uint64(addr-start))
	if end = start + arch.Addr(size); end < start || size < length {
		return 0, 0, unix.EINVAL
	}
	return start, end, 0
}

func (as *AddressSpace) countLocked(start, end arch.Addr) uint64 {
	var n uint64
	as.forEachPart(start, end, func(v *VMA, from, to arch.Addr) unix.Errno {
		if v.hasFlags(Locked) {
			n += uint64(to-from) / arch.PageSize
		}
		return 0
	})
	return n
}

// setLocked gives the mappings of a range the flags of set among Locked and
// LockOnFault. It stops at the first hole with ENOMEM.
func (as *AddressSpace) setLocked(start, end arch.Addr, set Flags) unix.Errno {
	for start < end {
		v := as.findPointer(start)
		if v == nil {
			return unix.ENOMEM
		}
		to := min(v.End, end)
		if v.Flags&(Locked|LockOnFault) != set {
			if errno := as.changeRange(start, to, func(v *VMA) { v.Flags = v.Flags&^(Locked|LockOnFault) | set }); errno != 0 {
				return errno
			}
		}
		start = to
	}
	return 0
}

// Mlockall locks all present mappings, future ones, or both, as mlockall(2) does.
func (as *AddressSpace) Mlockall(flags int) unix.Errno {
	if flags == 0 || flags == unix.MCL_ONFAULT || flags&^(unix.MCL_CURRENT|unix.MCL_FUTURE|unix.MCL_ONFAULT) != 0 {
		return unix.EINVAL
	}
	if !as.mayLockAny() {
		return unix.EPERM
	}
	if flags&unix.MCL_CURRENT != 0 && !as.Limits.MayLock && as.total > as.Limits.MemLock/arch.PageSize {
		return unix.ENOMEM
	}
	set := Locked
	if flags&unix.MCL_ONFAULT != 0 {
		set |= LockOnFault
	}
	as.lockFuture = 0
	if flags&unix.MCL_FUTURE != 0 {
		as.lockFuture = set
	}
	if flags&unix.MCL_CURRENT == 0 {
		return 0
	}
	for _, v := range as.VMAs() {
		as.setLocked(v.Start, v.End, set)
	}
	if set&LockOnFault == 0 {
		for _, v := range as.VMAs() {
			as.prefault(v.Start, v.End) // as far as possible, as in Linux
		}
	}
	return 0
}

// Munlockall unlocks everything.
func (as *AddressSpace) Munlockall() unix.Errno {
	as.lockFuture = 0
	for _, v := range as.VMAs() {
		as.setLocked(v.Start, v.End, 0)
	}
	return 0
}
