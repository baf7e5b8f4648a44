package procfs

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// memoryFile is an open /proc/PID/mem: the memory that the process had when it was
// opened, at offsets that are its addresses.
type memoryFile struct{ space *mm.AddressSpace }

// openMemory opens it. EACCES: the caller may not trace the process.
func openMemory(r *request, _ int) (vfs.FileImpl, unix.Errno) {
	p := r.process()
	switch {
	case p == nil:
		return nil, unix.ESRCH
	case !p.MayTrace(r.c):
		return nil, unix.EACCES
	}
	return &memoryFile{p.Space()}, 0
}

// ReachesMemory marks the file for the kernel: store buffers are drained before it is
// read or written.
func (m *memoryFile) ReachesMemory() {}

// isGone reports whether no process has the memory any more.
func (m *memoryFile) isGone() bool { return m.space == nil || m.space.Users() == 0 }

// Read implements vfs.FileImpl: all memory that a debugger may see.
func (m *memoryFile) Read(_ *vfs.Ctx, p []byte, off int64) (int, unix.Errno) {
	if m.isGone() || len(p) == 0 {
		return 0, 0
	}
	return transferResult(m.space.PeekForced(arch.Addr(off), p))
}

// Write implements vfs.FileImpl: to private memory whatever its protection.
func (m *memoryFile) Write(_ *vfs.Ctx, p []byte, off int64) (int, unix.Errno) {
	if m.isGone() || len(p) == 0 {
		return 0, 0
	}
	return transferResult(m.space.PokeForced(arch.Addr(off), p))
}

func transferResult(n int) (int, unix.Errno) {
	if n == 0 {
		return 0, unix.EIO
	}
	return n, 0
}

// SeekTo implements vfs.Seeker. There is no end to seek from.
func (m *memoryFile) SeekTo(off int64, whence int, at int64) (int64, unix.Errno) {
	switch whence {
	case unix.SEEK_SET:
		return off, 0
	case unix.SEEK_CUR:
		return at + off, 0
	}
	return 0, unix.EINVAL
}
