package mm

import "github.com/heddle-dmt/heddle/emu"

// mayLock tells whether pages more may be locked, if flags say that they are.
func (as *AddressSpace) mayLock(flags Flags, pages uint64) bool {
	return flags&Locked == 0 || as.Limits.MayLock || as.locked+pages <= as.Limits.MemLock/emu.PageSize
}
