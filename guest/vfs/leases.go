package vfs

import (
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/wait"
)

// LeaseSettings are those of /proc/sys/fs, see proc(5).
type LeaseSettings struct {
	// BreakTime is the time in seconds that a holder has to release a lease; 0 or less
	// means unlimited.
	BreakTime int32
	// Enabled is not 0 if leases can be had.
	Enabled int32
}

// defaultLeases are the settings of Linux at its start.
var defaultLeases = LeaseSettings{BreakTime: 45, Enabled: 1}

// lease is a lease of a file: the holder is notified before another process opens it in
// a way that conflicts. See fcntl(2), "Leases".
//
// The two times are kept apart, and stay after the holder has obeyed, as in Linux
// (fl_break_time and fl_downgrade_time): a lease that is downgraded and then upgraded
// again becomes a read lease when the time of its first break is over.
type lease struct {
	file  *File
	fd    int32 // of the last F_SETLEASE, which signals name
	write bool

	ending, downgrading    bool  // a break has begun
	endTime, downgradeTime int64 // ns on the monotonic clock; 0: never
}

// BrokenLease is a lease whose holder is to be notified.
type BrokenLease struct {
	File *File
	FD   int32
}

// targetKind is the kind that the lease will have once its break is complete.
func (l *lease) targetKind() int {
	switch {
	case l.ending:
		return unix.F_UNLCK
	case l.downgrading, !l.write:
		return unix.F_RDLCK
	}
	return unix.F_WRLCK
}

// conflicts reports whether the lease conflicts with opening for writing, if write is
// set, or for reading.
func (l *lease) conflicts(write bool) bool { return l.write || write }

// isPast reports whether a time of a lease has passed.
func isPast(then, now int64) bool { return then != 0 && then <= now }

// expireLeases ends and downgrades the leases whose holders' time has expired.
func (i *Inode) expireLeases(now int64) {
	for _, l := range slices.Clone(i.locks.leases) {
		if isPast(l.downgradeTime, now) {
			i.changeLease(l, unix.F_RDLCK)
		}
		if isPast(l.endTime, now) {
			i.changeLease(l, unix.F_UNLCK)
		}
	}
}

// changeLease gives a lease another kind, or ends it, and with it the description's
// owner and signal, as lease_modify of Linux does.
func (i *Inode) changeLease(l *lease, kind int) {
	l.write = kind == unix.F_WRLCK
	if kind != unix.F_WRLCK {
		l.downgrading = false
	}
	if kind == unix.F_UNLCK {
		i.locks.leases = slices.DeleteFunc(i.locks.leases, func(o *lease) bool { return o == l })
		l.file.Owner = FileOwner{Kind: OwnerProcess}
		l.file.Signal = 0
	}
	i.locks.waiters.Wake(wait.AnyEvent)
}

// leaseOf finds the lease that a description holds, or nil.
func (i *Inode) leaseOf(f *File) *lease {
	at := slices.IndexFunc(i.locks.leases, func(l *lease) bool { return l.file == f })
	if at < 0 {
		return nil
	}
	return i.locks.leases[at]
}

// Lease is fcntl with F_GETLEASE at a time of the monotonic clock: while a lease is
// being broken, the kind that it is to become.
func (f *File) Lease(now int64) int {
	f.Inode().expireLeases(now)
	if l := f.Inode().leaseOf(f); l != nil {
		return l.targetKind()
	}
	return unix.F_UNLCK
}

// SetLease is fcntl with F_SETLEASE on a descriptor fd of the description. EAGAIN: the
// file is open in a way that conflicts, or there is no lease to end. EACCES: it belongs
// to another user. EINVAL: files of this type have no leases. Generated files have an
// inode for each lookup, so that nothing would break leases of them.
func (f *File) SetLease(c *Ctx, kind int, fd int32, now int64) unix.Errno {
	i := f.Inode()
	switch {
	case kind != unix.F_RDLCK && kind != unix.F_WRLCK && kind != unix.F_UNLCK:
		return unix.EINVAL
	case c.Cred.FSUID != i.uid && !c.Cred.Can(CapLease):
		return unix.EACCES
	case !i.IsRegular() || i.node != nil || i.IsQueue():
		return unix.EINVAL
	}
	if kind == unix.F_UNLCK {
		l := i.leaseOf(f)
		if l == nil {
			return unix.EAGAIN
		}
		i.changeLease(l, kind)
		return 0
	}
	i.expireLeases(now)
	if errno := f.mayLease(kind); errno != 0 {
		return errno
	}
	l := i.leaseOf(f)
	switch {
	case l != nil:
		i.changeLease(l, kind)
	case f.fs.Leases.Enabled == 0:
		return unix.EINVAL
	default:
		l = &lease{file: f, write: kind == unix.F_WRLCK}
		i.locks.leases = append(i.locks.leases, l)
	}
	l.fd = fd
	return 0
}

// mayLease checks that neither other descriptions nor their leases conflict.
func (f *File) mayLease(kind int) unix.Errno {
	i := f.Inode()
	if kind == unix.F_RDLCK {
		if i.writers > 0 {
			return unix.EAGAIN
		}
	} else {
		own := 0
		if flagsWritable(f.flags) {
			own = 1
		}
		readers := 0
		if f.isReader() {
			readers = 1
		}
		if i.writers != own || i.readers != readers || i.runners > 0 {
			return unix.EAGAIN
		}
	}
	for _, l := range i.locks.leases {
		if l.file != f && (kind == unix.F_WRLCK || l.ending) {
			return unix.EAGAIN
		}
	}
	return 0
}

// BreakLeases begins to break the leases that conflict with opening for writing, if
// write is set, or for reading; now is the time of the monotonic clock. It returns the
// leases whose holders were not notified before.
func (i *Inode) BreakLeases(write bool, now int64) []BrokenLease {
	i.expireLeases(now)
	until := int64(0)
	if s := i.fs.Leases.BreakTime; s > 0 {
		until = now + int64(s)*nsPerSec
	}
	var broken []BrokenLease
	for _, l := range i.locks.leases {
		switch {
		case !l.conflicts(write), l.ending, l.downgrading && !write:
			continue
		case write:
			l.ending, l.endTime = true, until
		default:
			l.downgrading, l.downgradeTime = true, until
		}
		broken = append(broken, BrokenLease{l.file, l.fd})
	}
	return broken
}

// LeaseConflict reports whether a lease conflicts with opening for writing, if write is
// set, or for reading, and when the first of them changes by itself.
func (i *Inode) LeaseConflict(write bool) (deadline int64, conflict bool) {
	deadline = math.MaxInt64
	for _, l := range i.locks.leases {
		if !l.conflicts(write) {
			continue
		}
		conflict = true
		if l.ending && l.endTime != 0 {
			deadline = min(deadline, l.endTime)
		}
		if l.write && l.downgradeTime != 0 {
			deadline = min(deadline, l.downgradeTime)
		}
	}
	return deadline, conflict
}
