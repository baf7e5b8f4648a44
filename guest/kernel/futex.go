package kernel

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/mm"
)

// futexKey identifies the word of a futex: an address in one address space, or an offset in an
// object that several address spaces may map.
type futexKey struct {
	space  *mm.AddressSpace
	object *mm.Object
	offset uint64
	// A private and a shared operation on one word do not match, even if the memory is private.
	private bool
}

// futexQueue holds the waiters of one word: the highest rank first, and the longest waiting first
// within a rank.
type futexQueue struct{ waiters []*futexWaiter }

// futexWaiter is one task that waits for a word or a lock.
type futexWaiter struct {
	task   *Task
	key    futexKey
	bitset uint32
	rank   int // of the task without inheritance, when it started to wait
	woken  bool

	// For waits with priority inheritance: the address at which the task sees the lock's word, the
	// lock that it waits for now, and the lock to which it is to be requeued.
	addr   arch.Addr
	lock   *piLock
	target *futexKey
}

// isPI reports whether the waiter waits for a lock with priority inheritance, or is to be requeued
// to one.
func (w *futexWaiter) isPI() bool { return w.lock != nil || w.target != nil }

// futexKeyAt returns the key of the word at addr. Private futexes and private memory are identified
// by address, shared memory by the object that is mapped.
func (t *Task) futexKeyAt(addr arch.Addr, private bool) futexKey {
	if !private {
		if v, ok := t.proc.space.Find(addr); ok && v.Object != nil && v.Flags&mm.Shared != 0 {
			return futexKey{object: v.Object, offset: v.Offset + uint64(addr-v.Start)}
		}
	}
	return futexKey{space: t.proc.space, offset: uint64(addr), private: private}
}

func sysFutex(t *Task, a [6]uint64) (uint64, unix.Errno) {
	addr, op, val := arch.Addr(a[0]), int(int32(a[1])), uint32(a[2])
	cmd, private := op&linux.FutexOperation, op&linux.FutexPrivate != 0
	if op&linux.FutexRealtime != 0 && cmd != linux.FutexWaitBitset && cmd != linux.FutexWaitRequeuePI && cmd != linux.FutexLockPI2 {
		return 0, unix.ENOSYS
	}
	bitset := ^uint32(0)
	if cmd == linux.FutexWaitBitset || cmd == linux.FutexWakeBitset {
		if bitset = uint32(a[5]); bitset == 0 {
			return 0, unix.EINVAL
		}
	}
	switch cmd {
	case linux.FutexWait, linux.FutexWaitBitset:
		return t.futexWait(addr, private, val, bitset, arch.Addr(a[3]), cmd == linux.FutexWaitBitset, op&linux.FutexRealtime != 0)
	case linux.FutexWake, linux.FutexWakeBitset:
		if errno := t.checkFutexWord(addr, private); errno != 0 {
			return 0, errno
		}
		n, errno := t.k.futexWake(t.futexKeyAt(addr, private), max(1, int32(val)), bitset)
		return uint64(n), errno
	case linux.FutexRequeue, linux.FutexCmpRequeue:
		return t.futexRequeue(addr, arch.Addr(a[4]), private, int32(val), int32(a[3]), cmd == linux.FutexCmpRequeue, uint32(a[5]))
	case linux.FutexWakeOp:
		return t.futexWakeOp(addr, arch.Addr(a[4]), private, int32(val), int32(a[3]), uint32(a[5]))
	}
	return t.futexPI(cmd, a)
}

