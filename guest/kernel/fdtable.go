package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// descriptor is an entry of a descriptor table.
type descriptor struct {
	file    *vfs.File // nil: free
	cloexec bool
}

// FDTable is a table of open descriptors, which CLONE_FILES shares.
type FDTable struct {
	memory *kmem.Account
	list   []descriptor
	used   uint64 // no descriptor below is free
	refs   int
}

// openFile finds the file of an open descriptor.
func (t *Task) openFile(fd uint64) (*vfs.File, unix.Errno) {
	if d := t.proc.files.openEntry(fd); d != nil {
		return d.file, 0
	}
	return nil, unix.EBADF
}

// FileAlone identifies the file that a system call acts on, if it is a regular one and the call acts on
// nothing else; otherwise it is 0. All descriptors and descriptions of a file have its number.
func (t *Task) FileAlone(number, fd uint64) uint64 {
	if !linux.Has(number, linux.MovesData) {
		return 0
	}
	f, errno := t.usableFile(fd)
	if errno != 0 || !f.IsAlone() {
		return 0
	}
	const mixed = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	return max(1, f.Inode().Ino()^f.Inode().Dev()*mixed)
}

// usableFile is openFile for calls that fail with EBADF on an O_PATH descriptor.
func (t *Task) usableFile(fd uint64) (*vfs.File, unix.Errno) {
	f, errno := t.openFile(fd)
	if errno == 0 && f.IsPath() {
		return nil, unix.EBADF
	}
	return f, errno
}

// usableFiles finds two files; the first descriptor's error is reported first.
func (t *Task) usableFiles(first, second uint64) (f, g *vfs.File, errno unix.Errno) {
	if f, errno = t.usableFile(first); errno == 0 {
		g, errno = t.usableFile(second)
	}
	return f, g, errno
}

// openEntry returns the entry of an open descriptor; the upper half of the number is ignored, as
// Linux does for arguments of type int.
func (d *FDTable) openEntry(fd uint64) *descriptor {
	if n := uint64(uint32(fd)); n < uint64(len(d.list)) && d.list[n].file != nil {
		return &d.list[n]
	}
	return nil
}

// clone copies the table for a child.
func (d *FDTable) clone() *FDTable {
	n := &FDTable{memory: d.memory, list: append([]descriptor(nil), d.list...), used: d.used, refs: 1}
	n.memory.Force(uint64(len(n.list)) * kmem.Descriptor)
	for _, e := range n.list {
		if e.file != nil {
			e.file.Ref()
		}
	}
	return n
}

// release gives up the process's reference to the table.
func (d *FDTable) release(p *Process) {
	if d.refs--; d.refs > 0 {
		return
	}
	for fd := range d.list {
		d.close(p, uint64(fd))
	}
	d.memory.Release(uint64(len(d.list)) * kmem.Descriptor)
}

// ensureRoom makes room for a descriptor. ENOMEM: the kernel's memory is used up.
func (d *FDTable) ensureRoom(fd uint64) unix.Errno {
	if fd < uint64(len(d.list)) {
		return 0
	}
	more := fd + 1 - uint64(len(d.list))
	if !d.memory.Charge(more * kmem.Descriptor) {
		return unix.ENOMEM
	}
	d.list = append(d.list, make([]descriptor, more)...)
	return 0
}

// close closes a descriptor.
func (d *FDTable) close(p *Process, fd uint64) unix.Errno {
	e := d.openEntry(fd)
	if e == nil {
		return unix.EBADF
	}
	f := e.file
	*e = descriptor{}
	d.used = min(d.used, uint64(uint32(fd)))
	f.UnlockAll(vfs.LockOwner{Process: p.pid})
	if x, ok := f.Impl.(vfs.Flusher); ok {
		x.Flush(p.pid)
	}
	f.Unref()
	return 0
}

// closeOnExec closes the descriptors that a new program does not inherit.
func (d *FDTable) closeOnExec(p *Process) {
	for fd, e := range d.list {
		if e.file != nil && e.cloexec {
			d.close(p, uint64(fd))
		}
	}
}

