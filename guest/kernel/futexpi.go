package kernel

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// Futexes with priority inheritance: locks whose word has the owner's thread id, so
// that the kernel knows for whom others wait. See futex(2) and kernel/futex/pi.c.

// piLock is such a lock with threads that wait for it. The owner may be any thread,
// also one that has never asked the kernel.
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

// absolute reads the deadline of a call whose time-out is absolute.
func (t *Task) absolute(timeout arch.Addr, realtime bool) (int64, unix.Errno) {
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
	return t.k.runClock(clock, ns), 0
}

// futexLockPI is FUTEX_LOCK_PI, FUTEX_LOCK_PI2 and, with try, FUTEX_TRYLOCK_PI.
func (t *Task) futexLockPI(c piCall, try bool) (uint64, unix.Errno) {
	if w := t.call.futex; w != nil {
		return t.futexWaited(w)
	}
	deadline, errno := t.absolute(c.timeout, c.realtime)
	if errno != 0 {
		return 0, errno
	}
	if errno := t.futexWord(c.addr, c.private); errno != 0 {
		return 0, errno
	}
	key := t.futexKey(c.addr, c.private)
	owner, errno := t.piTake(t, c.addr, key, false)
	if errno != 0 || owner == nil {
		return 0, errno
	}
	if try {
		return 0, unix.EAGAIN
	}
	w := &futexWaiter{task: t, key: key, addr: c.addr}
	if errno := t.k.piEnqueue(w, owner); errno != 0 {
		return 0, errno
	}
	t.call.deadline, t.call.futex = deadline, w
	return t.futexWaited(w)
}

// piTake gives a thread the lock at addr if nobody has it, in the name of t, who sees
// the word there. Otherwise it returns the owner, whom the word then says that others
// wait for.
func (t *Task) piTake(taker *Task, addr arch.Addr, key futexKey, waiters bool) (owner *Task, errno unix.Errno) {
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
		return nil, unix.EINVAL // it is waited for as another kind of futex
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
	if owner = t.k.task(int32(id)); owner == nil {
		return nil, unix.ESRCH
	}
	return owner, 0
}

// piEnqueue has a waiter wait for the lock of its key. EDEADLK: the owner waits, maybe
// by way of others, for what the waiter's thread has.
func (k *Kernel) piEnqueue(w *futexWaiter, owner *Task) unix.Errno {
	for o := owner; o != nil; o = o.piWaitsFor() {
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
	l.insert(w)
	k.inherit(l.owner)
	return 0
}

// piWaitsFor is the owner of the lock that the thread waits for; nil: there is none.
func (t *Task) piWaitsFor() *Task {
	if w := t.call.futex; w != nil && w.lock != nil {
		return w.lock.owner
	}
	return nil
}

func (l *piLock) insert(w *futexWaiter) {
	rank := w.task.rank()
	i := slices.IndexFunc(l.waiters, func(x *futexWaiter) bool { return x.task.rank() < rank })
	if i < 0 {
		i = len(l.waiters)
	}
	l.waiters = slices.Insert(l.waiters, i, w)
}

// piRemove takes a waiter from its lock's, and forgets the lock with the last.
func (k *Kernel) piRemove(w *futexWaiter) {
	l := w.lock
	l.waiters = slices.DeleteFunc(l.waiters, func(x *futexWaiter) bool { return x == w })
	w.lock = nil
	owner := l.owner
	if len(l.waiters) == 0 {
		k.piForget(l)
	}
	k.inherit(owner)
}

func (k *Kernel) piForget(l *piLock) {
	l.owner.piLocks = slices.DeleteFunc(l.owner.piLocks, func(x *piLock) bool { return x == l })
	delete(k.piLocks, l.key)
}

// inherit gives the owner of locks the rank of the highest thread that waits for one,
// and those before whom it itself waits theirs.
func (k *Kernel) inherit(t *Task) {
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
		t.rescheduled()
	}
	k.futexReorder(t)
}

// futexReorder puts a thread whose rank has changed in its place among those that wait
// for the lock that it waits for.
func (k *Kernel) futexReorder(t *Task) {
	w := t.call.futex
	if w == nil || w.lock == nil {
		return
	}
	l := w.lock
	l.waiters = slices.DeleteFunc(l.waiters, func(x *futexWaiter) bool { return x == w })
	l.insert(w)
	k.inherit(l.owner)
}

