package event

// ObjectID names a synchronization object: a number that depends on the run's
// events alone, not on addresses. 0 is no object.
type ObjectID uint64

// Sync is the begin, the end or the whole of a synchronization operation.
type Sync struct {
	Stamp
	Op    SyncOp `json:"op"`
	Phase Phase  `json:"phase"`
	// Object is what the operation acts on. Second is the other one of an
	// operation that has two: the mutex of a condition wait.
	Object ObjectID `json:"object"`
	Second ObjectID `json:"second,omitempty"`
	// Addr is the object's address, and PC the instruction's or the caller's.
	Addr Addr `json:"addr"`
	PC   Addr `json:"pc"`
	// Result is what the operation returned, of a Return; for thread
	// operations Peer is the other thread, or NoThread.
	Result int64    `json:"result"`
	Peer   ThreadID `json:"peer"`
}

// SyncOp is a kind of synchronization operation.
type SyncOp uint16

// The synchronization operations. Numbers are part of the trace format: new
// ones are added at the end.
const (
	OpNone SyncOp = iota
	OpThreadStart
	OpThreadExit
	OpMutexInit
	OpMutexDestroy
	OpMutexLock
	OpMutexTryLock
	OpMutexTimedLock
	OpMutexClockLock
	OpMutexUnlock
	OpCondInit
	OpCondDestroy
	OpCondWait
	OpCondTimedWait
	OpCondClockWait
	OpCondSignal
	OpCondBroadcast
	OpRWInit
	OpRWDestroy
	OpRWReadLock
	OpRWTryReadLock
	OpRWTimedReadLock
	OpRWClockReadLock
	OpRWWriteLock
	OpRWTryWriteLock
	OpRWTimedWriteLock
	OpRWClockWriteLock
	OpRWUnlock
	OpSpinInit
	OpSpinDestroy
	OpSpinLock
	OpSpinTryLock
	OpSpinUnlock
	OpBarrierInit
	OpBarrierDestroy
	OpBarrierWait
	OpSemInit
	OpSemDestroy
	OpSemOpen
	OpSemClose
	OpSemWait
	OpSemTryWait
	OpSemTimedWait
	OpSemClockWait
	OpSemPost
	OpOnce
	OpCreate
	OpJoin
	OpTryJoin
	OpTimedJoin
	OpClockJoin
	OpDetach
	OpCancel
	OpPthreadExit
	OpKeyDestructor
	OpC11MtxLock
	OpC11MtxTryLock
	OpC11MtxTimedLock
	OpC11MtxUnlock
	OpC11CndWait
	OpC11CndTimedWait
	OpC11CndSignal
	OpC11CndBroadcast
	OpC11ThrdCreate
	OpC11ThrdJoin
	OpC11ThrdDetach
	OpC11ThrdExit
	OpC11CallOnce
	OpAtomic
	OpFence
	OpFutexWait
	OpFutexWake
	OpCustomAcquire
	OpCustomRelease
	OpCustom
	OpMutexConsistent
)

var syncNames = [...]string{
	"none", "thread_start", "thread_exit",
	"mutex_init", "mutex_destroy", "mutex_lock", "mutex_trylock", "mutex_timedlock", "mutex_clocklock", "mutex_unlock",
	"cond_init", "cond_destroy", "cond_wait", "cond_timedwait", "cond_clockwait", "cond_signal", "cond_broadcast",
	"rwlock_init", "rwlock_destroy", "rwlock_rdlock", "rwlock_tryrdlock", "rwlock_timedrdlock", "rwlock_clockrdlock",
	"rwlock_wrlock", "rwlock_trywrlock", "rwlock_timedwrlock", "rwlock_clockwrlock", "rwlock_unlock",
	"spin_init", "spin_destroy", "spin_lock", "spin_trylock", "spin_unlock",
	"barrier_init", "barrier_destroy", "barrier_wait",
	"sem_init", "sem_destroy", "sem_open", "sem_close", "sem_wait", "sem_trywait", "sem_timedwait", "sem_clockwait",
	"sem_post", "once", "create", "join", "tryjoin", "timedjoin", "clockjoin", "detach", "cancel", "pthread_exit",
	"key_destructor", "mtx_lock", "mtx_trylock", "mtx_timedlock", "mtx_unlock", "cnd_wait", "cnd_timedwait",
	"cnd_signal", "cnd_broadcast", "thrd_create", "thrd_join", "thrd_detach", "thrd_exit", "call_once",
	"atomic", "fence", "futex_wait", "futex_wake", "custom_acquire", "custom_release", "custom", "mutex_consistent",
}

// SyncOps lists the operations' names, in the order of their numbers.
func SyncOps() []string { return syncNames[:] }

func (o SyncOp) String() string {
	if int(o) < len(syncNames) {
		return syncNames[o]
	}
	return "unknown"
}
