package kernel

import (
	"strings"

	"golang.org/x/sys/unix"
)

// Personalities and their flags (include/uapi/linux/personality.h) that have an effect here. The
// others are only stored.
const (
	perLinux32 = 0x8
	perMask    = 0xff

	uname26           = 0x0020000
	addrNoRandomize   = 0x0040000
	addrCompatLayout  = 0x0200000
	readImpliesExec   = 0x0400000
	stickyTimeouts    = 0x4000000
	mmapPageZero      = 0x0100000
	clearedOnSetID    = readImpliesExec | addrNoRandomize | addrCompatLayout | mmapPageZero
	personalityIsRead = 0xffffffff
)

func sysPersonality(t *Task, a [6]uint64) (uint64, unix.Errno) {
	old := t.personality
	if uint32(a[0]) != personalityIsRead {
		t.personality = uint32(a[0])
	}
	return uint64(old), 0
}

// impliedProtection is the protection of a mapping for which prot is requested.
func (t *Task) impliedProtection(prot int) int {
	if t.personality&readImpliesExec != 0 && prot&unix.PROT_READ != 0 {
		prot |= unix.PROT_EXEC
	}
	return prot
}

// shownRelease is the kernel release that uname returns to the thread.
func (t *Task) shownRelease() string {
	if t.personality&uname26 == 0 {
		return Release
	}
	// Linux 6.1 becomes 2.6.61, followed by the suffix after its numbers.
	return "2.6.61" + strings.TrimLeft(Release, "0123456789.")
}

// shownMachine is the processor name that uname returns to the thread.
func (t *Task) shownMachine() string {
	if t.personality&perMask == perLinux32 {
		return "i686"
	}
	return "x86_64"
}
