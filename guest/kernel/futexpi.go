package kernel

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// Futexes with priority inheritance are locks whose word holds the owner's thread id, so that the
// kernel knows which thread the others wait for. See futex(2) and kernel/futex/pi.c.

// piLock is a lock that threads wait for. Its owner may be a thread that has never made a futex
// call.
type piLock struct {
	key     futexKey
	owner   *Task
	waiters []*futexWaiter // the highest rank first, then the longest waiting
}

// piCall are the arguments of a call about a lock.
type piCall struct {
	addr              arch.Addr
	private, realtime bool
	timeout           arch.Addr // an absolute time, or 0
}

// absoluteDeadline reads the deadline of a call whose time-out is absolute.
func (t *Task) absoluteDeadline(timeout arch.Addr, realtime bool) (int64, unix.Errno) {
	if timeout == 0 {
		return forever, 0
	}
	ns, errno := t.readTimespec(timeout)
	if errno != 0 {
		return 0, errno
	}
	clock := int32(unix.CLOCK_MONOTONIC)
	if realtime {
		clock = unix.CLOCK_REALTIME
		t.call.onRealtime = true
	}
	return t.k.toRunClock(clock, ns), 0
}

// futexLockPI is FUTEX_LOCK_PI, FUTEX_LOCK_PI2 and, with try, FUTEX_TRYLOCK_PI.
func (t *Task) futexLockPI(c piCall, try bool) (uint64, unix.Errno) {
	if w := t.call.futex; w != nil {
		return t.continueFutexWait(w)
	}
	deadline, errno := t.absoluteDeadline(c.timeout, c.realtime)
	if errno != 0 {
		return 0, errno
	}
	if errno := t.checkFutexWord(c.addr, c.private); errno != 0 {
		return 0, errno
	}
	key := t.futexKeyAt(c.addr, c.private)
	owner, errno := t.takePILock(t, c.addr, key, false)
	if errno != 0 || owner == nil {
		return 0, errno
	}
	if try {
		return 0, unix.EAGAIN
	}
	w := &futexWaiter{task: t, key: key, addr: c.addr}
	if errno := t.k.enqueuePIWaiter(w, owner); errno != 0 {
		return 0, errno
	}
	t.call.deadline, t.call.futex = deadline, w
	return t.continueFutexWait(w)
}

// takePILock gives taker the lock at addr in t's address space if no thread owns it. Otherwise it
// sets FUTEX_WAITERS in the word and returns the owner.
func (t *Task) takePILock(taker *Task, addr arch.Addr, key futexKey, waiters bool) (owner *Task, errno unix.Errno) {
	space := t.proc.space
	word, errno := space.ReadU32(addr)
	if errno != 0 {
		return nil, errno
	}
	id := word & linux.FutexThread
	if id == uint32(taker.id) {
		return nil, unix.EDEADLK
	}
	if l := t.k.piLocks[key]; l != nil {
		if word&linux.FutexOwnerDied != 0 && id == 0 || id == uint32(l.owner.id) {
			return l.owner, 0
		}
		return nil, unix.EINVAL
	}
	if t.k.futexes[key] != nil {
		return nil, unix.EINVAL // threads wait for it as another kind of futex
	}
	if id == 0 {
		word = word&linux.FutexOwnerDied | uint32(taker.id)
		if waiters {
			word |= linux.FutexWaiters
		}
		return nil, space.WriteU32(addr, word)
	}
	if errno := space.WriteU32(addr, word|linux.FutexWaiters); errno != 0 {
		return nil, errno
	}
	if owner = t.k.findTask(int32(id)); owner == nil {
		return nil, unix.ESRCH
	}
	return owner, 0
}

// enqueuePIWaiter makes a waiter wait for the lock of its key. EDEADLK: the owner waits, directly
// or through others, for a lock that the waiter's thread owns.
func (k *Kernel) enqueuePIWaiter(w *futexWaiter, owner *Task) unix.Errno {
	for o := owner; o != nil; o = o.ownerWaitedFor() {
		if o == w.task {
			return unix.EDEADLK
		}
	}
	l := k.piLocks[w.key]
	if l == nil {
		l = &piLock{key: w.key, owner: owner}
		k.piLocks[w.key] = l
		owner.piLocks = append(owner.piLocks, l)
	}
	w.lock = l
	l.insertWaiter(w)
	k.inheritRank(l.owner)
	return 0
}

