// Package sem is System V semaphores, semget(2): sets of semaphores on which
// several operations are carried out together or not at all, with queues of
// waiting calls, and adjustments that are undone when a process ends.
//
// An operation that cannot be carried out stays in the queues of its set as an
// Operation until another one makes it possible; which one is served first
// follows ipc/sem.c of Linux, where operations on a single semaphore wait in
// queues of that semaphore as long as no operation on several waits.
//
// Invariants:
//
//  1. A value lies between 0 and MaxValue.
//  2. An Operation that is pending is in exactly one queue of its set.
//  3. Without a pending operation on several semaphores, the queue of the set for
//     changes is empty between calls.
package sem

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/ipc"
	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// Limits, as /proc/sys/kernel/sem shows them (include/uapi/linux/sem.h).
const (
	MaxPerSet     = 32000 // SEMMSL
	MaxSets       = 32000 // SEMMNI
	MaxTotal      = MaxPerSet * MaxSets
	MaxOperations = 500   // SEMOPM, of one call
	MaxValue      = 32767 // SEMVMX
	UndoSize      = 20    // SEMUSZ
)

// Undo is the flag SEM_UNDO of an operation.
const Undo = 0o10000

// Commands of semctl besides those of package ipc.
const (
	GetPID    = 11
	GetValue  = 12
	GetAll    = 13
	CountLess = 14 // GETNCNT
	CountZero = 15 // GETZCNT
	SetValue  = 16
	SetAll    = 17
	StatIndex = 18 // SEM_STAT
	UsageInfo = 19 // SEM_INFO
	StatAny   = 20 // SEM_STAT_ANY
)

// semaphoreSize is charged to the account of the kernel's memory for each
// semaphore.
const semaphoreSize = 128

// Op is struct sembuf: one operation of a call.
type Op struct {
	Number uint16
	Change int16
	Flags  int16
}

// System holds all sets.
type System struct {
	ipc.Table[*Set]
	used   int // semaphores of all sets
	memory *kmem.Account
}

// New makes a System without sets.
func New(memory *kmem.Account) *System { return &System{memory: memory} }

// Used is the number of semaphores of all sets.
func (y *System) Used() int { return y.used }

// Set is one set of semaphores.
type Set struct {
	perm     ipc.Perm
	sems     []semaphore
	alter    []*Operation // that wait to change values, when some is complex
	constant []*Operation // complex ones that wait for zeros only
	complex  int          // pending operations on several semaphores
	undos    []*undo
}

// semaphore is one semaphore of a set.
type semaphore struct {
	value    int32
	pid      int32        // that changed it last
	changed  int64        // when an operation was carried out last, in seconds
	alter    []*Operation // simple ones that wait to decrement it
	constant []*Operation // simple ones that wait for zero
}

// Common implements ipc.Object.
func (s *Set) Common() *ipc.Perm { return &s.perm }

// Len is the number of semaphores of the set.
func (s *Set) Len() int { return len(s.sems) }

func (s *Set) size() uint64 { return kmem.Object + uint64(len(s.sems))*semaphoreSize }

// Get is semget(2).
func (y *System) Get(c *ipc.Caller, key int32, n int, flags uint32) (int32, unix.Errno) {
	if n < 0 || n > MaxPerSet {
		return 0, unix.EINVAL
	}
	return y.Table.Get(c, key, flags,
		func() (*Set, unix.Errno) { return y.create(c, key, n, flags) },
		func(s *Set) unix.Errno {
			if n > len(s.sems) {
				return unix.EINVAL
			}
			return 0
		})
}

func (y *System) create(c *ipc.Caller, key int32, n int, flags uint32) (*Set, unix.Errno) {
	if n == 0 {
		return nil, unix.EINVAL
	}
	if y.used+n > MaxTotal {
		return nil, unix.ENOSPC
	}
	s := &Set{perm: ipc.NewPerm(c, key, flags), sems: make([]semaphore, n)}
	if !y.memory.Charge(s.size()) {
		return nil, unix.ENOMEM
	}
	if errno := y.Add(s, MaxSets); errno != 0 {
		y.memory.Release(s.size())
		return nil, errno
	}
	y.used += n
	return s, 0
}

// Remove is IPC_RMID: waiting calls get EIDRM.
func (y *System) Remove(s *Set) {
	y.Delete(s)
	y.used -= len(s.sems)
	y.memory.Release(s.size())
	for _, u := range s.undos {
		u.list.drop(u)
	}
	s.undos = nil
	queues := []*[]*Operation{&s.constant, &s.alter}
	for i := range s.sems {
		queues = append(queues, &s.sems[i].constant, &s.sems[i].alter)
	}
	for _, q := range queues {
		for _, o := range *q {
			o.finish(unix.EIDRM)
		}
		*q = nil
	}
}

// Operation is a call of semop(2) that was not carried out at once. Its sleeper
// is woken when it is over.
type Operation struct {
	set      *Set
	ops      []Op
	undo     *undo
	pid      int32
	alters   bool
	blocking Op // that could not be carried out when it was tried last
	sleeper  wait.Waker
	pending  bool
	errno    unix.Errno
}

