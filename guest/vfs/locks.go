package vfs

import (
	"cmp"
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/wait"
)

// maxLocks bounds the record locks of all files together; more is ENOLCK.
const maxLocks = 1 << 14

// LockOwner is the holder of a record lock: for POSIX locks a process, numbered by the
// kernel; for open file description locks (F_OFD_SETLK) the description.
type LockOwner struct {
	Process int32
	File    *File
}

// recordLock is a lock of the bytes from start to end, both included.
type recordLock struct {
	owner      LockOwner
	start, end int64
	write      bool
}

// recordLocks are the locks of one inode.
type recordLocks struct {
	list    []recordLock // those of an owner together, by start
	flocks  []flock
	leases  []*lease
	waiters wait.Queue
}

// flock is a lock of a whole file, see flock(2).
type flock struct {
	file  *File
	write bool
}

// lockWait is a task that waits for a record lock.
type lockWait struct {
	waiter int32
	inode  *Inode
	lock   recordLock
}

func (l *recordLock) overlaps(o *recordLock) bool { return l.start <= o.end && o.start <= l.end }

// conflictWith returns a lock of another owner that conflicts with l, or nil.
func (r *recordLocks) conflictWith(l *recordLock) *recordLock {
	for n := range r.list {
		o := &r.list[n]
		if o.owner != l.owner && o.overlaps(l) && (o.write || l.write) {
			return o
		}
	}
	return nil
}

// lockRange converts the arguments of fcntl to a range of bytes.
func (f *File) lockRange(lk *unix.Flock_t) (start, end int64, errno unix.Errno) {
	base := int64(0)
	switch lk.Whence {
	case unix.SEEK_SET:
	case unix.SEEK_CUR:
		base = f.Offset
	case unix.SEEK_END:
		base = f.Inode().Size()
	default:
		return 0, 0, unix.EINVAL
	}
	if lk.Start > math.MaxInt64-base {
		return 0, 0, unix.EOVERFLOW
	}
	start = base + lk.Start
	switch {
	case start < 0:
		return 0, 0, unix.EINVAL
	case lk.Len > 0:
		if lk.Len-1 > math.MaxInt64-start {
			return 0, 0, unix.EOVERFLOW
		}
		return start, start + lk.Len - 1, 0
	case lk.Len < 0:
		if start+lk.Len < 0 {
			return 0, 0, unix.EINVAL
		}
		return start + lk.Len, start - 1, 0
	}
	return start, math.MaxInt64, 0
}

// GetLock is fcntl with F_GETLK, or F_OFD_GETLK if the owner is a description: it
// returns the lock that conflicts with lk, or lk with F_UNLCK.
func (f *File) GetLock(owner LockOwner, lk unix.Flock_t) (unix.Flock_t, unix.Errno) {
	if f.IsPath() {
		return lk, unix.EBADF
	}
	if lk.Type != unix.F_RDLCK && lk.Type != unix.F_WRLCK || owner.File != nil && lk.Pid != 0 {
		return lk, unix.EINVAL
	}
	start, end, errno := f.lockRange(&lk)
	if errno != 0 {
		return lk, errno
	}
	want := recordLock{owner, start, end, lk.Type == unix.F_WRLCK}
	have := f.Inode().locks.conflictWith(&want)
	if have == nil {
		lk.Type = unix.F_UNLCK
		return lk, 0
	}
	lk = unix.Flock_t{Type: unix.F_RDLCK, Whence: unix.SEEK_SET, Start: have.start, Pid: have.owner.Process}
	if have.write {
		lk.Type = unix.F_WRLCK
	}
	if have.end != math.MaxInt64 {
		lk.Len = have.end - have.start + 1
	}
	if have.owner.File != nil {
		lk.Pid = -1
	}
	return lk, 0
}