// ownerWaitedFor is the owner of the lock that the thread waits for, or nil.
func (t *Task) ownerWaitedFor() *Task {
	if w := t.call.futex; w != nil && w.lock != nil {
		return w.lock.owner
	}
	return nil
}

func (l *piLock) insertWaiter(w *futexWaiter) {
	rank := w.task.rank()
	i := slices.IndexFunc(l.waiters, func(x *futexWaiter) bool { return x.task.rank() < rank })
	if i < 0 {
		i = len(l.waiters)
	}
	l.waiters = slices.Insert(l.waiters, i, w)
}

// removePIWaiter removes a waiter from its lock, and the lock if it was the last waiter.
func (k *Kernel) removePIWaiter(w *futexWaiter) {
	l := w.lock
	l.waiters = slices.DeleteFunc(l.waiters, func(x *futexWaiter) bool { return x == w })
	w.lock = nil
	owner := l.owner
	if len(l.waiters) == 0 {
		k.forgetPILock(l)
	}
	k.inheritRank(owner)
}

func (k *Kernel) forgetPILock(l *piLock) {
	l.owner.piLocks = slices.DeleteFunc(l.owner.piLocks, func(x *piLock) bool { return x == l })
	delete(k.piLocks, l.key)
}

// inheritRank gives the owner of locks the rank of the highest thread that waits for one, and
// continues with the owner of the lock that it waits for itself.
func (k *Kernel) inheritRank(t *Task) {
	rank := 0
	for _, l := range t.piLocks {
		rank = max(rank, l.waiters[0].task.rank())
	}
	if rank == t.inherited {
		return
	}
	was := t.precedence()
	t.inherited = rank
	if t.precedence() != was {
		t.reportPrecedence()
	}
	k.reorderPIWaiter(t)
}

// reorderPIWaiter moves a thread whose rank has changed to its place among the waiters of the lock
// that it waits for.
func (k *Kernel) reorderPIWaiter(t *Task) {
	w := t.call.futex
	if w == nil || w.lock == nil {
		return
	}
	l := w.lock
	l.waiters = slices.DeleteFunc(l.waiters, func(x *futexWaiter) bool { return x == w })
	l.insertWaiter(w)
	k.inheritRank(l.owner)
}

// futexUnlockPI is FUTEX_UNLOCK_PI.
func (t *Task) futexUnlockPI(addr arch.Addr, private bool) (uint64, unix.Errno) {
	if errno := t.checkFutexWord(addr, private); errno != 0 {
		return 0, errno
	}
	word, errno := t.proc.space.ReadU32(addr)
	if errno != 0 {
		return 0, errno
	}
	if word&linux.FutexThread != uint32(t.id) {
		return 0, unix.EPERM
	}
	key := t.futexKeyAt(addr, private)
	l := t.k.piLocks[key]
	switch {
	case l == nil && t.k.futexes[key] != nil, l != nil && l.owner != t:
		return 0, unix.EINVAL
	case l == nil:
		return 0, t.proc.space.WriteU32(addr, 0)
	}
	next := l.waiters[0].task
	if errno := t.proc.space.WriteU32(addr, linux.FutexWaiters|uint32(next.id)); errno != 0 {
		return 0, errno
	}
	t.k.handOverPILock(l)
	return 0, 0
}

// handOverPILock gives a lock to its first waiter.
func (k *Kernel) handOverPILock(l *piLock) {
	w, from := l.waiters[0], l.owner
	l.waiters = slices.Delete(l.waiters, 0, 1)
	w.lock = nil
	k.forgetPILock(l)
	if len(l.waiters) > 0 {
		l.owner = w.task
		w.task.piLocks = append(w.task.piLocks, l)
		k.piLocks[l.key] = l
		k.inheritRank(w.task)
	}
	k.inheritRank(from)
	k.releaseFutexWaiter(w)
}

