package hybrid

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// innerCall is a futex call outside of operations that the C library made for a lock of its own, because another thread had or
// wanted the lock.
type innerCall struct {
	thread, index int // the index of its operation, or -1 as long as it has not returned
	object        event.ObjectID
	addr          arch.Addr
	wakes         bool
	result        int64
	instructions  uint64 // of the thread
	// met: the other thread was in none of its operations either. Then constraints on the lock's word have the two meet in each
	// run under the schedule. An operation of the other is executed as a whole, so that they do not meet.
	met bool
}

// enterInnerCall takes the issue of a futex call of the C library's own.
func (o *OrderBuilder) enterInnerCall(n int, e *event.Sync) {
	c := innerCall{thread: n, index: -1, object: e.Object, addr: e.Addr, wakes: e.Op == event.OpFutexWake, instructions: e.Instructions}
	if c.wakes {
		for i := range o.innerCalls {
			if w := &o.innerCalls[i]; !w.wakes && w.index < 0 && w.object == c.object {
				w.met, c.met = true, true
			}
		}
		// A thread that has waited for the lock makes the call whether others wait or not.
		if i := o.lastInnerCall(n, c.object); i >= 0 && !o.innerCalls[i].wakes {
			c.met = c.met || o.innerCalls[i].met
		}
	}
	o.innerCalls = append(o.innerCalls, c)
	o.threads[n].inner = true
}

// lastInnerCall is the index of a thread's last call for a lock, or -1.
func (o *OrderBuilder) lastInnerCall(n int, object event.ObjectID) int {
	for i := len(o.innerCalls) - 1; i >= 0; i-- {
		if c := &o.innerCalls[i]; c.thread == n && c.object == object {
			return i
		}
	}
	return -1
}

// leaveInnerCall takes its return; at is the index of its operation. One that did not wait was too late for the call that should
// have woken it.
func (o *OrderBuilder) leaveInnerCall(n, at int, result uint64) {
	i := len(o.innerCalls) - 1
	for o.innerCalls[i].thread != n {
		i--
	}
	c := &o.innerCalls[i]
	c.index, c.result = at, int64(result)
	if c.wakes || c.result != futexChanged {
		return
	}
	for j := i - 1; j >= 0; j-- {
		if w := &o.innerCalls[j]; w.wakes && w.object == c.object && w.thread != n && w.result == 0 {
			w.met, c.met = true, true
			return
		}
	}
}

// dropInnerCalls takes the positions of the calls that a run under the schedule does not make, with what their marks say. Threads
// meet at a lock in an object that the program's operations act on: it is held between operations, or between the parts of one.
func (o *OrderBuilder) dropInnerCalls() {
	gone := map[int]bool{}
	for i := range o.innerCalls {
		c := &o.innerCalls[i]
		c.met = c.met || o.isInObject(c.addr)
		if !c.met && c.index >= 0 {
			o.dropped[c.index], gone[c.index] = true, true
		}
	}
	if len(gone) == 0 {
		return
	}
	for i := range o.marks {
		if m := &o.marks[i]; gone[m.Position] {
			m.Close = false
		}
	}
}

// isInObject reports whether an address is in an object that an operation has acted on. The largest have objectBytes.
func (o *OrderBuilder) isInObject(addr arch.Addr) bool {
	for at := range o.objects {
		if at <= addr && addr-at < objectBytes {
			return true
		}
	}
	return false
}

// objectBytes is the size of pthread_rwlock_t (bits/pthreadtypes-arch.h).
const objectBytes = 56

// ContendsBetween reports whether a thread made a futex call for a lock of the C library's own, outside of operations, between two
// of its instructions, which it does not make under the schedule: then it reaches the second after fewer instructions.
func (o *OrderBuilder) ContendsBetween(thread int, first, second uint64) bool {
	return slices.ContainsFunc(o.innerCalls, func(c innerCall) bool {
		return c.thread == thread && !c.met && first <= c.instructions && c.instructions <= second
	})
}
