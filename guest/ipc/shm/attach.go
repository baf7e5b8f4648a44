package shm

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/ipc"
	"github.com/heddle-dmt/heddle/guest/mm"
)

// attachment is one shmat.
type attachment struct{ segment *Segment }

// firstDevice is the number that /proc/PID/maps shows for memory without a
// mounted file system.
const firstDevice = 1

// MapName implements mm.File.
func (a *attachment) MapName() (path string, dev, inode uint64) {
	return a.segment.name, firstDevice, uint64(a.segment.perm.ID)
}

// Tracking implements mm.File: a segment has no times of writes.
func (*attachment) Tracking() mm.Tracking { return mm.TrackNone }

// NoteWrite implements mm.File.
func (*attachment) NoteWrite() {}

// NoteMapping implements mm.File.
func (a *attachment) NoteMapping() {
	s := a.segment
	c := s.system.host.Caller()
	s.mappings++
	s.attached, s.last = c.Now, c.PID
}

// NoteUnmapping implements mm.File.
func (a *attachment) NoteUnmapping() {
	s := a.segment
	c := s.system.host.Caller()
	s.mappings--
	s.detached, s.last = c.Now, c.PID
	s.destroyIfUnused()
}

// Attach is shmat(2): it maps the segment into an address space and returns
// where.
func (y *System) Attach(c *ipc.Caller, as *mm.AddressSpace, id int32, addr arch.Addr, flags uint32) (arch.Addr, unix.Errno) {
	r := mm.MapRequest{
		Addr: addr, Flags: unix.MAP_SHARED, Prot: unix.PROT_READ, Readable: true, Writable: flags&readOnly == 0, Apart: true,
	}
	if id < 0 {
		return 0, unix.EINVAL
	}
	if errno := placeAttachment(&r, flags); errno != 0 {
		return 0, errno
	}
	rights := uint32(ipc.MayRead)
	if r.Writable {
		rights |= ipc.MayWrite
		r.Prot |= unix.PROT_WRITE
	}
	if flags&executed != 0 {
		rights |= ipc.MayExec
		r.Prot |= unix.PROT_EXEC
	}
	s, errno := y.Find(id)
	if errno != 0 {
		return 0, errno
	}
	if errno := s.perm.Allows(c, rights); errno != 0 {
		return 0, errno
	}
	if r.Addr != 0 && flags&remap == 0 && r.Addr+arch.Addr(s.size) < r.Addr {
		return 0, unix.EINVAL
	}
	r.Length, r.Object, r.File = s.size, s.object, &attachment{s}
	at, errno := as.Mmap(r)
	if errno == unix.EEXIST {
		errno = unix.EINVAL
	}
	return at, errno
}

// placeAttachment decides about the address of shmat.
func placeAttachment(r *mm.MapRequest, flags uint32) unix.Errno {
	if r.Addr == 0 {
		if flags&remap != 0 {
			return unix.EINVAL
		}
		return 0
	}
	if r.Addr%arch.PageSize != 0 {
		if flags&round == 0 {
			return unix.EINVAL
		}
		if r.Addr &^= arch.PageSize - 1; r.Addr == 0 && flags&remap != 0 {
			return unix.EINVAL
		}
	}
	r.Flags |= unix.MAP_FIXED
	if flags&remap == 0 {
		r.Flags |= unix.MAP_FIXED_NOREPLACE
	}
	return 0
}

// Detach is shmdt(2): it removes the mappings that are left of one shmat that
// was at addr, even if its beginning is gone. EINVAL: nothing is left.
func Detach(as *mm.AddressSpace, addr arch.Addr) unix.Errno {
	if addr%arch.PageSize != 0 {
		return unix.EINVAL
	}
	var found *attachment
	for _, v := range as.VMAs() {
		a, ok := v.File.(*attachment)
		switch {
		case !ok || v.Start < addr || uint64(v.Start-addr) != v.Offset:
			continue
		case found == nil:
			found = a
		case a != found:
			continue
		}
		if errno := as.Munmap(v.Start, v.Len()); errno != 0 {
			return errno
		}
	}
	if found == nil {
		return unix.EINVAL
	}
	return 0
}
