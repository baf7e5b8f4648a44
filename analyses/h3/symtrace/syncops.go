package symtrace

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// syncOperation is a synchronization operation on its way.
type syncOperation struct {
	*functionCall
	thread         *threadExec
	object, second uint64
	peer           *threadExec
	waitsAlready   bool // before the checkpoint
}

// addSyncEvent adds an event of the operation.
func (o *syncOperation) addSyncEvent(w *threadExec, kind model.Kind, object uint64) *model.Event {
	return w.addEvent(model.Event{Kind: kind, Object: w.pass.objectID(object)}, true)
}

// beginOperation adds the events that precede any wait in the operation.
func (o *syncOperation) beginOperation() { o.addEntryEvents(o.thread) }

func (o *syncOperation) addEntryEvents(w *threadExec) {
	if o.waitsAlready {
		return
	}
	switch o.Op {
	case event.OpMutexUnlock, event.OpRWUnlock, event.OpSpinUnlock, event.OpC11MtxUnlock:
		w.pass.lockKinds[o.object] = model.LockKindOf(o.Op)
		o.addSyncEvent(w, model.Unlock, o.object)
	case event.OpCondWait, event.OpCondTimedWait, event.OpCondClockWait, event.OpC11CndWait:
		w.pass.lockKinds[o.second] = model.Mutex
		o.addSyncEvent(w, model.Sleep, o.object)
		o.addSyncEvent(w, model.Unlock, o.second)
	case event.OpCondSignal, event.OpC11CndSignal:
		o.addSyncEvent(w, model.Signal, o.object)
	case event.OpCondBroadcast, event.OpC11CndBroadcast:
		o.addSyncEvent(w, model.Broadcast, o.object)
	case event.OpSemPost:
		o.addSyncEvent(w, model.Post, o.object)
	case event.OpBarrierWait:
		o.addSyncEvent(w, model.Arrive, o.object).Count = w.pass.barrierCount(w, o.object)
	case event.OpCreate:
		o.createPeer(w)
	}
}

// createPeer makes a thread.
func (o *syncOperation) createPeer(w *threadExec) {
	arg, start := w.callArgument(4), w.callArgument(3)
	child := w.pass.createThread(w, start, arg)
	o.peer = child
	w.addEvent(model.Event{Kind: model.Fork, Peer: child.number}, true)
	w.startStretch()
	var pointer [8]byte
	copy(pointer[:], wordBytes(child.threadPointer()))
	w.memory.Write(o.object, pointer[:])
	w.noteAccess(o.object, 8, true)
}

func wordBytes(x uint64) []byte {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(x >> (8 * i))
	}
	return b
}

// possibleEnds are how the operation can have ended, the likely one first.
func (o *syncOperation) possibleEnds() []func(*threadExec) {
	done := func(w *threadExec) { o.completeWith(w, 0) }
	failed := func(status unix.Errno) func(*threadExec) {
		return func(w *threadExec) { o.completeWith(w, status) }
	}
	switch o.Op {
	case event.OpMutexTryLock, event.OpRWTryReadLock, event.OpRWTryWriteLock, event.OpSpinTryLock:
		return []func(*threadExec){done, failed(unix.EBUSY)}
	case event.OpMutexTimedLock, event.OpRWTimedReadLock, event.OpRWTimedWriteLock, event.OpCondTimedWait, event.OpCondClockWait:
		return []func(*threadExec){done, failed(unix.ETIMEDOUT)}
	}
	return []func(*threadExec){done}
}

// completeWith adds the events up to the operation's end, and its result.
func (o *syncOperation) completeWith(w *threadExec, status unix.Errno) {
	o.addEntryEvents(w)
	from := w.at
	w.at = o.returnAt
	switch o.Op {
	case event.OpMutexLock, event.OpMutexTryLock, event.OpMutexTimedLock, event.OpSpinLock, event.OpSpinTryLock, event.OpRWWriteLock,
		event.OpRWTryWriteLock, event.OpRWTimedWriteLock, event.OpC11MtxLock:
		o.addLockEvent(w, status, false)
	case event.OpRWReadLock, event.OpRWTryReadLock, event.OpRWTimedReadLock:
		o.addLockEvent(w, status, true)
	case event.OpCondWait, event.OpCondTimedWait, event.OpCondClockWait, event.OpC11CndWait:
		w.pass.lockKinds[o.second] = model.Mutex
		o.addSyncEvent(w, model.Wake, o.object).TimedOut = status != 0
		o.addSyncEvent(w, model.Lock, o.second)
	case event.OpSemWait:
		o.addSyncEvent(w, model.Take, o.object)
	case event.OpBarrierWait:
		o.addSyncEvent(w, model.Leave, o.object)
	case event.OpJoin:
		o.joinPeer(w)
	}
	if o.Op != event.OpJoin && o.Op != event.OpCreate {
		w.assumeNotFreed(o.object)
	}
	if o.second != 0 {
		w.assumeNotFreed(o.second)
	}
	w.at = from
	w.returnFromCall(o.functionCall, w.pass.pool.Word(uint64(status), 64))
}

func (o *syncOperation) addLockEvent(w *threadExec, status unix.Errno, shared bool) {
	w.pass.lockKinds[o.object] = model.LockKindOf(o.Op)
	kind := model.Lock
	if status != 0 {
		kind = model.TryFailed
	}
	o.addSyncEvent(w, kind, o.object).Shared = shared
}

// joinPeer waits for a thread: its writes are known afterwards.
func (o *syncOperation) joinPeer(w *threadExec) {
	child := w.pass.byPointer[o.object]
	if child == nil {
		return
	}
	w.addEvent(model.Event{Kind: model.Join, Peer: child.number}, true)
	w.pass.finishThread(child)
	w.joinWrites(child)
	if child.cutShort {
		w.endUntilNextPass("it waits for the end of a thread that is not known yet")
	}
}
