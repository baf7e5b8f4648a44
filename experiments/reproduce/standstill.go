package reproduce

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/reproduce/symtrace"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// standstill is a machine between two slices, where it is found out how far threads have
// come in calls.
type standstill struct {
	*heddle.Halt
	// asleep are the objects that a thread waits for.
	asleep map[uint64]bool
}

func (h *standstill) peek(addr uint64, b []byte) int { return h.Peek(event.Addr(addr), b) }

func (h *standstill) word(addr uint64) uint32 {
	var b [4]byte
	h.peek(addr, b[:])
	return binary.LittleEndian.Uint32(b[:])
}

// certain tells that it is known how far a thread has come in a call: one that changes
// nothing that others see, or a synchronization operation in which it waits, or which
// tells by its mutex. It says in the call what is left of it.
func (h *standstill) certain(t *heddle.Stand, in *symtrace.Standing) bool {
	switch {
	case in.Role == symtrace.Constant || in.Role == symtrace.Print:
		return in.Stream == 0 // of a stream in memory it is followed
	case in.Role != symtrace.Synchronize || !t.Operates:
		return false
	}
	at, waits := t.Arguments[0], t.Waits && t.Call == unix.SYS_FUTEX
	switch in.Op {
	case event.OpMutexLock, event.OpMutexUnlock:
		return h.locking(t, in)
	case event.OpCondWait:
		return t.Asked && t.Call == unix.SYS_FUTEX && h.sleeping(t, in)
	case event.OpBarrierWait: // it waits for the barrier in the barrier itself
		const barrier = 32
		in.Begun = true
		return waits && t.First >= at && t.First < at+barrier
	case event.OpSemWait:
		return waits && h.word(at) == 0 && h.alone(at)
	case event.OpRWReadLock, event.OpRWWriteLock:
		return waits && h.alone(at)
	case event.OpJoin:
		return waits
	}
	return false
}

// alone tells that no other thread waits for an object: whose turn it is next is known.
func (h *standstill) alone(object uint64) bool {
	first := !h.asleep[object]
	h.asleep[object] = true
	return first
}

// Where glibc has a mutex's owner, which is noted behind the lock and before it is given
// back, and its kind.
const (
	mutexOwner, mutexKind = 8, 16
	mutexRecursive        = 1
)

// locking finds out whether a thread that locks or unlocks a mutex has done so. One that
// sleeps until it is free goes on only when unlocking it wakes that thread, and not one
// that came later: a schedule that begins there could not be followed.
func (h *standstill) locking(t *heddle.Stand, in *symtrace.Standing) bool {
	mutex := in.Arguments[0]
	locked, owner := h.word(mutex), event.ThreadID(h.word(mutex+mutexOwner))
	switch {
	case locked != 0 && owner == 0, owner == t.Thread && h.word(mutex+mutexKind)&3 == mutexRecursive:
		return false
	case t.Waits:
		return false
	}
	if (owner == t.Thread) == (in.Op == event.OpMutexLock) {
		in.Role = symtrace.Constant // nothing is left
	}
	return true
}

// sleeping finds out whether a thread that waits on a condition sleeps. If it was woken,
// what is left is to lock the mutex.
func (h *standstill) sleeping(t *heddle.Stand, in *symtrace.Standing) bool {
	const condition = 48
	within := t.First >= t.Arguments[0] && t.First < t.Arguments[0]+condition
	if in.Begun = within && t.Waits; in.Begun {
		return true
	}
	in.Op, in.Arguments[0] = event.OpMutexLock, t.Arguments[1]
	return (within || t.First == t.Arguments[1]) && h.locking(t, in)
}