// SetLock is fcntl with F_SETLK, or F_OFD_SETLK if the owner is a description. EAGAIN:
// another owner's lock conflicts. For F_SETLKW waiter is the id of the waiting task: it
// is noted as waiting for the lock, and the call is to be repeated when
// Inode.LockWaiters is woken, or abandoned with CancelLock. EDEADLK: waiting would
// never end. For F_SETLK waiter is 0.
func (f *File) SetLock(owner LockOwner, lk unix.Flock_t, waiter int32) unix.Errno {
	if f.IsPath() {
		return unix.EBADF
	}
	start, end, errno := f.lockRange(&lk)
	if errno != 0 {
		return errno
	}
	if errno := f.mayLock(owner, &lk); errno != 0 {
		return errno
	}
	fs, r := f.fs, &f.Inode().locks
	l := recordLock{owner, start, end, lk.Type == unix.F_WRLCK}
	fs.CancelLock(waiter)
	if lk.Type == unix.F_UNLCK {
		if fs.locks > maxLocks {
			return unix.ENOLCK
		}
		fs.setLocks(r, l, false)
		r.waiters.Wake(wait.AnyEvent)
		return 0
	}
	if c := r.conflictWith(&l); c != nil {
		if waiter == 0 {
			return unix.EAGAIN
		}
		if owner.File == nil && fs.wouldDeadlock(f.Inode(), &l) {
			return unix.EDEADLK
		}
		fs.waits = append(fs.waits, lockWait{waiter, f.Inode(), l})
		return unix.EAGAIN
	}
	if fs.locks >= maxLocks {
		return unix.ENOLCK
	}
	fs.setLocks(r, l, true)
	r.waiters.Wake(wait.AnyEvent) // a write lock may have become a read lock
	return 0
}

// mayLock checks the kind of lock and the access mode.
func (f *File) mayLock(owner LockOwner, lk *unix.Flock_t) unix.Errno {
	switch lk.Type {
	case unix.F_UNLCK:
	case unix.F_RDLCK:
		if !f.Readable() {
			return unix.EBADF
		}
	case unix.F_WRLCK:
		if !f.Writable() {
			return unix.EBADF
		}
	default:
		return unix.EINVAL
	}
	if owner.File != nil && lk.Pid != 0 {
		return unix.EINVAL
	}
	return 0
}

// setLocks changes the locks of an owner: the range of l is removed from them, and l is
// added if add is set. Owners keep the order of their first locks, which is the order
// in which GetLock looks for conflicts, as in Linux.
func (fs *FS) setLocks(r *recordLocks, l recordLock, add bool) {
	at := slices.IndexFunc(r.list, func(o recordLock) bool { return o.owner == l.owner })
	if at < 0 {
		at = len(r.list)
	}
	end := at
	for end < len(r.list) && r.list[end].owner == l.owner {
		end++
	}
	// The owner's locks that l overlaps or touches become one lock with it.
	piece := r.list[at:end]
	first, _ := slices.BinarySearchFunc(piece, l.start, func(o recordLock, start int64) int {
		if o.end < start-1 {
			return -1
		}
		return 1
	})
	last := first
	var own []recordLock
	for ; last < len(piece) && piece[last].start-1 <= l.end; last++ {
		own = append(own, piece[last].outsideOf(&l)...)
	}
	if add {
		own = joinLocks(own, l)
	}
	fs.locks += len(own) - (last - first)
	r.list = slices.Replace(r.list, at+first, at+last, own...)
}

// outsideOf returns the parts of o outside the range of l.
func (o recordLock) outsideOf(l *recordLock) []recordLock {
	if !o.overlaps(l) {
		return []recordLock{o}
	}
	var rest []recordLock
	if o.start < l.start {
		left := o
		left.end = l.start - 1
		rest = append(rest, left)
	}
	if o.end > l.end {
		right := o
		right.start = l.end + 1
		rest = append(rest, right)
	}
	return rest
}

// joinLocks adds l to an owner's locks, which must not overlap it, in order, and merges
// adjacent locks of the same kind.
func joinLocks(own []recordLock, l recordLock) []recordLock {
	own = slices.DeleteFunc(own, func(o recordLock) bool {
		switch {
		case o.write != l.write:
			return false
		case l.start > 0 && o.end == l.start-1:
			l.start = o.start
		case l.end != math.MaxInt64 && o.start == l.end+1:
			l.end = o.end
		default:
			return false
		}
		return true
	})
	at, _ := slices.BinarySearchFunc(own, l.start, func(o recordLock, start int64) int { return cmp.Compare(o.start, start) })
	return slices.Insert(own, at, l)
}

