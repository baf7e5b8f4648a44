package predict

import (
	"strings"

	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Operations adds the operations of a run's order to a Builder: acquisitions and releases of locks, and
// other operations with the events on which they depend. Where the cause of an operation is not known it
// depends on all that may be: a wait for a semaphore on all posts before, a signal on everything before.
type Operations struct {
	b *Builder
	s *event.Schedule
	// last is the last operation on each object that orders by all earlier ones, and calls that on each
	// descriptor; allCalls stands for the calls that no descriptor orders.
	last  map[event.ObjectID]EventID
	calls map[int64]EventID
	// signals are the last signals of conditions, and sent the operations of each thread of which waits
	// depend on all: arrivals at barriers, posts of semaphores.
	signals map[event.ObjectID]EventID
	sent    map[event.ObjectID][]EventID
	// made are the operations that made threads, and threads their numbers, by the names of their objects.
	made    map[string]EventID
	threads map[string]int
	mutexes []event.ObjectID // by thread, the mutex of its wait on a condition
}

// NewOperations makes an Operations for a schedule, which has the threads and the names of objects.
func NewOperations(b *Builder, s *event.Schedule) *Operations {
	x := &Operations{
		b: b, s: s, last: map[event.ObjectID]EventID{}, calls: map[int64]EventID{}, signals: map[event.ObjectID]EventID{},
		sent: map[event.ObjectID][]EventID{}, made: map[string]EventID{}, threads: map[string]int{},
		mutexes: make([]event.ObjectID, len(s.Threads)),
	}
	for n, name := range s.Threads {
		x.threads[objectOfThread+name] = n
	}
	return x
}

const (
	objectOfThread = "thread:"
	allCalls       = -1
	ownerDead      = 130 // EOWNERDEAD: the mutex was acquired
)

// Facts are facts about an operation that event.Operation does not have.
type Facts struct {
	// Mutex is that of a wait on a condition, and Descriptor the first argument of a system call.
	Mutex      event.ObjectID
	Descriptor int64
}

// Add adds the operation at a position, and returns its event.
func (x *Operations) Add(position int, f Facts) EventID {
	o := &x.s.Operations[position]
	switch o.Part {
	case event.StartPart:
		x.b.After(o.Thread, x.madeBy(objectOfThread+x.s.Threads[o.Thread]))
		return x.b.Event(o.Thread)
	case event.SystemCall:
		return x.addCall(o, f.Descriptor)
	case event.SignalPart:
		for n := range x.s.Threads {
			x.b.After(o.Thread, x.b.Last(n))
		}
		return x.b.Event(o.Thread)
	}
	return x.addOperation(o, f)
}

func (x *Operations) madeBy(object string) EventID {
	if e, ok := x.made[object]; ok {
		return e
	}
	return NoEvent
}

// addCall adds a system call. Calls that move data by one descriptor are in the order of the run, and so are all
// others that have effects; writes to standard output and error are in any order, and calls that the schedule
// answers.
func (x *Operations) addCall(o *event.Operation, descriptor int64) EventID {
	key := int64(allCalls)
	switch {
	case o.Number == linux.Futex || len(o.Writes) > 0 || linux.Has(o.Number, linux.Unordered) || linux.Has(o.Number, linux.EndsThread):
		return x.b.Event(o.Thread)
	case linux.Has(o.Number, linux.MovesData) && !linux.Has(o.Number, linux.BringsInput) && (descriptor == 1 || descriptor == 2):
		return x.b.Event(o.Thread)
	case linux.Has(o.Number, linux.MovesData):
		key = descriptor
	}
	return x.chain(x.calls, key, o.Thread)
}

// chain adds an operation that depends on the one before it of the same key.
func (x *Operations) chain(last map[int64]EventID, key int64, thread int) EventID {
	if before, ok := last[key]; ok {
		x.b.After(thread, before)
	}
	last[key] = x.b.Event(thread)
	return last[key]
}

func (x *Operations) addOperation(o *event.Operation, f Facts) EventID {
	b, n, object := x.b, o.Thread, uint64(o.Object)
	switch o.Op {
	case event.OpMutexLock, event.OpMutexTryLock, event.OpMutexTimedLock, event.OpMutexClockLock,
		event.OpC11MtxLock, event.OpC11MtxTryLock, event.OpC11MtxTimedLock, event.OpSpinLock, event.OpSpinTryLock,
		event.OpRWReadLock, event.OpRWTryReadLock, event.OpRWTimedReadLock, event.OpRWClockReadLock,
		event.OpRWWriteLock, event.OpRWTryWriteLock, event.OpRWTimedWriteLock, event.OpRWClockWriteLock:
		if o.Result == 0 || o.Result == ownerDead {
			return b.Acquire(n, object)
		}
		b.After(n, b.LastAcquisition(object)) // it fails since another thread holds the lock
		return b.Event(n)
	case event.OpMutexUnlock, event.OpC11MtxUnlock, event.OpSpinUnlock, event.OpRWUnlock:
		return b.Release(n, object)
	case event.OpCondSignal, event.OpCondBroadcast, event.OpC11CndSignal, event.OpC11CndBroadcast:
		x.signals[o.Object] = b.Event(n)
		return x.signals[o.Object]
	case event.OpCondWait, event.OpCondTimedWait, event.OpCondClockWait, event.OpC11CndWait, event.OpC11CndTimedWait:
		if o.Part == event.BeginPart {
			x.mutexes[n] = f.Mutex
			return b.Release(n, uint64(f.Mutex))
		}
		if o.Part == event.ResumePart {
			return b.Event(n)
		}
		if signal, ok := x.signals[o.Object]; ok && o.Result == 0 {
			b.After(n, signal)
		}
		return b.Acquire(n, uint64(x.mutexes[n]))
	case event.OpBarrierWait:
		if o.Part == event.BeginPart {
			return x.send(o)
		}
		x.afterAll(n, o.Object)
		return b.Event(n)
	case event.OpSemPost:
		return x.send(o)
	case event.OpSemWait, event.OpSemTryWait, event.OpSemTimedWait, event.OpSemClockWait:
		x.afterAll(n, o.Object)
		return b.Event(n)
	case event.OpCreate, event.OpC11ThrdCreate, event.OpFork:
		e := b.Event(n)
		x.made[x.s.Objects[o.Object]] = e
		return e
	case event.OpJoin, event.OpTryJoin, event.OpTimedJoin, event.OpClockJoin, event.OpC11ThrdJoin:
		if of, ok := x.threads[x.s.Objects[o.Object]]; ok && o.Result == 0 {
			b.After(n, b.Last(of))
		}
		return b.Event(n)
	case event.OpAllocate, event.OpThreadReturn, event.OpPthreadExit, event.OpC11ThrdExit, event.OpTestCancel:
		return b.Event(n)
	}
	if o.Object == 0 || strings.HasPrefix(x.s.Objects[o.Object], objectOfThread) {
		return b.Event(n)
	}
	if before, ok := x.last[o.Object]; ok {
		b.After(n, before)
	}
	x.last[o.Object] = b.Event(n)
	return x.last[o.Object]
}

// send adds an operation on which later waits for its object depend.
func (x *Operations) send(o *event.Operation) EventID {
	e := x.b.Event(o.Thread)
	list := x.sent[o.Object]
	if list == nil {
		list = make([]EventID, len(x.s.Threads))
		for i := range list {
			list[i] = NoEvent
		}
		x.sent[o.Object] = list
	}
	list[o.Thread] = e
	return e
}

// afterAll makes the next event of a thread depend on the last of each thread that was sent.
func (x *Operations) afterAll(thread int, object event.ObjectID) {
	for _, e := range x.sent[object] {
		x.b.After(thread, e)
	}
}
