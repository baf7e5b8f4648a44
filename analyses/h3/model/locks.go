package model

import "github.com/heddle-dmt/heddle/recorder/event"

// LockKind is the kind of a lock in the C library.
type LockKind uint8

// Kinds of locks.
const (
	Mutex LockKind = iota
	ReadWriteLock
	SpinLock
)

// LockKindOf returns the kind of lock that an operation works on.
func LockKindOf(op event.SyncOp) LockKind {
	switch op {
	case event.OpSpinLock, event.OpSpinTryLock, event.OpSpinUnlock:
		return SpinLock
	case event.OpRWReadLock, event.OpRWTryReadLock, event.OpRWTimedReadLock, event.OpRWWriteLock, event.OpRWTryWriteLock,
		event.OpRWTimedWriteLock, event.OpRWUnlock:
		return ReadWriteLock
	}
	return Mutex
}
