package mm

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Flags are the properties of a mapping besides its rights.
type Flags uint16

// Properties of a mapping.
const (
	Shared      Flags = 1 << iota // every process that maps the object sees writes
	GrowsDown                     // grows at a fault below its start
	Stack                         // counts against RLIMIT_STACK, not RLIMIT_DATA
	NoReserve                     // is not charged as committed memory
	Locked                        // mlock
	LockOnFault                   // mlock2 with MLOCK_ONFAULT
	DontFork                      // absent in children
	WipeOnFork                    // zeros in children
	DontDump                      // not in core dumps
	Account                       // was charged as committed memory
	Apart                         // is never merged with a neighbour
)

// File has the properties of a mapped file that /proc/PID/maps and the like show.
// Mappings merge only if their files are equal, so it should be a pointer to an open
// file description.
type File interface {
	// MapName returns the path as the guest sees it, device and inode number.
	MapName() (path string, dev, inode uint64)
	// NoteMapping is called for each new mapping of the file: by mmap, mremap, fork,
	// or when one is split in two. NoteUnmapping is called for each that is removed.
	NoteMapping()
	NoteUnmapping()
	// Tracking returns which writes by way of shared mappings the file notes, and
	// NoteWrite is called for each.
	Tracking() Tracking
	NoteWrite()
}

// Tracking is a choice of the writes to mapped pages that a file notes.
type Tracking int

const (
	// TrackNone is for files without times.
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
	Start, End arch.Addr // multiples of the page size
	Prot       int       // unix.PROT_READ, PROT_WRITE, PROT_EXEC
	MayProt    int       // the rights that mprotect may give
	Flags      Flags
	Object     *Object // nil: private zeros
	Offset     uint64  // of Start in the object, in bytes
	File       File    // nil: anonymous
}

const protMask = unix.PROT_READ | unix.PROT_WRITE | unix.PROT_EXEC

// Len is the number of bytes that v covers.
func (v *VMA) Len() uint64 { return uint64(v.End - v.Start) }

func (v *VMA) pageCount() uint64 { return v.Len() / arch.PageSize }

func (v *VMA) hasFlags(f Flags) bool { return v.Flags&f != 0 }

// processorRights returns the rights that the processor can express: on x86-64 a page
// that can be written or executed can be read.
func processorRights(prot int) arch.Perm {
	if prot&protMask == 0 {
		return 0
	}
	p := arch.Read
	if prot&unix.PROT_WRITE != 0 {
		p |= arch.Write
	}
	if prot&unix.PROT_EXEC != 0 {
		p |= arch.Exec
	}
	return p
}

// allows reports whether the rights of v permit the access.
func (v *VMA) allows(a arch.Access) bool {
	switch a {
	case arch.AccessWrite:
		return v.Prot&unix.PROT_WRITE != 0
	case arch.AccessFetch:
		return v.Prot&unix.PROT_EXEC != 0
	default:
		return v.Prot&protMask != 0
	}
}

// isCommitted reports whether v is charged as committed memory: private writable
// mappings are, unless MAP_NORESERVE was given.
func (v *VMA) isCommitted() bool {
	return v.Flags&(NoReserve|Shared) == 0 && v.Prot&unix.PROT_WRITE != 0
}

// isData reports whether v counts against RLIMIT_DATA.
func (v *VMA) isData() bool {
	return v.Prot&unix.PROT_WRITE != 0 && v.Flags&(Shared|Stack) == 0
}

// isExecutable reports whether v counts as program text.
func (v *VMA) isExecutable() bool {
	return v.Prot&(unix.PROT_EXEC|unix.PROT_WRITE) == unix.PROT_EXEC && v.Flags&Stack == 0
}

// objectIndex returns the index of the object's page at va.
func (v *VMA) objectIndex(va arch.Addr) uint64 {
	return (v.Offset + uint64(va-v.Start)) / arch.PageSize
}

// addressOf returns the address of the page of the given index, if v covers it.
func (v *VMA) addressOf(index uint64) (arch.Addr, bool) {
	first := v.Offset / arch.PageSize
	if index < first || index-first >= v.pageCount() {
		return 0, false
	}
	return v.Start + arch.Addr((index-first)*arch.PageSize), true
}

// stackGuard is the distance that stacks keep from the mapping below.
const stackGuard = 256 * arch.PageSize

// lowestReserved returns the address up to which other mappings may be placed below v:
// v's start, or the end of the gap below a stack.
func (v *VMA) lowestReserved() arch.Addr {
	if !v.hasFlags(GrowsDown) {
		return v.Start
	}
	if v.Start < stackGuard {
		return 0
	}
	return v.Start - stackGuard
}

// canMerge reports whether next, which begins where v ends, can be merged with v.
func (v *VMA) canMerge(next *VMA) bool {
	return v.End == next.Start && !v.hasFlags(Apart) && v.Prot == next.Prot && v.MayProt == next.MayProt &&
		v.Flags == next.Flags && v.Object == next.Object && v.File == next.File &&
		(v.Object == nil || v.Offset+v.Len() == next.Offset)
}
