package sched

import (
	"math"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Signals of an epoch-parallel replica: no thread gets one but at its place in the
// order, unless it has diverged.

// HoldsSignals implements SignalHolder.
func (f *OrderFollower) HoldsSignals(id event.ThreadID) bool {
	n, ok := f.numbers[id]
	return !ok || !f.threads[n].left
}

// signalled tells whether a thread's next step is a signal: one that comes while it
// waits, or one that does not.
func (f *OrderFollower) signalled(n int, within bool) bool {
	t, steps := f.threads[n], f.log(n).Steps
	return !t.left && !t.ended && t.pos < len(steps) && steps[t.pos].Kind == SignalStep && steps[t.pos].Within == within
}

// awaited tells whether a thread's next step is a signal, or a call that one ends.
func (f *OrderFollower) awaited(n int) bool {
	t, steps := f.threads[n], f.log(n).Steps
	return f.signalled(n, false) || f.signalled(n, true) || !t.left && t.pos < len(steps) && steps[t.pos].Interrupted
}

// interrupted tells whether the call without a place in the order that a thread is
// before is one that a signal has ended, which has one.
func (f *OrderFollower) interrupted(n int) bool {
	t, steps := f.threads[n], f.log(n).Steps
	return !t.left && t.pos < len(steps) && steps[t.pos].Interrupted && steps[t.pos].same(&t.next) &&
		t.issued-t.base == steps[t.pos].Place
}

// Handled implements HandlerController: a thread goes on in an operation behind a handler
// when it is its turn.
func (f *OrderFollower) Handled(id event.ThreadID, _ uint64) {
	if n, ok := f.numbers[id]; ok {
		t := f.threads[n]
		t.helped = leaveHandler(&t.open)
	}
}

// restarting tells whether the system call that a thread is before is one that a signal
// has interrupted, which is made again.
func (f *OrderFollower) restarting(n int) bool {
	t := f.threads[n]
	if t.next.Kind != CallStep || !f.signalled(n, true) {
		return false
	}
	s := &f.log(n).Steps[t.pos]
	return !s.notice() && (!t.next.free() || s.Place == 0 || s.Place == t.issued-t.base)
}

// callAgain has a thread get its signal in the system call that it is before.
func (f *OrderFollower) callAgain(g *Gate, n int) bool {
	t := f.threads[n]
	if !f.deliver(g, n) {
		return false
	}
	t.stand = going
	if !t.next.free() {
		t.open = append(t.open, opened{Step: t.next, index: -1})
	}
	return true
}

// deliver has a thread get its signal if that is eligible, and holds it otherwise if
// it does not wait in the kernel.
func (f *OrderFollower) deliver(g *Gate, n int) bool {
	t := f.threads[n]
	if t.left {
		t.stand = going
		return true
	}
	s := &f.log(n).Steps[t.pos]
	if !f.eligible(s) {
		if !s.Within {
			t.stand, t.at, t.next = held, AtInstruction, Step{Kind: SignalStep}
		}
		return false
	}
	if !s.Within {
		t.stand = going
	}
	if !s.Within {
		t.base += s.Place
	}
	t.pos++
	t.free = 0
	f.advance(n, t.pos)
	if s.notice() {
		return true
	}
	t.writes = s.Writes[1:]
	g.Affect(Effect{Kind: Deliver, Thread: t.id, Writes: s.Writes[:1]})
	return true
}

// deliverWithin has a thread get its signal that waits in the kernel, or is held behind
// its wait.
func (f *OrderFollower) deliverWithin(g *Gate, n int) {
	t := f.threads[n]
	notice := f.log(n).Steps[t.pos].notice()
	if !f.deliver(g, n) || t.stand != held {
		return
	}
	if !notice {
		t.stand, t.woken = going, false
	} else if !f.wake(n) {
		return
	}
	g.Release(t.id, 0)
}

// tell has a system call that has ended have written what it wrote in the first replica.
func (f *OrderFollower) tell(g *Gate, n int) {
	t := f.threads[n]
	if len(t.writes) > 0 {
		g.Affect(Effect{Kind: Overwrite, Thread: t.id, Writes: t.writes})
	}
	t.writes = nil
}

// Signalled implements SignalController.
func (f *OrderFollower) Signalled(_ *Gate, e *event.Signal) {
	n, ok := f.numbers[e.Thread]
	if !ok || len(e.Info) == 0 {
		return
	}
	t := f.threads[n]
	t.base = e.Instructions
	switch {
	case inOperation(t.open):
		t.open = append(t.open, handler)
		t.handling = true
	case inCall(t.open):
		t.restarts = true // or else Called follows
	default:
		nestHandler(&t.open)
	}
}

// again leaves the system call that a thread makes again behind a signal.
func (f *OrderFollower) again(t *follows) {
	if t.restarts {
		t.restarts = false
		t.open = t.open[:len(t.open)-1]
	}
}

// Points implements Stopper.
func (f *OrderFollower) Points() []event.Addr { return nil }

// Left implements Stopper: a thread stops where its next step is a signal.
func (f *OrderFollower) Left(id event.ThreadID, done uint64) (soon, exactly uint64, accesses uint8) {
	if n, ok := f.numbers[id]; ok {
		if exactly, stops := f.left(n, done); stops {
			return math.MaxUint64, exactly, 0
		}
	}
	return math.MaxUint64, math.MaxUint64, 0
}

// left is how many instructions are left to where a thread gets a signal, if it gets one
// outside of operations and calls.
func (f *OrderFollower) left(n int, done uint64) (exactly uint64, stops bool) {
	t := f.threads[n]
	if !f.signalled(n, false) || inOperation(t.open) {
		return 0, false
	}
	at := t.base + f.log(n).Steps[t.pos].Place
	return at - min(at, done), true
}

// Reached implements Stopper.
func (f *OrderFollower) Reached(*Gate, event.ThreadID, uint64) {}