// futexUnlockPI is FUTEX_UNLOCK_PI.
func (t *Task) futexUnlockPI(addr arch.Addr, private bool) (uint64, unix.Errno) {
	if errno := t.futexWord(addr, private); errno != 0 {
		return 0, errno
	}
	word, errno := t.proc.space.ReadU32(addr)
	if errno != 0 {
		return 0, errno
	}
	if word&linux.FutexThread != uint32(t.id) {
		return 0, unix.EPERM
	}
	key := t.futexKey(addr, private)
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
	t.k.piHandOver(l)
	return 0, 0
}

// piHandOver gives a lock to the first that waits for it.
func (k *Kernel) piHandOver(l *piLock) {
	w, from := l.waiters[0], l.owner
	l.waiters = slices.Delete(l.waiters, 0, 1)
	w.lock = nil
	k.piForget(l)
	if len(l.waiters) > 0 {
		l.owner = w.task
		w.task.piLocks = append(w.task.piLocks, l)
		k.piLocks[l.key] = l
		k.inherit(w.task)
	}
	k.inherit(from)
	k.futexRelease(w)
}

// exitPILocks gives the locks of a dying thread to those that wait for them, who learn
// by the word that their owner has died (exit_pi_state_list of Linux).
func (k *Kernel) exitPILocks(t *Task) {
	for _, l := range slices.Clone(t.piLocks) {
		next := l.waiters[0]
		// A word that cannot be written is not there for the waiter either.
		_ = next.task.proc.space.WriteU32(next.addr, linux.FutexWaiters|linux.FutexOwnerDied|uint32(next.task.id))
		k.piHandOver(l)
	}
}

// futexWaitRequeuePI is FUTEX_WAIT_REQUEUE_PI: it waits for a word as FUTEX_WAIT does,
// until FUTEX_CMP_REQUEUE_PI has it wait for the lock at addr2, or gives it that.
func (t *Task) futexWaitRequeuePI(c piCall, val uint32, addr2 arch.Addr) (uint64, unix.Errno) {
	if w := t.call.futex; w != nil {
		moved := w.lock != nil
		result, errno := t.futexWaited(w)
		if moved && errno == errNoInterrupt {
			errno = unix.EAGAIN // the word has changed since
		}
		return result, errno
	}
	deadline, errno := t.absolute(c.timeout, c.realtime)
	switch {
	case errno != 0:
		return 0, errno
	case c.addr == addr2:
		return 0, unix.EINVAL
	}
	for _, addr := range []arch.Addr{c.addr, addr2} {
		if errno := t.futexWord(addr, c.private); errno != 0 {
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
	key, target := t.futexKey(c.addr, c.private), t.futexKey(addr2, c.private)
	if key == target {
		return 0, unix.EINVAL
	}
	w := t.newFutexWaiter(key, ^uint32(0))
	w.addr, w.target = addr2, &target
	t.call.deadline, t.call.futex = deadline, w
	t.k.futexEnqueue(w)
	return t.futexWaited(w)
}

// futexRequeuePI is FUTEX_CMP_REQUEUE_PI: the first that waits for the word at from gets
// the lock at to, or all wait for that.
func (t *Task) futexRequeuePI(from, to arch.Addr, private bool, wake, requeue int32, val uint32) (uint64, unix.Errno) {
	if from == to || wake != 1 || requeue < 0 {
		return 0, unix.EINVAL
	}
	for _, addr := range []arch.Addr{from, to} {
		if errno := t.futexWord(addr, private); errno != 0 {
			return 0, errno
		}
	}
	source, target := t.futexKey(from, private), t.futexKey(to, private)
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
		owner, errno := t.piTake(w.task, to, target, requeue > 0)
		switch {
		case errno != 0:
			return 0, errno
		case owner == nil:
			t.k.futexRelease(t.k.futexRemove(source, q, 0))
		default:
			w.key = target
			if errno := t.k.piEnqueue(w, owner); errno != 0 {
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

// forgetFutex takes a thread out of what it waits for.
func (k *Kernel) forgetFutex(w *futexWaiter) {
	if w.lock != nil {
		k.piRemove(w)
	} else {
		k.futexDequeue(w)
	}
}

// futexRelease lets a waiter go on, which nothing queues any more.
func (k *Kernel) futexRelease(w *futexWaiter) {
	w.woken = true
	w.task.Wake(wait.AnyEvent)
}
