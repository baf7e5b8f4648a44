// Package shm is System V shared memory, shmget(2): segments that processes
// attach to their address spaces. The bytes of a segment are a memory object
// (mm.Object), mapped as other MAP_SHARED memory is.
//
// Invariants:
//
//  1. A segment holds one reference to its memory object until it is destroyed.
//  2. A segment counts its mappings one by one (attachment), so that fork, munmap,
//     mremap, execve and exit count as they do in Linux.
//  3. A segment that was removed is destroyed together with its last mapping.
package shm

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/guest/ipc"
	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/mm"
)

// Limits, as /proc/sys/kernel shows them (include/uapi/linux/shm.h).
const (
	MaxSegments = 4096                           // shmmni
	MaxSize     = uint64(math.MaxUint64 - 1<<24) // shmmax, in bytes
	MaxPages    = uint64(math.MaxUint64 - 1<<24) // shmall
	MinSize     = 1
)

// Flags of shmget and shmat.
const (
	hugePages = 0o4000   // SHM_HUGETLB
	noReserve = 0o10000  // SHM_NORESERVE
	readOnly  = 0o10000  // SHM_RDONLY
	round     = 0o20000  // SHM_RND
	remap     = 0o40000  // SHM_REMAP
	executed  = 0o100000 // SHM_EXEC
)

// Commands of shmctl besides those of package ipc.
const (
	LockMemory   = 11 // SHM_LOCK
	UnlockMemory = 12 // SHM_UNLOCK
	StatIndex    = 13 // SHM_STAT
	UsageInfo    = 14 // SHM_INFO
	StatAny      = 15 // SHM_STAT_ANY
)

// Flags in the mode of a segment.
const (
	toDestroy = 0o1000 // SHM_DEST
	isLocked  = 0o2000 // SHM_LOCKED
)

// Host is the part of the kernel that segments ask.
type Host interface {
	// Caller is the process that acts now.
	Caller() *ipc.Caller
}

// System holds all segments.
type System struct {
	ipc.Table[*Segment]
	pages  uint64 // of all segments
	ram    *mem.RAM
	memory *kmem.Account
	host   Host
}

// New makes a System without segments.
func New(ram *mem.RAM, memory *kmem.Account, host Host) *System {
	return &System{ram: ram, memory: memory, host: host}
}

// Segment is one shared memory segment.
type Segment struct {
	perm               ipc.Perm
	system             *System
	size               uint64
	object             *mm.Object
	name               string // in /proc/PID/maps
	mappings           uint64
	creator, last      int32 // process ids
	attached, detached int64 // times in seconds
}

// Common implements ipc.Object.
func (s *Segment) Common() *ipc.Perm { return &s.perm }

func (s *Segment) pages() uint64 { return (s.size + arch.PageSize - 1) / arch.PageSize }

// Get is shmget(2).
func (y *System) Get(c *ipc.Caller, key int32, size uint64, flags uint32) (int32, unix.Errno) {
	return y.Table.Get(c, key, flags,
		func() (*Segment, unix.Errno) { return y.create(c, key, size, flags) },
		func(s *Segment) unix.Errno {
			if s.size < size {
				return unix.EINVAL
			}
			return 0
		})
}

func (y *System) create(c *ipc.Caller, key int32, size uint64, flags uint32) (*Segment, unix.Errno) {
	if size < MinSize || size > MaxSize {
		return nil, unix.EINVAL
	}
	s := &Segment{
		perm: ipc.NewPerm(c, key, flags), system: y, size: size, creator: c.PID,
		name: fmt.Sprintf("/SYSV%08x (deleted)", uint32(key)),
	}
	switch pages := s.pages(); {
	case pages*arch.PageSize < size, y.pages+pages < y.pages, y.pages+pages > MaxPages:
		return nil, unix.ENOSPC
	case flags&hugePages != 0:
		return nil, unix.ENOMEM // there is no pool of huge pages
	case flags&noReserve == 0 && pages > y.ram.Limit(), size > math.MaxInt64, !y.memory.Charge(kmem.Object):
		return nil, unix.ENOMEM
	}
	if errno := y.Add(s, MaxSegments); errno != 0 {
		y.memory.Release(kmem.Object)
		return nil, errno
	}
	s.object = mm.NewObject(y.ram, nil, int64(size))
	y.pages += s.pages()
	return s, 0
}

// destroy gives the memory of a segment back.
func (y *System) destroy(s *Segment) {
	y.Delete(s)
	y.pages -= s.pages()
	y.memory.Release(kmem.Object)
	s.object.Unref()
}

func (s *Segment) destroyIfUnused() {
	if s.mappings == 0 && s.perm.Mode&toDestroy != 0 {
		s.system.destroy(s)
	}
}

// Remove is IPC_RMID: no key finds the segment any more, and it ends with its
// last mapping.
func (y *System) Remove(s *Segment) {
	s.perm.Mode |= toDestroy
	y.HideKey(s)
	s.destroyIfUnused()
}

// LockMemory is SHM_LOCK and SHM_UNLOCK; mayLock reports whether RLIMIT_MEMLOCK
// allows anything. Memory here is never swapped out, so that the mode shows it
// and nothing else does.
func (s *Segment) LockMemory(c *ipc.Caller, lock, mayLock bool) unix.Errno {
	if !c.Lock && (c.EUID != s.perm.UID && c.EUID != s.perm.CUID || lock && !mayLock) {
		return unix.EPERM
	}
	s.perm.Mode &^= isLocked
	if lock {
		s.perm.Mode |= isLocked
	}
	return 0
}

// Status is struct shmid64_ds of x86-64, without its unused end.
type Status struct {
	Perm                       ipc.Layout
	Size                       uint64
	Attached, Detached, Change int64
	Creator, Last              int32
	Mappings                   uint64
	_                          [2]uint64
}

// Status describes the segment.
func (s *Segment) Status() Status {
	return Status{
		Perm: s.perm.Layout(), Size: s.size, Attached: s.attached, Detached: s.detached, Change: s.perm.Changed,
		Creator: s.creator, Last: s.last, Mappings: s.mappings,
	}
}

// Resident is the number of pages of the segment that are in memory.
func (s *Segment) Resident() int { return s.object.Resident() }

// Usage is struct shm_info of x86-64.
type Usage struct {
	Segments        int32
	_               int32
	Pages, Resident uint64
	_               [3]uint64 // nothing is swapped out
}

// Usage adds all segments up.
func (y *System) Usage() Usage {
	u := Usage{Segments: int32(y.Len()), Pages: y.pages}
	for _, s := range y.List() {
		u.Resident += uint64(s.Resident())
	}
	return u
}