// futexPI carries out the operations with priority inheritance.
func (t *Task) futexPI(cmd int, a [6]uint64) (uint64, unix.Errno) {
	op, val := int(int32(a[1])), uint32(a[2])
	c := piCall{arch.Addr(a[0]), op&linux.FutexPrivate != 0, op&linux.FutexRealtime != 0, arch.Addr(a[3])}
	switch cmd {
	case linux.FutexLockPI:
		c.realtime = true
		return t.futexLockPI(c, false)
	case linux.FutexLockPI2:
		return t.futexLockPI(c, false)
	case linux.FutexTrylockPI:
		c.timeout = 0
		return t.futexLockPI(c, true)
	case linux.FutexUnlockPI:
		return t.futexUnlockPI(c.addr, c.private)
	case linux.FutexWaitRequeuePI:
		return t.futexWaitRequeuePI(c, val, arch.Addr(a[4]))
	case linux.FutexCmpRequeuePI:
		return t.futexRequeuePI(c.addr, arch.Addr(a[4]), c.private, int32(val), int32(a[3]), uint32(a[5]))
	}
	return 0, unix.ENOSYS
}

// checkFutexWord checks the address of a futex as Linux does when it computes the key.
func (t *Task) checkFutexWord(addr arch.Addr, private bool) unix.Errno {
	switch {
	case addr%4 != 0:
		return unix.EINVAL
	case addr >= mm.TaskSize:
		return unix.EFAULT
	case private:
		return 0
	}
	// The object of a shared futex is found through its page.
	if _, errno := t.proc.space.ReadU32(addr); errno != 0 {
		return errno
	}
	// Two processes cannot share a page without an object, because the first write may replace it.
	if v, ok := t.proc.space.Find(addr); ok && v.Object == nil && v.Prot&unix.PROT_WRITE == 0 {
		return unix.EFAULT
	}
	return 0
}

func (t *Task) futexWait(addr arch.Addr, private bool, val, bitset uint32, timeout arch.Addr, absolute, realtime bool) (uint64, unix.Errno) {
	if w := t.call.futex; w != nil {
		return t.continueFutexWait(w)
	}
	deadline := t.call.deadline // of an attempt that a signal interrupted
	if deadline == 0 {
		deadline = forever
	}
	if timeout != 0 && deadline == forever {
		ns, errno := t.readTimespec(timeout)
		if errno != 0 {
			return 0, errno
		}
		switch {
		case !absolute:
			deadline = saturatingAdd(t.k.clock.now, ns)
		case realtime:
			deadline = t.k.toRunClock(unix.CLOCK_REALTIME, ns)
			t.call.onRealtime = true
		default:
			deadline = ns - bootNS
		}
	}
	if errno := t.checkFutexWord(addr, private); errno != 0 {
		return 0, errno
	}
	have, errno := t.proc.space.ReadU32(addr)
	if errno != 0 {
		return 0, errno
	}
	if have != val {
		return 0, unix.EAGAIN
	}
	t.call.deadline = deadline
	t.call.futex = t.newFutexWaiter(t.futexKeyAt(addr, private), bitset)
	t.k.futexEnqueue(t.call.futex)
	return t.continueFutexWait(t.call.futex)
}

func (t *Task) newFutexWaiter(key futexKey, bitset uint32) *futexWaiter {
	return &futexWaiter{task: t, key: key, bitset: bitset, rank: t.schedule.rank()}
}

// continueFutexWait returns the state of a wait, at the first attempt and after each wake-up.
func (t *Task) continueFutexWait(w *futexWaiter) (uint64, unix.Errno) {
	if w.woken {
		return 0, 0
	}
	restart := errRestart
	switch {
	case w.isPI():
		restart = errNoInterrupt
	case t.call.deadline != forever:
		restart = errRestartBlock
	}
	deadline := t.call.deadline
	if t.k.override.IgnoresFutexTimeouts() {
		deadline = forever
	}
	errno := t.waitInterruptibly(restart, deadline)
	if errno != errBlocked {
		t.k.removeFutexWaiter(w)
		if errno != unix.ETIMEDOUT {
			t.call.futex = nil
		}
	}
	return 0, errno
}

func (k *Kernel) futexEnqueue(w *futexWaiter) {
	q := k.futexes[w.key]
	if q == nil {
		q = &futexQueue{}
		k.futexes[w.key] = q
	}
	i := len(q.waiters)
	for i > 0 && q.waiters[i-1].rank < w.rank {
		i--
	}
	q.waiters = slices.Insert(q.waiters, i, w)
}

