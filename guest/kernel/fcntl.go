package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

func sysFcntl(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, errno := t.openFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	cmd := int(int32(a[1]))
	d := t.proc.files.openEntry(a[0])
	switch cmd {
	case unix.F_DUPFD, unix.F_DUPFD_CLOEXEC:
		if a[2] >= t.proc.limits[unix.RLIMIT_NOFILE].Cur {
			return 0, unix.EINVAL
		}
		f.Ref()
		return t.installFileFrom(f, uint64(uint32(a[2])), cmd == unix.F_DUPFD_CLOEXEC)
	case unix.F_GETFD:
		return uint64(boolToUint32(d.cloexec)), 0
	case unix.F_SETFD:
		d.cloexec = a[2]&unix.FD_CLOEXEC != 0
		return 0, 0
	case unix.F_GETFL:
		return uint64(f.Flags()), 0
	}
	if f.IsPath() {
		return 0, unix.EBADF
	}
	return t.fcntlFile(f, cmd, a[2])
}

// fcntlFile carries out the commands of fcntl that act on the open file. An O_PATH descriptor has
// no open file.
func (t *Task) fcntlFile(f *vfs.File, cmd int, arg uint64) (uint64, unix.Errno) {
	switch cmd {
	case unix.F_SETFL:
		return 0, f.SetFlags(t.vfsContext(), int(uint32(arg)))
	case unix.F_GETLK, unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_GETLK, unix.F_OFD_SETLK, unix.F_OFD_SETLKW:
		return t.lockRecord(f, cmd, arch.Addr(arg))
	case unix.F_GETOWN:
		return uint64(int64(t.k.ownerID(f))), 0
	case unix.F_SETOWN:
		return 0, t.setOwner(f, int32(arg))
	case unix.F_GETOWN_EX, unix.F_SETOWN_EX:
		return t.ownerStructure(f, cmd, arch.Addr(arg))
	case unix.F_GETSIG:
		return uint64(f.Signal), 0
	case unix.F_SETSIG:
		if arg > lastSignal {
			return 0, unix.EINVAL
		}
		f.Signal = int32(arg)
		return 0, 0
	case unix.F_GETPIPE_SZ:
		return pipeSize(f)
	case unix.F_SETPIPE_SZ:
		return t.setPipeSize(f, int(int32(arg)))
	case unix.F_ADD_SEALS:
		return 0, f.AddSeals(int(uint32(arg)))
	case unix.F_GET_SEALS:
		seals, errno := f.Seals()
		return uint64(seals), errno
	case unix.F_GETLEASE:
		return uint64(f.Lease(t.k.clock.now)), 0
	case unix.F_SETLEASE:
		return 0, t.setLease(f, int(int32(arg)))
	}
	// Directory notification is not supported.
	return 0, unix.EINVAL
}

// sized is a file with a capacity that fcntl can read.
type sized interface {
	Capacity() int
	SetCapacity(n int, unlimited bool) unix.Errno
}

func pipeSize(f *vfs.File) (uint64, unix.Errno) {
	p, ok := f.Impl.(sized)
	if !ok {
		return 0, unix.EBADF
	}
	return uint64(p.Capacity()), 0
}

func (t *Task) setPipeSize(f *vfs.File, n int) (uint64, unix.Errno) {
	p, ok := f.Impl.(sized)
	if !ok {
		return 0, unix.EBADF
	}
	if errno := p.SetCapacity(n, t.cred.Can(vfs.CapSysResource)); errno != 0 {
		return 0, errno
	}
	return uint64(p.Capacity()), 0
}

// lockRecord carries out the lock commands of fcntl, of processes and of open file descriptions.
func (t *Task) lockRecord(f *vfs.File, cmd int, addr arch.Addr) (uint64, unix.Errno) {
	var l unix.Flock_t
	if errno := readStruct(t, addr, &l); errno != 0 {
		return 0, errno
	}
	owner := vfs.LockOwner{Process: t.proc.pid}
	if cmd == unix.F_OFD_GETLK || cmd == unix.F_OFD_SETLK || cmd == unix.F_OFD_SETLKW {
		owner = vfs.LockOwner{File: f}
	}
	if cmd == unix.F_GETLK || cmd == unix.F_OFD_GETLK {
		l, errno := f.GetLock(owner, l)
		if errno != 0 {
			return 0, errno
		}
		return 0, writeStruct(t, addr, &l)
	}
	if cmd == unix.F_SETLK || cmd == unix.F_OFD_SETLK {
		return 0, f.SetLock(owner, l, 0)
	}
	errno := f.SetLock(owner, l, int32(t.id))
	if errno == unix.EAGAIN {
		if errno = t.waitInterruptibly(errRestart, forever, f.Inode().LockWaiters()); errno != errBlocked {
			t.k.fs.CancelLock(int32(t.id))
		}
	}
	return 0, errno
}

func sysFlock(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, errno := t.usableFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	op := int(int32(a[1]))
	errno = f.Flock(op)
	if errno == unix.EAGAIN && op&unix.LOCK_NB == 0 {
		errno = t.waitInterruptibly(errRestart, forever, f.Inode().LockWaiters())
	}
	return 0, errno
}

// Requests that ioctl_tty(2) and ioctl(2) list for all descriptors.
const (
	fioclex  uint32 = 0x5451
	fionclex uint32 = 0x5450
	fionbio  uint32 = 0x5421
	fioasync uint32 = 0x5452
)

// sysIoctl refuses terminal requests on a descriptor that is no terminal.
func sysIoctl(t *Task, a [6]uint64) (uint64, unix.Errno) {
	f, errno := t.usableFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	d := t.proc.files.openEntry(a[0])
	switch cmd := uint32(a[1]); cmd {
	case fioclex:
		d.cloexec = true
		return 0, 0
	case fionclex:
		d.cloexec = false
		return 0, 0
	case fionbio, fioasync:
		on, errno := t.proc.space.ReadU32(arch.Addr(a[2]))
		if errno != 0 {
			return 0, errno
		}
		bit := unix.O_NONBLOCK
		if cmd == fioasync {
			bit = unix.O_ASYNC
		}
		flags := f.Flags() &^ bit
		if on != 0 {
			flags |= bit
		}
		return 0, f.SetFlags(t.vfsContext(), flags)
	default:
		if x, ok := f.Impl.(guestIoctler); ok {
			return x.GuestIoctl(t, cmd, arch.Addr(a[2]))
		}
		out, errno := f.Ioctl(cmd)
		if errno != 0 {
			return 0, errno
		}
		return 0, t.copyOut(arch.Addr(a[2]), out)
	}
}

// guestIoctler is a file whose ioctls read or write guest memory.
type guestIoctler interface {
	GuestIoctl(t *Task, cmd uint32, arg arch.Addr) (uint64, unix.Errno)
}