// Done reports whether the operation is over, and how it ended: EIDRM, the set
// was removed.
func (o *Operation) Done() (bool, unix.Errno) { return !o.pending, o.errno }

// finish ends a pending operation that is in no queue any more.
func (o *Operation) finish(errno unix.Errno) {
	o.pending, o.errno = false, errno
	o.sleeper.Wake(wait.AnyEvent)
}

// Abandon takes a pending operation out of its queue: a signal has come, time
// is up, or its thread ends.
func (o *Operation) Abandon() {
	if !o.pending {
		return
	}
	o.pending = false
	o.set.unlink(o)
	o.set.unmerge()
}

// Do carries the operations of a call out, together or not at all. An operation
// that it returns could not be carried out yet. undo is the list of the
// thread's adjustments; it is needed if an operation has the flag Undo.
func (y *System) Do(c *ipc.Caller, id int32, ops []Op, list *UndoList, sleeper wait.Waker) (*Operation, unix.Errno) {
	highest, undone, alters := uint16(0), false, false
	for _, op := range ops {
		highest = max(highest, op.Number)
		undone = undone || op.Flags&Undo != 0
		alters = alters || op.Change != 0
	}
	s, errno := y.Find(id)
	if errno != 0 {
		return nil, errno
	}
	o := &Operation{set: s, ops: ops, pid: c.PID, alters: alters, sleeper: sleeper}
	if undone {
		if o.undo, errno = list.of(s); errno != 0 {
			return nil, errno
		}
	}
	rights := uint32(ipc.MayRead)
	if alters {
		rights = ipc.MayWrite
	}
	if int(highest) >= len(s.sems) {
		return nil, unix.EFBIG
	}
	if errno := s.perm.Allows(c, rights); errno != 0 {
		return nil, errno
	}
	done, errno := o.try()
	switch {
	case errno != 0:
		return nil, errno
	case !done:
		s.enqueue(o)
		return o, 0
	case alters:
		s.update(ops, true, c.Now)
	default:
		s.stamp(ops, c.Now)
	}
	s.unmerge()
	return nil, 0
}

// try carries an operation out if that is possible now. Otherwise nothing is
// changed; EAGAIN: it may not wait. ERANGE: a value or an adjustment would be
// out of bounds.
func (o *Operation) try() (done bool, errno unix.Errno) {
	for i := range o.ops {
		op := &o.ops[i]
		sem := &o.set.sems[op.Number]
		value := sem.value + int32(op.Change)
		switch {
		case op.Change == 0 && sem.value != 0, value < 0:
			o.revert(i)
			o.blocking = *op
			if op.Flags&ipc.NoWait != 0 {
				return false, unix.EAGAIN
			}
			return false, 0
		case value > MaxValue, op.Flags&Undo != 0 && !o.undo.adjust(op):
			o.revert(i)
			return false, unix.ERANGE
		}
		sem.value = value
	}
	for _, op := range o.ops {
		o.set.sems[op.Number].pid = o.pid
	}
	return true, 0
}

// revert takes the first n operations back.
func (o *Operation) revert(n int) {
	for _, op := range o.ops[:n] {
		o.set.sems[op.Number].value -= int32(op.Change)
		if op.Flags&Undo != 0 {
			o.undo.adjustments[op.Number] += op.Change
		}
	}
}

func (o *Operation) isComplex() bool { return len(o.ops) > 1 }

// enqueue has the operation wait, after the others of its queue.
func (s *Set) enqueue(o *Operation) {
	o.pending = true
	sem := &s.sems[o.ops[0].Number]
	q := &sem.alter
	if o.isComplex() {
		s.merge()
		s.complex++
	}
	switch {
	case !o.isComplex() && !o.alters:
		q = &sem.constant
	case !o.alters:
		q = &s.constant
	case s.complex > 0:
		q = &s.alter
	}
	*q = append(*q, o)
}

// unlink takes a pending operation out of the queue that it is in.
func (s *Set) unlink(o *Operation) {
	sem := &s.sems[o.ops[0].Number]
	for _, q := range []*[]*Operation{&sem.alter, &sem.constant, &s.alter, &s.constant} {
		if i := slices.Index(*q, o); i >= 0 {
			*q = slices.Delete(*q, i, i+1)
		}
	}
	if o.isComplex() {
		s.complex--
	}
}

// merge moves operations from the queues of the semaphores to that of the set,
// when the first complex operation begins to wait (merge_queues of Linux).
func (s *Set) merge() {
	if s.complex > 0 {
		return
	}
	for i := range s.sems {
		s.alter = append(s.sems[i].alter, s.alter...)
		s.sems[i].alter = nil
	}
}

// unmerge moves them back, when no complex operation waits any more
// (unmerge_queues of Linux).
func (s *Set) unmerge() {
	if s.complex > 0 || len(s.alter) == 0 {
		return
	}
	for _, o := range s.alter {
		sem := &s.sems[o.ops[0].Number]
		sem.alter = append(sem.alter, o)
	}
	s.alter = nil
}