func (k *Kernel) futexDequeue(w *futexWaiter) {
	q := k.futexes[w.key]
	if q == nil {
		return
	}
	for i, x := range q.waiters {
		if x == w {
			k.futexRemove(w.key, q, i)
			return
		}
	}
}

func (k *Kernel) futexRemove(key futexKey, q *futexQueue, i int) *futexWaiter {
	w := q.waiters[i]
	q.waiters = append(q.waiters[:i:i], q.waiters[i+1:]...)
	if len(q.waiters) == 0 {
		delete(k.futexes, key)
	}
	return w
}

// futexWake wakes up to n waiters whose bitset matches, in the queue's order. EINVAL: some wait for
// a lock with priority inheritance.
func (k *Kernel) futexWake(key futexKey, n int32, bitset uint32) (woken int32, errno unix.Errno) {
	if k.piLocks[key] != nil {
		return 0, unix.EINVAL
	}
	for i := 0; woken < n; {
		q := k.futexes[key]
		if q == nil || i >= len(q.waiters) {
			break
		}
		if q.waiters[i].target != nil {
			return woken, unix.EINVAL
		}
		if q.waiters[i].bitset&bitset == 0 {
			i++
			continue
		}
		k.releaseFutexWaiter(k.futexRemove(key, q, i))
		woken++
	}
	return woken, 0
}

func (t *Task) futexRequeue(from, to arch.Addr, private bool, wake, requeue int32, compare bool, val uint32) (uint64, unix.Errno) {
	if wake < 0 || requeue < 0 {
		return 0, unix.EINVAL
	}
	for _, addr := range []arch.Addr{from, to} {
		if errno := t.checkFutexWord(addr, private); errno != 0 {
			return 0, errno
		}
	}
	if compare {
		have, errno := t.proc.space.ReadU32(from)
		if errno != 0 {
			return 0, errno
		}
		if have != val {
			return 0, unix.EAGAIN
		}
	}
	source, target := t.futexKeyAt(from, private), t.futexKeyAt(to, private)
	done, errno := t.k.futexWake(source, wake, ^uint32(0))
	if errno != 0 {
		return 0, errno
	}
	moved := int32(0)
	for ; moved < requeue && source != target; moved++ {
		q := t.k.futexes[source]
		if q == nil {
			break
		}
		if q.waiters[0].target != nil {
			return 0, unix.EINVAL
		}
		w := t.k.futexRemove(source, q, 0)
		w.key = target
		t.k.futexEnqueue(w)
	}
	if source == target {
		if q := t.k.futexes[source]; q != nil {
			moved = min(requeue, int32(len(q.waiters)))
		}
	}
	// The manual page says that FUTEX_REQUEUE counts only the threads woken; Linux counts both for
	// both operations.
	return uint64(done + moved), 0
}

func (t *Task) futexWakeOp(addr, addr2 arch.Addr, private bool, wake, wake2 int32, encoded uint32) (uint64, unix.Errno) {
	if errno := t.checkFutexWord(addr, private); errno != 0 {
		return 0, errno
	}
	if errno := t.checkFutexWord(addr2, private); errno != 0 {
		return 0, errno
	}
	old, errno := t.proc.space.ReadU32(addr2)
	if errno != 0 {
		return 0, errno
	}
	op, cmp := encoded>>28&0xf, encoded>>24&0xf
	oparg, cmparg := signExtend12(encoded>>12), signExtend12(encoded)
	if op&8 != 0 {
		oparg = 1 << (oparg & 31)
	}
	var next uint32
	switch op & 7 {
	case 0:
		next = uint32(oparg)
	case 1:
		next = old + uint32(oparg)
	case 2:
		next = old | uint32(oparg)
	case 3:
		next = old &^ uint32(oparg)
	case 4:
		next = old ^ uint32(oparg)
	default:
		return 0, unix.ENOSYS
	}
	signed := int32(old)
	holds := []bool{signed == cmparg, signed != cmparg, signed < cmparg, signed <= cmparg, signed > cmparg, signed >= cmparg}
	if cmp >= uint32(len(holds)) {
		return 0, unix.ENOSYS
	}
	if errno := t.proc.space.WriteU32(addr2, next); errno != 0 {
		return 0, errno
	}
	n, errno := t.k.futexWake(t.futexKeyAt(addr, private), wake, ^uint32(0))
	if errno == 0 && holds[cmp] {
		var more int32
		more, errno = t.k.futexWake(t.futexKeyAt(addr2, private), wake2, ^uint32(0))
		n += more
	}
	return uint64(n), errno
}

