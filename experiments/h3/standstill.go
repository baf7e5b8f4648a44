package h3

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// haltedMachine is a machine between two quanta, where it is found out how far threads have
// come in calls.
type haltedMachine struct {
	*PausedRun
	// asleep are the objects that a thread waits for.
	asleep map[uint64]bool
}

func (h *haltedMachine) peekMemory(addr uint64, b []byte) int { return h.Peek(arch.Addr(addr), b) }

func (h *haltedMachine) readWord(addr uint64) uint32 {
	var b [4]byte
	h.peekMemory(addr, b[:])
	return binary.LittleEndian.Uint32(b[:])
}

// resolveCall reports whether it is known how far a thread has come in a call: a call without
// effects that others can observe, or a synchronization operation in which it waits, or whose
// progress its mutex shows. It changes the call to the part that is left of it.
func (h *haltedMachine) resolveCall(t *Stand, in *symtrace.PendingCall) bool {
	switch {
	case in.Role == symtrace.Constant || in.Role == symtrace.Print:
		return in.Stream == 0 // of a stream in memory it is followed
	case in.Role != symtrace.Synchronize || !t.Operates:
		return false
	}
	at, waits := t.Arguments[0], t.Waits && t.Call == unix.SYS_FUTEX
	switch in.Op {
	case event.OpMutexLock, event.OpMutexUnlock:
		return h.resolveMutexCall(t, in)
	case event.OpCondWait:
		return t.Asked && t.Call == unix.SYS_FUTEX && h.resolveConditionWait(t, in)
	case event.OpBarrierWait: // it waits for the barrier in the barrier itself
		const barrier = 32
		in.Waits = true
		return waits && t.First >= at && t.First < at+barrier
	case event.OpSemWait:
		return waits && h.readWord(at) == 0 && h.isOnlyWaiter(at)
	case event.OpRWReadLock, event.OpRWWriteLock:
		return waits && h.isOnlyWaiter(at)
	case event.OpJoin:
		return waits
	}
	return false
}

// isOnlyWaiter reports whether no other thread waits for an object: then the next thread to get it
// is known.
func (h *haltedMachine) isOnlyWaiter(object uint64) bool {
	first := !h.asleep[object]
	h.asleep[object] = true
	return first
}

// Where glibc keeps a mutex's owner, which is set after the lock and cleared before the unlock, and
// its kind.
const (
	mutexOwner, mutexKind = 8, 16
	mutexRecursive        = 1
)

// resolveMutexCall determines whether a thread that locks or unlocks a mutex has done so. A thread
// that sleeps until the mutex is free continues only when unlocking it wakes that thread, and not
// one that came later: a schedule that begins there could not be followed.
func (h *haltedMachine) resolveMutexCall(t *Stand, in *symtrace.PendingCall) bool {
	mutex := in.Arguments[0]
	locked, owner := h.readWord(mutex), arch.ThreadID(h.readWord(mutex+mutexOwner))
	switch {
	case locked != 0 && owner == 0, owner == t.Thread && h.readWord(mutex+mutexKind)&3 == mutexRecursive:
		return false
	case t.Waits:
		return false
	}
	if (owner == t.Thread) == (in.Op == event.OpMutexLock) {
		in.Role = symtrace.Constant // nothing is left
	}
	return true
}

// resolveConditionWait determines whether a thread that waits on a condition sleeps. If it was
// woken, it still has to lock the mutex.
func (h *haltedMachine) resolveConditionWait(t *Stand, in *symtrace.PendingCall) bool {
	const condition = 48
	within := t.First >= t.Arguments[0] && t.First < t.Arguments[0]+condition
	if in.Waits = within && t.Waits; in.Waits {
		return true
	}
	in.Op, in.Arguments[0] = event.OpMutexLock, t.Arguments[1]
	return (within || t.First == t.Arguments[1]) && h.resolveMutexCall(t, in)
}
