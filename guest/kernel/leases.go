package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
)

// setLease is fcntl with F_SETLEASE. The caller becomes the owner of the description,
// who is sent the signals, unless there is one.
func (t *Task) setLease(f *vfs.File, kind int) unix.Errno {
	errno := f.SetLease(t.vfsContext(), kind, int32(t.call.args[0]), t.k.now)
	if errno == 0 && kind != unix.F_UNLCK && f.Owner.ID == 0 {
		t.own(f, vfs.OwnerProcess, t.proc.pid)
	}
	return errno
}

// breakLeases notifies the holders of leases that are in the way of opening a file with
// flags, and waits until they have given them up or their time is over. EWOULDBLOCK:
// the flags have O_NONBLOCK.
func (t *Task) breakLeases(i *vfs.Inode, flags int) unix.Errno {
	write := flags&unix.O_ACCMODE != unix.O_RDONLY
	if _, conflict := i.LeaseConflict(write); !conflict {
		return 0
	}
	for _, l := range i.BreakLeases(write, t.k.now) {
		t.k.signalOwner(l.File, l.FD, pollMessage)
	}
	deadline, conflict := i.LeaseConflict(write)
	switch {
	case !conflict:
		return 0
	case flags&unix.O_NONBLOCK != 0:
		return unix.EWOULDBLOCK
	}
	return t.wait(errRestart, deadline, i.LockWaiters())
}