func signExtend12(x uint32) int32 { return int32(x<<20) >> 20 }

const robustHeadSize = 24

func sysSetRobustList(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[1] != robustHeadSize {
		return 0, unix.EINVAL
	}
	t.robustList = arch.Addr(a[0])
	return 0, 0
}

func sysGetRobustList(t *Task, a [6]uint64) (uint64, unix.Errno) {
	target := t
	if id := int32(a[0]); id != 0 {
		if target = t.k.findTask(id); target == nil {
			return 0, unix.ESRCH
		}
		if target.proc != t.proc && !target.proc.mayExamine(&t.cred, false) {
			return 0, unix.EPERM
		}
	}
	if errno := t.proc.space.WriteU64(arch.Addr(a[2]), robustHeadSize); errno != 0 {
		return 0, errno
	}
	return 0, t.proc.space.WriteU64(arch.Addr(a[1]), uint64(target.robustList))
}

// robustLimit bounds the walk over a list that the guest may have damaged
// (ROBUST_LIST_LIMIT of Linux).
const robustLimit = 2048

// exitRobustList marks the robust mutexes that a dying thread holds, as exit_robust_list in
// kernel/futex/core.c does: the entries on the list, then the one whose operation was in progress.
func (k *Kernel) exitRobustList(t *Task) {
	head := t.robustList
	if head == 0 {
		return
	}
	space := t.proc.space
	next, e1 := space.ReadU64(head)
	offset, e2 := space.ReadU64(head + 8)
	pending, e3 := space.ReadU64(head + 16)
	if e1 != 0 || e2 != 0 || e3 != 0 {
		return
	}
	for i := 0; i < robustLimit && arch.Addr(next&^1) != head; i++ {
		entry := next
		var errno unix.Errno
		next, errno = space.ReadU64(arch.Addr(entry &^ 1))
		if entry&^1 != pending&^1 && !k.releaseRobustFutex(t, arch.Addr(entry&^1+offset), entry&1 != 0, false) {
			return
		}
		if errno != 0 {
			return
		}
	}
	if pending&^1 != 0 {
		k.releaseRobustFutex(t, arch.Addr(pending&^1+offset), pending&1 != 0, true)
	}
}

// releaseRobustFutex releases one robust mutex whose owner dies. It returns false if the word
// cannot be accessed.
func (k *Kernel) releaseRobustFutex(t *Task, addr arch.Addr, pi, pending bool) bool {
	if addr%4 != 0 {
		return false
	}
	word, errno := t.proc.space.ReadU32(addr)
	if errno != 0 {
		return false
	}
	key := t.futexKeyAt(addr, false)
	if pending && !pi && word == 0 {
		// Unlocked already, but the wake-up may not have happened.
		_, _ = k.futexWake(key, 1, ^uint32(0))
		return true
	}
	if word&linux.FutexThread != uint32(t.id) {
		return true
	}
	if t.proc.space.WriteU32(addr, word&linux.FutexWaiters|linux.FutexOwnerDied) != 0 {
		return false
	}
	if !pi && word&linux.FutexWaiters != 0 {
		_, _ = k.futexWake(key, 1, ^uint32(0))
	}
	return true
}
