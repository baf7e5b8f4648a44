package mm

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Flags are the properties of a mapping besides its rights.
type Flags uint16

// Properties of a mapping.
const (
	Shared      Flags = 1 << iota // writes are seen by everyone who maps the object
	GrowsDown                     // grows at a fault below its start
	Stack                         // counts against RLIMIT_STACK, not RLIMIT_DATA
	NoReserve                     // does not count as a promise of memory
	Locked                        // mlock
	LockOnFault                   // mlock2 with MLOCK_ONFAULT
	DontFork                      // absent in children
	WipeOnFork                    // zeros in children
	DontDump                      // not in core dumps
	Account                       // was counted as a promise of memory
	Apart                         // never becomes one with a neighbour
)

// File says what /proc/PID/maps and its like show of a mapped file. Mappings
// merge only if their files are equal, so it should be a pointer to an open
// file description.
type File interface {
	// MapName returns the path as the guest sees it, device and inode number.
	MapName() (path string, dev, inode uint64)
	// Mapped is called for each mapping of the file that comes into being: by mmap,
	// mremap, fork, or when one is split in two. Unmapped is called for each that
	// goes.
	Mapped()
	Unmapped()
	// Tracking says which writes by way of shared mappings the file notes, and Written
	// is called for each.
	Tracking() Tracking
	Written()
}

// Tracking says which writes to mapped pages a file notes.
type Tracking int

const (
	// TrackNone is of what has no times.
	TrackNone Tracking = iota
	// TrackFaults are writes to pages that were not mapped, as files in memory note
	// them.
	TrackFaults
	// TrackFirst are the first writes to each page since it was mapped, or written
	// back (Clean), as files on a disk note them.
	TrackFirst
)

// VMA is a mapping: a range of addresses with the same rights and properties,
// backed by an object or by zeros.
type VMA struct {
	Start, End event.Addr // multiples of the page size
	Prot       int        // unix.PROT_READ, PROT_WRITE, PROT_EXEC
	MayProt    int        // the rights that mprotect may give
	Flags      Flags
	Object     *Object // nil: private zeros
	Offset     uint64  // of Start in the object, in bytes
	File       File    // nil: anonymous
}

const protMask = unix.PROT_READ | unix.PROT_WRITE | unix.PROT_EXEC

// Len is the number of bytes that v covers.
func (v *VMA) Len() uint64 { return uint64(v.End - v.Start) }

func (v *VMA) pages() uint64 { return v.Len() / emu.PageSize }

func (v *VMA) has(f Flags) bool { return v.Flags&f != 0 }

// perm is what the processor allows: on x86-64 what can be written or executed
// can be read.
func perm(prot int) emu.Perm {
	if prot&protMask == 0 {
		return 0
	}
	p := emu.Read
	if prot&unix.PROT_WRITE != 0 {
		p |= emu.Write
	}
	if prot&unix.PROT_EXEC != 0 {
		p |= emu.Exec
	}
	return p
}

// allows tells whether the rights of v permit the access.
func (v *VMA) allows(a emu.Access) bool {
	switch a {
	case emu.AccessWrite:
		return v.Prot&unix.PROT_WRITE != 0
	case emu.AccessFetch:
		return v.Prot&unix.PROT_EXEC != 0
	default:
		return v.Prot&protMask != 0
	}
}

// accountable tells whether v promises memory: what is private and writable
// does, unless it was asked not to.
func (v *VMA) accountable() bool {
	return v.Flags&(NoReserve|Shared) == 0 && v.Prot&unix.PROT_WRITE != 0
}

// isData tells whether v counts against RLIMIT_DATA.
func (v *VMA) isData() bool {
	return v.Prot&unix.PROT_WRITE != 0 && v.Flags&(Shared|Stack) == 0
}

// isExec tells whether v counts as program text.
func (v *VMA) isExec() bool {
	return v.Prot&(unix.PROT_EXEC|unix.PROT_WRITE) == unix.PROT_EXEC && v.Flags&Stack == 0
}

// index is the page of the object that is behind va.
func (v *VMA) index(va event.Addr) uint64 {
	return (v.Offset + uint64(va-v.Start)) / emu.PageSize
}

// at is the address of the page of the given index, if v covers it.
func (v *VMA) at(index uint64) (event.Addr, bool) {
	first := v.Offset / emu.PageSize
	if index < first || index-first >= v.pages() {
		return 0, false
	}
	return v.Start + event.Addr((index-first)*emu.PageSize), true
}

// stackGuard is the distance that stacks keep from the mapping below.
const stackGuard = 256 * emu.PageSize

// floor is the lowest address that nothing may be placed above of: v's start,
// or the end of the gap below a stack.
func (v *VMA) floor() event.Addr {
	if !v.has(GrowsDown) {
		return v.Start
	}
	if v.Start < stackGuard {
		return 0
	}
	return v.Start - stackGuard
}

// merges tells whether next, which begins where v ends, can be one with it.
func (v *VMA) merges(next *VMA) bool {
	return v.End == next.Start && !v.has(Apart) && v.Prot == next.Prot && v.MayProt == next.MayProt &&
		v.Flags == next.Flags && v.Object == next.Object && v.File == next.File &&
		(v.Object == nil || v.Offset+v.Len() == next.Offset)
}