// CancelLock forgets that a task waits for a record lock.
func (fs *FS) CancelLock(waiter int32) {
	fs.waits = slices.DeleteFunc(fs.waits, func(w lockWait) bool { return w.waiter == waiter })
}

// wouldDeadlock reports whether an owner that l has to wait for waits, directly or
// through others, for l's owner.
func (fs *FS) wouldDeadlock(i *Inode, l *recordLock) bool {
	seen := []LockOwner{}
	pending := i.locks.blockingOwners(l)
	for len(pending) > 0 {
		owner := pending[0]
		pending = pending[1:]
		if owner == l.owner {
			return true
		}
		if slices.Contains(seen, owner) {
			continue
		}
		seen = append(seen, owner)
		for n := range fs.waits {
			if w := &fs.waits[n]; w.lock.owner == owner {
				pending = append(pending, w.inode.locks.blockingOwners(&w.lock)...)
			}
		}
	}
	return false
}

// blockingOwners lists the owners of all locks that conflict with l.
func (r *recordLocks) blockingOwners(l *recordLock) []LockOwner {
	var owners []LockOwner
	for n := range r.list {
		o := &r.list[n]
		if o.owner != l.owner && o.overlaps(l) && (o.write || l.write) {
			owners = append(owners, o.owner)
		}
	}
	return owners
}

// UnlockAll releases all record locks that an owner has on the file, as Linux
// does when a process closes any descriptor of it.
func (f *File) UnlockAll(owner LockOwner) {
	r := &f.Inode().locks
	if !slices.ContainsFunc(r.list, func(o recordLock) bool { return o.owner == owner }) {
		return
	}
	f.fs.setLocks(r, recordLock{owner: owner, end: math.MaxInt64}, false)
	r.waiters.Wake(wait.AnyEvent)
}

// Flock is flock(2) with LOCK_SH, LOCK_EX or LOCK_UN, and LOCK_NB or not. EAGAIN:
// another owner's lock conflicts; a lock that was to be changed is released then, as
// flock(2) says.
func (f *File) Flock(op int) unix.Errno {
	if f.IsPath() {
		return unix.EBADF
	}
	op &^= unix.LOCK_NB
	if op != unix.LOCK_SH && op != unix.LOCK_EX && op != unix.LOCK_UN {
		return unix.EINVAL
	}
	if op != unix.LOCK_UN && !f.Readable() && !f.Writable() {
		return unix.EBADF
	}
	r := &f.Inode().locks
	write := op == unix.LOCK_EX
	at := slices.IndexFunc(r.flocks, func(l flock) bool { return l.file == f })
	if at >= 0 && op != unix.LOCK_UN && r.flocks[at].write == write {
		return 0
	}
	if at >= 0 {
		r.flocks = slices.Delete(r.flocks, at, at+1)
		defer r.waiters.Wake(wait.AnyEvent)
	}
	if op == unix.LOCK_UN {
		return 0
	}
	if slices.ContainsFunc(r.flocks, func(l flock) bool { return l.write || write }) {
		return unix.EAGAIN
	}
	r.flocks = append(r.flocks, flock{f, write})
	return 0
}

// unlockFile releases the locks and the lease that belong to a description.
func (fs *FS) unlockFile(f *File) {
	r := &f.Inode().locks
	if l := f.Inode().leaseOf(f); l != nil {
		f.Inode().changeLease(l, unix.F_UNLCK)
	}
	f.UnlockAll(LockOwner{File: f})
	if at := slices.IndexFunc(r.flocks, func(l flock) bool { return l.file == f }); at >= 0 {
		r.flocks = slices.Delete(r.flocks, at, at+1)
		r.waiters.Wake(wait.AnyEvent)
	}
}
