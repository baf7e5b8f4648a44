package linux

// Operations of futex(2), without their flags.
const (
	FutexWait          = 0
	FutexWake          = 1
	FutexRequeue       = 3
	FutexCmpRequeue    = 4
	FutexWakeOp        = 5
	FutexLockPI        = 6
	FutexUnlockPI      = 7
	FutexTrylockPI     = 8
	FutexWaitBitset    = 9
	FutexWakeBitset    = 10
	FutexWaitRequeuePI = 11
	FutexCmpRequeuePI  = 12
	FutexLockPI2       = 13
)

// The flags of an operation, and the rest of it.
const (
	FutexPrivate   = 128
	FutexRealtime  = 256 // FUTEX_CLOCK_REALTIME
	FutexOperation = FutexPrivate - 1
)

// Parts of the word of a robust or priority-inheriting futex.
const (
	FutexWaiters   = 0x80000000
	FutexOwnerDied = 0x40000000
	FutexThread    = 0x3fffffff // FUTEX_TID_MASK
)

// FutexWaits reports whether an operation without its flags may wait, or gets a lock.
func FutexWaits(operation uint64) bool {
	switch operation {
	case FutexWait, FutexWaitBitset, FutexLockPI, FutexTrylockPI, FutexLockPI2, FutexWaitRequeuePI:
		return true
	}
	return false
}

// FutexWakes reports whether an operation without its flags may wake or move threads that wait, or gives
// a lock back.
func FutexWakes(operation uint64) bool {
	switch operation {
	case FutexWake, FutexWakeBitset, FutexRequeue, FutexCmpRequeue, FutexWakeOp, FutexUnlockPI, FutexCmpRequeuePI:
		return true
	}
	return false
}