// lowestFree finds the lowest free descriptor that is at least first. EMFILE: the process's limit
// is reached; ENFILE: the kernel's memory is used up.
func (p *Process) lowestFree(first uint64) (uint64, unix.Errno) {
	d := p.files
	limit := p.limits[unix.RLIMIT_NOFILE].Cur
	fd := max(first, d.used)
	for fd < uint64(len(d.list)) && d.list[fd].file != nil {
		fd++
	}
	if first <= d.used {
		d.used = min(fd, uint64(len(d.list)))
	}
	switch {
	case fd >= limit:
		return 0, unix.EMFILE
	case !d.memory.MayGrow():
		return 0, unix.ENFILE
	}
	return fd, d.ensureRoom(fd)
}

// installFile assigns the lowest free descriptor to a description, whose reference it takes over.
func (t *Task) installFile(f *vfs.File, cloexec bool) (uint64, unix.Errno) {
	return t.installFileFrom(f, 0, cloexec)
}

func (t *Task) installFileFrom(f *vfs.File, first uint64, cloexec bool) (uint64, unix.Errno) {
	fd, errno := t.proc.lowestFree(first)
	if errno != 0 {
		f.Unref()
		return 0, errno
	}
	t.proc.files.list[fd] = descriptor{f, cloexec}
	return fd, 0
}

func sysClose(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.proc.files.close(t.proc, a[0])
}

const (
	closeRangeUnshare = 2
	closeRangeCloexec = 4
)

func sysCloseRange(t *Task, a [6]uint64) (uint64, unix.Errno) {
	first, last, flags := uint64(uint32(a[0])), uint64(uint32(a[1])), uint32(a[2])
	if flags&^(closeRangeUnshare|closeRangeCloexec) != 0 || first > last {
		return 0, unix.EINVAL
	}
	if flags&closeRangeUnshare != 0 && t.proc.files.refs > 1 {
		shared := t.proc.files
		t.proc.files = shared.clone()
		shared.refs--
	}
	for fd := first; fd <= last && fd < uint64(len(t.proc.files.list)); fd++ {
		if e := t.proc.files.openEntry(fd); e != nil && flags&closeRangeCloexec != 0 {
			e.cloexec = true
		} else if e != nil {
			t.proc.files.close(t.proc, fd)
		}
	}
	return 0, 0
}

func sysDup(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, errno := t.openFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	f.Ref()
	return t.installFile(f, false)
}

func sysDup2(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if _, errno := t.openFile(a[0]); errno != 0 {
		return 0, errno
	}
	if uint32(a[0]) == uint32(a[1]) {
		return uint64(uint32(a[1])), 0
	}
	return t.duplicateTo(a[0], a[1], false)
}

func sysDup3(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if uint32(a[2])&^unix.O_CLOEXEC != 0 || uint32(a[0]) == uint32(a[1]) {
		return 0, unix.EINVAL
	}
	return t.duplicateTo(a[0], a[1], a[2]&unix.O_CLOEXEC != 0)
}

// duplicateTo makes descriptor to refer to the same description as from.
func (t *Task) duplicateTo(from, to uint64, cloexec bool) (uint64, unix.Errno) {
	f, errno := t.openFile(from)
	if errno != 0 {
		return 0, errno
	}
	f.Ref()
	fd := uint64(uint32(to))
	return fd, t.replaceFile(f, fd, cloexec)
}

// replaceFile assigns a descriptor that may be in use to a description, whose reference it takes
// over.
func (t *Task) replaceFile(f *vfs.File, fd uint64, cloexec bool) unix.Errno {
	errno := unix.EBADF
	if fd < t.proc.limits[unix.RLIMIT_NOFILE].Cur {
		errno = t.proc.files.ensureRoom(fd)
	}
	if errno != 0 {
		f.Unref()
		return errno
	}
	t.proc.files.close(t.proc, fd)
	t.proc.files.list[fd] = descriptor{f, cloexec}
	return 0
}
