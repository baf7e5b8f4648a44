// Package follow has the facts that all followers of a schedule need, whether they enforce a total
// order, replay a partial one, or carry out a schedule that was computed.
package follow

import "github.com/heddle-dmt/heddle/recorder/event"

// Transparent reports whether an operation has no position in schedules, but the operations within
// it have.
func Transparent(op event.SyncOp) bool { return op == event.OpKeyDestructor }

// EnclosesOperations reports whether an operation contains others: the routine of pthread_once.
func EnclosesOperations(op event.SyncOp) bool { return op == event.OpOnce || op == event.OpC11CallOnce }

// Results of operations that timed out: as functions of POSIX and C11 threads
// return them, and as those of semaphores do.
const (
	posixTimeout = 110
	c11Timeout   = 4
	semTimeout   = -1
)

// TimedOut reports whether an operation ended because its time was up.
func TimedOut(o *event.Operation) bool {
	switch o.Op {
	case event.OpMutexTimedLock, event.OpMutexClockLock, event.OpCondTimedWait, event.OpCondClockWait,
		event.OpRWTimedReadLock, event.OpRWClockReadLock, event.OpRWTimedWriteLock, event.OpRWClockWriteLock,
		event.OpTimedJoin, event.OpClockJoin:
		return o.Result == posixTimeout
	case event.OpC11MtxTimedLock, event.OpC11CndTimedWait:
		return o.Result == c11Timeout
	case event.OpSemTimedWait, event.OpSemClockWait:
		return o.Result == semTimeout
	}
	return false
}