// exitPILocks gives the locks of a dying thread to their first waiters and marks the words with
// FUTEX_OWNER_DIED (exit_pi_state_list of Linux).
func (k *Kernel) exitPILocks(t *Task) {
	for _, l := range slices.Clone(t.piLocks) {
		next := l.waiters[0]
		// If the word cannot be written, the waiter cannot read it either.
		_ = next.task.proc.space.WriteU32(next.addr, linux.FutexWaiters|linux.FutexOwnerDied|uint32(next.task.id))
		k.handOverPILock(l)
	}
}

// futexWaitRequeuePI is FUTEX_WAIT_REQUEUE_PI: it waits for a word as FUTEX_WAIT does, until
// FUTEX_CMP_REQUEUE_PI makes it wait for the lock at addr2 or gives it that lock.
func (t *Task) futexWaitRequeuePI(c piCall, val uint32, addr2 arch.Addr) (uint64, unix.Errno) {
	if w := t.call.futex; w != nil {
		moved := w.lock != nil
		result, errno := t.continueFutexWait(w)
		if moved && errno == errNoInterrupt {
			errno = unix.EAGAIN // the word has changed since
		}
		return result, errno
	}
	deadline, errno := t.absoluteDeadline(c.timeout, c.realtime)
	switch {
	case errno != 0:
		return 0, errno
	case c.addr == addr2:
		return 0, unix.EINVAL
	}
	for _, addr := range []arch.Addr{c.addr, addr2} {
		if errno := t.checkFutexWord(addr, c.private); errno != 0 {
			return 0, errno
		}
	}
	have, errno := t.proc.space.ReadU32(c.addr)
	if errno != 0 {
		return 0, errno
	}
	if have != val {
		return 0, unix.EAGAIN
	}
	key, target := t.futexKeyAt(c.addr, c.private), t.futexKeyAt(addr2, c.private)
	if key == target {
		return 0, unix.EINVAL
	}
	w := t.newFutexWaiter(key, ^uint32(0))
	w.addr, w.target = addr2, &target
	t.call.deadline, t.call.futex = deadline, w
	t.k.futexEnqueue(w)
	return t.continueFutexWait(w)
}

// futexRequeuePI is FUTEX_CMP_REQUEUE_PI: the first waiter of the word at from gets the lock at to
// if it is free, and the others wait for that lock.
func (t *Task) futexRequeuePI(from, to arch.Addr, private bool, wake, requeue int32, val uint32) (uint64, unix.Errno) {
	if from == to || wake != 1 || requeue < 0 {
		return 0, unix.EINVAL
	}
	for _, addr := range []arch.Addr{from, to} {
		if errno := t.checkFutexWord(addr, private); errno != 0 {
			return 0, errno
		}
	}
	source, target := t.futexKeyAt(from, private), t.futexKeyAt(to, private)
	if source == target || t.k.piLocks[source] != nil {
		return 0, unix.EINVAL
	}
	have, errno := t.proc.space.ReadU32(from)
	if errno != 0 {
		return 0, errno
	}
	if have != val {
		return 0, unix.EAGAIN
	}
	done := uint64(0)
	for q := t.k.futexes[source]; q != nil && done <= uint64(requeue); q = t.k.futexes[source] {
		w := q.waiters[0]
		if w.target == nil || *w.target != target {
			return 0, unix.EINVAL
		}
		owner, errno := t.takePILock(w.task, to, target, requeue > 0)
		switch {
		case errno != 0:
			return 0, errno
		case owner == nil:
			t.k.releaseFutexWaiter(t.k.futexRemove(source, q, 0))
		default:
			w.key = target
			if errno := t.k.enqueuePIWaiter(w, owner); errno != 0 {
				w.key = source
				return 0, errno
			}
			w.key = source
			t.k.futexRemove(source, q, 0)
			w.key = target
		}
		done++
	}
	return done, 0
}

// removeFutexWaiter removes a waiter from the queue or lock that it is in.
func (k *Kernel) removeFutexWaiter(w *futexWaiter) {
	if w.lock != nil {
		k.removePIWaiter(w)
	} else {
		k.futexDequeue(w)
	}
}

// releaseFutexWaiter wakes a waiter that has been removed from its queue.
func (k *Kernel) releaseFutexWaiter(w *futexWaiter) {
	w.woken = true
	w.task.Wake(wait.AnyEvent)
}
