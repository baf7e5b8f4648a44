package sem

import "github.com/heddle-dmt/heddle/guest/ipc"

// Value is the value of semaphore n, and LastPID the process that changed it
// last.
func (s *Set) Value(n int) int32 { return s.sems[n].value }

// LastPID is the process that carried out an operation on semaphore n last.
func (s *Set) LastPID(n int) int32 { return s.sems[n].pid }

// Values are the values of all semaphores.
func (s *Set) Values() []uint16 {
	values := make([]uint16, len(s.sems))
	for i := range s.sems {
		values[i] = uint16(s.sems[i].value)
	}
	return values
}

// Waiting counts the operations that wait for semaphore n to become zero, or
// greater if zero is not set (count_semcnt of Linux).
func (s *Set) Waiting(n int, zero bool) int {
	sem := &s.sems[n]
	count := len(sem.alter)
	if zero {
		count = len(sem.constant)
	}
	matching := func(list []*Operation) {
		for _, o := range list {
			if int(o.blocking.Number) == n && (zero && o.blocking.Change == 0 || !zero && o.blocking.Change < 0) {
				count++
			}
		}
	}
	matching(s.alter)
	if zero {
		matching(s.constant)
	}
	return count
}

// Status is struct semid64_ds of x86-64.
type Status struct {
	Perm   ipc.Layout
	Used   int64 // otime
	_      uint64
	Change int64 // ctime
	_      uint64
	Len    uint64
	_      [2]uint64
}

// Status describes the set.
func (s *Set) Status() Status {
	used := int64(0)
	for i := range s.sems {
		used = max(used, s.sems[i].changed)
	}
	return Status{Perm: s.perm.Layout(), Used: used, Change: s.perm.Changed, Len: uint64(len(s.sems))}
}

// Limits is struct seminfo.
type Limits struct {
	Map, Sets, Total, Undos, PerSet, Operations, UndosOfProcess, UndoSize, MaxValue, MaxAdjustment int32
}

// Limits are those of the machine; with usage two of them are replaced by the
// numbers of sets and semaphores, as SEM_INFO has them.
func (y *System) Limits(usage bool) Limits {
	l := Limits{
		Map: MaxTotal, Sets: MaxSets, Total: MaxTotal, Undos: MaxTotal, PerSet: MaxPerSet, Operations: MaxOperations,
		UndosOfProcess: MaxOperations, UndoSize: UndoSize, MaxValue: MaxValue, MaxAdjustment: MaxValue,
	}
	if usage {
		l.UndoSize, l.MaxAdjustment = int32(y.Len()), int32(y.used)
	}
	return l
}
