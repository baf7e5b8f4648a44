package event

import "github.com/heddle-dmt/heddle/emu/arch"

// ObjectID names a synchronization object: the 64-bit XXH3 of the object's
// Name, which does not depend on addresses or on the interleaving
// (docs/sync.md says how far). 0 is no object.
type ObjectID uint64

// Object says which object an ObjectID stands for. It precedes the first Sync that
// has the id.
type Object struct {
	Stamp
	ID ObjectID `json:"id"`
	// Name is the string that the id was computed from, for people: "1:main+0x4040" is an
	// address in a file, "1.2:init3" the third object that thread 1.2
	// initialised. docs/sync.md lists the forms.
	Name string `json:"name"`
	// Addr is where the object is.
	Addr arch.Addr `json:"addr"`
}

// Effects say between which threads a Sync makes an order: the acts of one thread
// before it released an object precede the acts of another after it acquired
// the object.
type Effects uint8

// Effects of the begin or the end of an operation.
const (
	// Acquire and Release are about Sync.Object.
	Acquire Effects = 1 << iota
	Release
	// AcquireSecond and ReleaseSecond are about Sync.Second.
	AcquireSecond
	ReleaseSecond
	// Shared marks those of readers: they make no order among themselves.
	Shared
	// Inner marks an operation that the C library made for itself, such as the
	// lock of the dynamic linker.
	Inner
)

// Sync is the begin, the end or the whole of a synchronization operation.
type Sync struct {
	Stamp
	Op    SyncOp `json:"op"`
	Phase Phase  `json:"phase"`
	// Object is the object of the operation. Second is the other one of an
	// operation that has two: the mutex of a condition wait.
	Object ObjectID `json:"object"`
	Second ObjectID `json:"second,omitempty"`
	// Addr is the object's address, and PC the instruction's or the caller's.
	Addr arch.Addr `json:"addr"`
	PC   arch.Addr `json:"pc"`
	// Result is the value that the operation returned, of a Return; for thread
	// operations Peer is the other thread, or NoThread.
	Result int64         `json:"result"`
	Peer   arch.ThreadID `json:"peer"`
	// Effects say which objects were acquired or released.
	Effects Effects `json:"effects"`
	// Value is a number of the operation, at its Enter: the count of a barrier,
	// the first value of a semaphore, the size in bytes of an atomic access, the
	// number of waiters to wake; of a key's destructor the key's value; of hints see there.
	Value uint64 `json:"value"`
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
	OpTestCancel
	OpKeyCreate
	OpKeyDelete
	OpSemUnlink
	OpC11MtxInit
	OpC11MtxDestroy
	OpC11CndInit
	OpC11CndDestroy
	OpC11TssCreate
	OpC11TssDelete
	OpFork
	// OpAllocate is a call of malloc or its kin, and OpThreadReturn the return of a
	// thread's start routine: they occur in schedules alone.
	OpAllocate
	OpThreadReturn
	// PARROT's hints, which order nothing: a soft barrier is made (Value is the number of threads,
	// and in the upper half that of turns until it opens; Addr is its number) and waited for, and a
	// performance-critical section begins and ends.
	OpSoftBarrierInit
	OpSoftBarrierWait
	OpSectionEnter
	OpSectionExit
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
	"testcancel", "key_create", "key_delete", "sem_unlink", "mtx_init", "mtx_destroy", "cnd_init", "cnd_destroy",
	"tss_create", "tss_delete", "fork", "allocate", "thread_return",
	"soba_init", "soba_wait", "pcs_enter", "pcs_exit",
}

// SyncOps lists the operations' names, in the order of their numbers.
func SyncOps() []string { return syncNames[:] }

func (o SyncOp) String() string {
	if int(o) < len(syncNames) {
		return syncNames[o]
	}
	return "unknown"
}
