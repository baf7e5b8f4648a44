package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
)

// setLease is fcntl with F_SETLEASE. The caller becomes the owner of the description, who is sent
// the signals, if it has no owner.
func (t *Task) setLease(f *vfs.File, kind int) unix.Errno {
	errno := f.SetLease(t.vfsContext(), kind, int32(t.call.args[0]), t.k.clock.now)
	if errno == 0 && kind != unix.F_UNLCK && f.Owner.ID == 0 {
		t.setFileOwner(f, vfs.OwnerProcess, t.proc.pid)
	}
	return errno
}

// breakLeases notifies the holders of leases that prevent opening a file with the given flags, and
// waits until they have given them up or their time has passed. EWOULDBLOCK: the flags include
// O_NONBLOCK.
func (t *Task) breakLeases(i *vfs.Inode, flags int) unix.Errno {
	write := flags&unix.O_ACCMODE != unix.O_RDONLY
	if _, conflict := i.LeaseConflict(write); !conflict {
		return 0
	}
	for _, l := range i.BreakLeases(write, t.k.clock.now) {
		t.k.signalOwner(l.File, l.FD, pollMessage)
	}
	deadline, conflict := i.LeaseConflict(write)
	switch {
	case !conflict:
		return 0
	case flags&unix.O_NONBLOCK != 0:
		return unix.EWOULDBLOCK
	}
	return t.waitInterruptibly(errRestart, deadline, i.LockWaiters())
}
