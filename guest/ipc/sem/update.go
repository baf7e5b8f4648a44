package sem

import (
	"slices"

	"github.com/heddle-dmt/heddle/guest/ipc"
)

// update carries out the pending operations that a change has made possible, in
// the order of do_smart_update of Linux: waits for zero first. ops is
// the change, nil if any semaphore may have changed. stamped means that
// the change itself counts as an operation that was carried out.
func (s *Set) update(ops []Op, stamped bool, now int64) {
	stamped = s.wakeZero(ops) || stamped
	switch {
	case len(s.alter) > 0:
		stamped = s.wakeAlter(nil) || stamped
	case ops == nil:
		for i := range s.sems {
			stamped = s.wakeAlter(&s.sems[i]) || stamped
		}
	default:
		for _, op := range ops {
			if op.Change > 0 {
				stamped = s.wakeAlter(&s.sems[op.Number]) || stamped
			}
		}
	}
	if stamped {
		s.stamp(ops, now)
	}
}

// stamp notes when an operation was carried out.
func (s *Set) stamp(ops []Op, now int64) {
	if ops == nil {
		s.sems[0].changed = now
		return
	}
	s.sems[ops[0].Number].changed = now
}

// wakeZero carries out operations that wait for zeros, if a semaphore of the
// change is zero. It reports whether one succeeded.
func (s *Set) wakeZero(ops []Op) bool {
	succeeded, isZero := false, false
	wake := func(sem *semaphore) {
		if sem.value == 0 {
			isZero = true
			succeeded = s.wakeConstant(&sem.constant) || succeeded
		}
	}
	if ops == nil {
		for i := range s.sems {
			wake(&s.sems[i])
		}
	}
	for _, op := range ops {
		wake(&s.sems[op.Number])
	}
	if isZero {
		succeeded = s.wakeConstant(&s.constant) || succeeded
	}
	return succeeded
}

// wakeConstant tries all operations of a queue, which change nothing.
func (s *Set) wakeConstant(q *[]*Operation) bool {
	succeeded := false
	for _, o := range slices.Clone(*q) {
		done, errno := o.try()
		if !done && errno == 0 {
			continue
		}
		s.unlink(o)
		o.finish(errno)
		succeeded = succeeded || done
	}
	return succeeded
}

// wakeAlter tries the operations, which change values, in the queue of a
// semaphore, or of the set if sem is nil. It reports whether one succeeded.
func (s *Set) wakeAlter(sem *semaphore) bool {
	succeeded := false
	for s.wakeAlterOnce(sem, &succeeded) {
	}
	return succeeded
}

// wakeAlterOnce tries the operations of a queue in order, until one succeeds
// after which those before it may succeed too; then it is to be called again.
func (s *Set) wakeAlterOnce(sem *semaphore, succeeded *bool) (again bool) {
	q := &s.alter
	if sem != nil {
		q = &sem.alter
	}
	for _, o := range slices.Clone(*q) {
		if sem != nil && sem.value == 0 {
			return false // increments never wait, and decrements cannot succeed
		}
		done, errno := o.try()
		if !done && errno == 0 {
			continue
		}
		s.unlink(o)
		if done {
			*succeeded = true
			s.wakeZero(o.ops)
		}
		o.finish(errno)
		if done && (len(s.alter) > 0 || o.isComplex()) {
			return true
		}
	}
	return false
}

// SetValue is SETVAL of semctl(2) for semaphore n, which exists; adjustments of
// the semaphore are forgotten.
func (s *Set) SetValue(c *ipc.Caller, n int, value int32) {
	for _, u := range s.undos {
		u.adjustments[n] = 0
	}
	s.sems[n].value, s.sems[n].pid = value, c.PID
	s.perm.Changed = c.Now
	s.update(nil, false, c.Now)
	s.unmerge()
}

// SetAll is SETALL of semctl(2), with a value for each semaphore.
func (s *Set) SetAll(c *ipc.Caller, values []uint16) {
	for i, v := range values {
		s.sems[i].value, s.sems[i].pid = int32(v), c.PID
	}
	for _, u := range s.undos {
		clear(u.adjustments)
	}
	s.perm.Changed = c.Now
	s.update(nil, false, c.Now)
	s.unmerge()
}
