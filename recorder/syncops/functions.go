package syncops

import (
	"strings"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// role is the meaning of the first operand of a function.
type role uint8

const (
	noObject      role = iota
	inMemory           // the address of the object
	aThread            // a pthread_t
	createdThread      // where the pthread_t of the thread to be made goes
	aKey               // the number of a key
	createdKey         // where the number of the key to be made goes
	aName              // of a semaphore
	theFunction        // no operand: the function itself is the object
)

// success says which results mean that an operation took effect.
type success uint8

const (
	ifZero    success = iota
	ifMutex           // 0, or EOWNERDEAD: the mutex is held
	ifBarrier         // 0, or PTHREAD_BARRIER_SERIAL_THREAD
	ifPointer         // not SEM_FAILED
	ifNonzero
	ifNonnegative
	always
)

// function describes a recognised function. Arguments are numbered
// from 1; 0 is none.
type function struct {
	name    string
	op      event.SyncOp
	role    role
	object  int8 // which argument is the object
	second  int8 // the mutex of a condition wait
	value   int8 // the argument that is Sync.Value
	success success
	// effects at the call, at a successful return, and at any return.
	enter, done, after event.Effects
	// creates: the object begins a life of its own here; destroys: it ends.
	creates, destroys bool
	// once: acquires, or runs a routine of the program and then releases.
	once bool
	// leaves: does not return.
	leaves bool
	kind   kind
	target *function // of a resolver
	heap   *shape    // of an allocator
	starts int8      // which argument is the routine of the thread to be made
	hint   *hint     // of a hint for PARROT
}

// kind distinguishes recognised addresses that are no plain operations.
type kind uint8

const (
	operation   kind = iota
	setSpecific      // pthread_setspecific: needed to distinguish keys' destructors
	threadEnd        // the C library begins to destroy a thread's keys
	resolver         // of an IFUNC: its result is the function
	destructor       // of a key
	routine          // that pthread_once may call
	jump             // longjmp
	catch            // an exception was caught, in the function that calls this
	wrapper          // syscall(2): its operation is its caller's
	spinClear        // pthread_spin_init and pthread_spin_unlock at one address
	allocator        // malloc and its kin
	body             // the routine that a thread was made for
)

// PTHREAD_BARRIER_SERIAL_THREAD, and EOWNERDEAD of pthread_mutex_lock.
const (
	serialThread = -1
	ownerDead    = 130
)

// succeeded judges a raw result.
func (f *function) succeeded(rax uint64) bool {
	n := int32(rax)
	switch f.success {
	case ifZero:
		return n == 0
	case ifMutex:
		return n == 0 || n == ownerDead
	case ifBarrier:
		return n == 0 || n == serialThread
	case ifPointer, ifNonzero:
		return rax != 0
	case ifNonnegative:
		return n >= 0
	default:
		return true
	}
}

// onlyOrders reports whether the function is an operation of which a run with one thread has no use: it takes or
// releases a lock, or has no effect.
func (f *function) onlyOrders() bool {
	switch f.op {
	case event.OpMutexLock, event.OpMutexTryLock, event.OpMutexTimedLock, event.OpMutexClockLock, event.OpMutexUnlock,
		event.OpRWReadLock, event.OpRWTryReadLock, event.OpRWTimedReadLock, event.OpRWClockReadLock,
		event.OpRWWriteLock, event.OpRWTryWriteLock, event.OpRWTimedWriteLock, event.OpRWClockWriteLock, event.OpRWUnlock,
		event.OpSpinLock, event.OpSpinTryLock, event.OpSpinUnlock,
		event.OpC11MtxLock, event.OpC11MtxTryLock, event.OpC11MtxTimedLock, event.OpC11MtxUnlock:
		return f.kind == operation
	case event.OpCustom:
		return f.kind == operation && f.enter|f.done|f.after == 0
	}
	return false
}

// resultOf is the value that the function returned, as Sync.Result has it: an int, for all
// but the functions that return pointers.
func (f *function) resultOf(rax uint64) int64 {
	if f.success == ifPointer {
		return int64(rax)
	}
	return int64(int32(rax))
}

// The shapes that most functions have.
func makesObject(op event.SyncOp) function {
	return function{op: op, role: inMemory, object: 1, creates: true}
}

func endsObject(op event.SyncOp) function {
	return function{op: op, role: inMemory, object: 1, destroys: true}
}

func acquiresObject(op event.SyncOp) function {
	return function{op: op, role: inMemory, object: 1, done: event.Acquire}
}

func releasesObject(op event.SyncOp) function {
	return function{op: op, role: inMemory, object: 1, enter: event.Release}
}

func locksMutex(op event.SyncOp) function {
	f := acquiresObject(op)
	f.success = ifMutex
	return f
}

func readsLock(op event.SyncOp) function {
	f := acquiresObject(op)
	f.done |= event.Shared
	return f
}

// waitsOnCondition is a wait on a condition: the mutex is released and, however the wait
// ends, acquired again.
func waitsOnCondition(op event.SyncOp) function {
	return function{
		op: op, role: inMemory, object: 1, second: 2,
		enter: event.ReleaseSecond, done: event.Acquire, after: event.AcquireSecond,
	}
}

func withValue(f function, argument int8) function {
	f.value = argument
	return f
}

func joinsThread(op event.SyncOp) function {
	return function{op: op, role: aThread, object: 1, done: event.Acquire}
}

func startsThread(op event.SyncOp, routine int8) function {
	return function{op: op, role: createdThread, object: 1, enter: event.Release, starts: routine}
}

func actsOnThread(op event.SyncOp, enter event.Effects) function {
	return function{op: op, role: aThread, object: 1, enter: enter}
}

func createsKey(op event.SyncOp) function {
	return function{op: op, role: createdKey, object: 1, value: 2}
}

func deletesKey(op event.SyncOp) function {
	return function{op: op, role: aKey, object: 1}
}

func runsOnce(op event.SyncOp) function {
	return function{op: op, role: inMemory, object: 1, value: 2, once: true, success: always}
}

// known are the functions of POSIX, C11 and glibc that are recognised, by name.
var known = map[string]function{
	"pthread_mutex_init":       makesObject(event.OpMutexInit),
	"pthread_mutex_destroy":    endsObject(event.OpMutexDestroy),
	"pthread_mutex_lock":       locksMutex(event.OpMutexLock),
	"pthread_mutex_trylock":    locksMutex(event.OpMutexTryLock),
	"pthread_mutex_timedlock":  locksMutex(event.OpMutexTimedLock),
	"pthread_mutex_clocklock":  locksMutex(event.OpMutexClockLock),
	"pthread_mutex_unlock":     releasesObject(event.OpMutexUnlock),
	"pthread_mutex_consistent": {op: event.OpMutexConsistent, role: inMemory, object: 1},

	"pthread_cond_init":      makesObject(event.OpCondInit),
	"pthread_cond_destroy":   endsObject(event.OpCondDestroy),
	"pthread_cond_wait":      waitsOnCondition(event.OpCondWait),
	"pthread_cond_timedwait": waitsOnCondition(event.OpCondTimedWait),
	"pthread_cond_clockwait": waitsOnCondition(event.OpCondClockWait),
	"pthread_cond_signal":    releasesObject(event.OpCondSignal),
	"pthread_cond_broadcast": releasesObject(event.OpCondBroadcast),

	"pthread_rwlock_init":        makesObject(event.OpRWInit),
	"pthread_rwlock_destroy":     endsObject(event.OpRWDestroy),
	"pthread_rwlock_rdlock":      readsLock(event.OpRWReadLock),
	"pthread_rwlock_tryrdlock":   readsLock(event.OpRWTryReadLock),
	"pthread_rwlock_timedrdlock": readsLock(event.OpRWTimedReadLock),
	"pthread_rwlock_clockrdlock": readsLock(event.OpRWClockReadLock),
	"pthread_rwlock_wrlock":      acquiresObject(event.OpRWWriteLock),
	"pthread_rwlock_trywrlock":   acquiresObject(event.OpRWTryWriteLock),
	"pthread_rwlock_timedwrlock": acquiresObject(event.OpRWTimedWriteLock),
	"pthread_rwlock_clockwrlock": acquiresObject(event.OpRWClockWriteLock),
	"pthread_rwlock_unlock":      releasesObject(event.OpRWUnlock),

	"pthread_spin_init":    makesObject(event.OpSpinInit),
	"pthread_spin_destroy": endsObject(event.OpSpinDestroy),
	"pthread_spin_lock":    acquiresObject(event.OpSpinLock),
	"pthread_spin_trylock": acquiresObject(event.OpSpinTryLock),
	"pthread_spin_unlock":  releasesObject(event.OpSpinUnlock),

	"soba_init": {op: event.OpSoftBarrierInit, role: theFunction, success: always, hint: &hint{arguments: true}},
	"soba_wait": {op: event.OpSoftBarrierWait, role: theFunction, success: always, hint: &hint{arguments: true}},
	"pcs_enter": {op: event.OpSectionEnter, role: theFunction, success: always},
	"pcs_exit":  {op: event.OpSectionExit, role: theFunction, success: always},

	"pthread_barrier_init":    withValue(makesObject(event.OpBarrierInit), 3),
	"pthread_barrier_destroy": endsObject(event.OpBarrierDestroy),
	"pthread_barrier_wait": {
		op: event.OpBarrierWait, role: inMemory, object: 1, success: ifBarrier,
		enter: event.Release, done: event.Acquire,
	},

	"sem_init":      withValue(makesObject(event.OpSemInit), 3),
	"sem_destroy":   endsObject(event.OpSemDestroy),
	"sem_open":      {op: event.OpSemOpen, role: aName, object: 1, success: ifPointer},
	"sem_close":     {op: event.OpSemClose, role: inMemory, object: 1},
	"sem_unlink":    {op: event.OpSemUnlink, role: aName, object: 1},
	"sem_wait":      acquiresObject(event.OpSemWait),
	"sem_trywait":   acquiresObject(event.OpSemTryWait),
	"sem_timedwait": acquiresObject(event.OpSemTimedWait),
	"sem_clockwait": acquiresObject(event.OpSemClockWait),
	"sem_post":      releasesObject(event.OpSemPost),

	"pthread_once":         runsOnce(event.OpOnce),
	"pthread_create":       startsThread(event.OpCreate, 3),
	"pthread_join":         joinsThread(event.OpJoin),
	"pthread_tryjoin_np":   joinsThread(event.OpTryJoin),
	"pthread_timedjoin_np": joinsThread(event.OpTimedJoin),
	"pthread_clockjoin_np": joinsThread(event.OpClockJoin),
	"pthread_detach":       actsOnThread(event.OpDetach, 0),
	"pthread_cancel":       actsOnThread(event.OpCancel, event.Release),
	"pthread_testcancel":   {op: event.OpTestCancel},
	"pthread_exit":         {op: event.OpPthreadExit, leaves: true},

	"pthread_key_create":  createsKey(event.OpKeyCreate),
	"pthread_key_delete":  deletesKey(event.OpKeyDelete),
	"pthread_setspecific": {kind: setSpecific},

	"mtx_init":      makesObject(event.OpC11MtxInit),
	"mtx_destroy":   endsObject(event.OpC11MtxDestroy),
	"mtx_lock":      locksMutex(event.OpC11MtxLock),
	"mtx_trylock":   locksMutex(event.OpC11MtxTryLock),
	"mtx_timedlock": locksMutex(event.OpC11MtxTimedLock),
	"mtx_unlock":    releasesObject(event.OpC11MtxUnlock),
	"cnd_init":      makesObject(event.OpC11CndInit),
	"cnd_destroy":   endsObject(event.OpC11CndDestroy),
	"cnd_wait":      waitsOnCondition(event.OpC11CndWait),
	"cnd_timedwait": waitsOnCondition(event.OpC11CndTimedWait),
	"cnd_signal":    releasesObject(event.OpC11CndSignal),
	"cnd_broadcast": releasesObject(event.OpC11CndBroadcast),
	"thrd_create":   startsThread(event.OpC11ThrdCreate, 2),
	"thrd_join":     joinsThread(event.OpC11ThrdJoin),
	"thrd_detach":   actsOnThread(event.OpC11ThrdDetach, 0),
	"thrd_exit":     {op: event.OpC11ThrdExit, leaves: true},
	"call_once":     runsOnce(event.OpC11CallOnce),
	"tss_create":    createsKey(event.OpC11TssCreate),
	"tss_delete":    deletesKey(event.OpC11TssDelete),
	"tss_set":       {kind: setSpecific},

	// How functions are left without returning.
	"longjmp":           {kind: jump},
	"_longjmp":          {kind: jump},
	"siglongjmp":        {kind: jump},
	"__longjmp_chk":     {kind: jump},
	"__libc_longjmp":    {kind: jump},
	"__libc_siglongjmp": {kind: jump},
	"__cxa_begin_catch": {kind: catch},

	"syscall": {kind: wrapper},

	// Where a thread begins to run the destructors of its keys: in glibc,
	// exported and not, and in musl.
	"__call_tls_dtors":        {kind: threadEnd},
	"__nptl_deallocate_tsd":   {kind: threadEnd},
	"__pthread_tsd_run_dtors": {kind: threadEnd},
}

// lookUpSymbol finds the function that a symbol names. The names that C libraries use
// among themselves begin with underscores ("__pthread_mutex_lock").
func lookUpSymbol(symbol string) (function, bool) {
	f, ok := known[symbol]
	if !ok && strings.HasPrefix(symbol, "__") {
		if f, ok = known[strings.TrimLeft(symbol, "_")]; ok && !strings.HasPrefix(symbol, "__pthread_") && !strings.HasPrefix(symbol, "___pthread_") {
			return function{}, false
		}
	}
	f.name = symbol
	return f, ok
}

// Operation is the operation that a function of POSIX, C11 or glibc is, by its
// symbol; false for any other symbol.
func Operation(symbol string) (event.SyncOp, bool) {
	f, ok := lookUpSymbol(symbol)
	return f.op, ok && f.kind == operation && f.op != event.OpNone
}
