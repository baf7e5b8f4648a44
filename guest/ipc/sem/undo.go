package sem

import (
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/ipc"
	"github.com/heddle-dmt/heddle/guest/kmem"
)

// UndoList holds the adjustments that a thread, and the threads that share them with
// it (CLONE_SYSVSEM), have to be undone at their end.
type UndoList struct {
	refs   int
	undos  []*undo // the one that was used last at the end
	memory *kmem.Account
}

// undo is the adjustments to one set.
type undo struct {
	set         *Set
	list        *UndoList
	adjustments []int16
}

// NewUndoList makes an empty list for one thread.
func (y *System) NewUndoList() *UndoList { return &UndoList{refs: 1, memory: y.memory} }

// Ref adds a thread.
func (l *UndoList) Ref() { l.refs++ }

func undoSize(s *Set) uint64 { return kmem.Object + uint64(len(s.sems))*2 }

// of finds the adjustments to a set, or makes them.
func (l *UndoList) of(s *Set) (*undo, unix.Errno) {
	for i, u := range l.undos {
		if u.set == s {
			l.undos = append(slices.Delete(l.undos, i, i+1), u)
			return u, 0
		}
	}
	if !l.memory.Charge(undoSize(s)) {
		return nil, unix.ENOMEM
	}
	u := &undo{set: s, list: l, adjustments: make([]int16, len(s.sems))}
	l.undos = append(l.undos, u)
	s.undos = append(s.undos, u)
	return u, 0
}

// adjust notes that an operation is to be undone; false: the adjustment would be
// out of bounds.
func (u *undo) adjust(op *Op) bool {
	n := int32(u.adjustments[op.Number]) - int32(op.Change)
	if n < math.MinInt16 || n > math.MaxInt16 {
		return false
	}
	u.adjustments[op.Number] = int16(n)
	return true
}

// drop forgets the adjustments to a set.
func (l *UndoList) drop(u *undo) {
	i := slices.Index(l.undos, u)
	l.undos = slices.Delete(l.undos, i, i+1)
	l.memory.Release(undoSize(u.set))
}

// Unref takes a thread away, of the process that the caller is. With the last
// one the adjustments are made, those to the set that was used last first, and
// values stay in their bounds.
func (l *UndoList) Unref(c *ipc.Caller) {
	if l.refs--; l.refs > 0 {
		return
	}
	for len(l.undos) > 0 {
		u := l.undos[len(l.undos)-1]
		l.drop(u)
		s := u.set
		s.undos = slices.DeleteFunc(s.undos, func(o *undo) bool { return o == u })
		for i, by := range u.adjustments {
			if by != 0 {
				sem := &s.sems[i]
				sem.value = min(MaxValue, max(0, sem.value+int32(by)))
				sem.pid = c.PID
			}
		}
		s.update(nil, true, c.Now)
		s.unmerge()
	}
}
