package symtrace

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// operation is a synchronization operation on its way.
type operation struct {
	*called
	w              *walker
	object, second uint64
	peer           *walker
	begun          bool // before the checkpoint
}

// at adds an event of the operation.
func (o *operation) at(w *walker, kind model.Kind, object uint64) *model.Event {
	return w.add(model.Event{Kind: kind, Object: w.b.objectID(object)}, true)
}

// begin adds what has happened when the operation begins.
func (o *operation) begin() { o.enter(o.w) }

func (o *operation) enter(w *walker) {
	if o.begun {
		return
	}
	switch o.Op {
	case event.OpMutexUnlock, event.OpRWUnlock, event.OpSpinUnlock, event.OpC11MtxUnlock:
		w.b.lockKinds[o.object] = kindOf(o.Op)
		o.at(w, model.Unlock, o.object)
	case event.OpCondWait, event.OpCondTimedWait, event.OpCondClockWait, event.OpC11CndWait:
		w.b.lockKinds[o.second] = mutex
		o.at(w, model.Sleep, o.object)
		o.at(w, model.Unlock, o.second)
	case event.OpCondSignal, event.OpC11CndSignal:
		o.at(w, model.Signal, o.object)
	case event.OpCondBroadcast, event.OpC11CndBroadcast:
		o.at(w, model.Broadcast, o.object)
	case event.OpSemPost:
		o.at(w, model.Post, o.object)
	case event.OpBarrierWait:
		o.at(w, model.Arrive, o.object).Count = w.b.barrier(w, o.object)
	case event.OpCreate:
		o.fork(w)
	}
}

// fork makes a thread.
func (o *operation) fork(w *walker) {
	arg, start := w.argument(4), w.argument(3)
	child := w.b.create(w, start, arg)
	o.peer = child
	w.add(model.Event{Kind: model.Fork, Peer: child.number}, true)
	w.stretch()
	var pointer [8]byte
	copy(pointer[:], wordBytes(child.pointer()))
	w.mem.write(o.object, pointer[:])
	w.touched(o.object, 8, true)
}

func wordBytes(x uint64) []byte {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(x >> (8 * i))
	}
	return b
}

// ways are how the operation can have ended, the likely one first.
func (o *operation) ways() []func(*walker) {
	done := func(w *walker) { o.complete(w, 0) }
	failed := func(status unix.Errno) func(*walker) {
		return func(w *walker) { o.complete(w, status) }
	}
	switch o.Op {
	case event.OpMutexTryLock, event.OpRWTryReadLock, event.OpRWTryWriteLock, event.OpSpinTryLock:
		return []func(*walker){done, failed(unix.EBUSY)}
	case event.OpMutexTimedLock, event.OpRWTimedReadLock, event.OpRWTimedWriteLock, event.OpCondTimedWait, event.OpCondClockWait:
		return []func(*walker){done, failed(unix.ETIMEDOUT)}
	}
	return []func(*walker){done}
}

// complete adds what happens up to the operation's end, with its result.
func (o *operation) complete(w *walker, status unix.Errno) {
	o.enter(w)
	from := w.at
	w.at = o.end
	switch o.Op {
	case event.OpMutexLock, event.OpMutexTryLock, event.OpMutexTimedLock, event.OpSpinLock, event.OpSpinTryLock, event.OpRWWriteLock,
		event.OpRWTryWriteLock, event.OpRWTimedWriteLock, event.OpC11MtxLock:
		o.locks(w, status, false)
	case event.OpRWReadLock, event.OpRWTryReadLock, event.OpRWTimedReadLock:
		o.locks(w, status, true)
	case event.OpCondWait, event.OpCondTimedWait, event.OpCondClockWait, event.OpC11CndWait:
		w.b.lockKinds[o.second] = mutex
		o.at(w, model.Wake, o.object).TimedOut = status != 0
		o.at(w, model.Lock, o.second)
	case event.OpSemWait:
		o.at(w, model.Take, o.object)
	case event.OpBarrierWait:
		o.at(w, model.Leave, o.object)
	case event.OpJoin:
		o.join(w)
	}
	if o.Op != event.OpJoin && o.Op != event.OpCreate {
		w.unfreed(o.object)
	}
	if o.second != 0 {
		w.unfreed(o.second)
	}
	w.at = from
	w.returns(o.called, w.b.pool.Word(uint64(status), 64))
}

func (o *operation) locks(w *walker, status unix.Errno, shared bool) {
	w.b.lockKinds[o.object] = kindOf(o.Op)
	kind := model.Lock
	if status != 0 {
		kind = model.TryFailed
	}
	o.at(w, kind, o.object).Shared = shared
}

// join waits for a thread: what it has written is known behind it.
func (o *operation) join(w *walker) {
	child := w.b.byPointer[o.object]
	if child == nil {
		return
	}
	w.add(model.Event{Kind: model.Join, Peer: child.number}, true)
	w.b.finish(child)
	w.merge(child)
	if child.starved {
		w.starves("it waits for the end of a thread that is not known yet")
	}
}
