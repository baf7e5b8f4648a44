package sched

import "fmt"

// How threads of an epoch-parallel replica go on in their steps, and come out of them.

// begun notes that a thread has begun its once routine, or left it out, as what it
// does next shows: until then another could still come before it.
func (f *OrderFollower) begun(n int) {
	t := f.threads[n]
	if k := len(t.open); k > 0 && t.open[k-1].due {
		t.open[k-1].due = false
		f.advance(n, t.open[k-1].index+1)
	}
}

// inRoutine tells of a thread that goes on from a wait in its once routine, which
// is no part of the operation. It goes on.
func (f *OrderFollower) inRoutine(t *follows, inside bool) bool {
	k := len(t.open)
	if inside || k == 0 || !once(t.open[k-1].Op) || t.left {
		return false
	}
	t.woken, t.stand = false, going
	return true
}

// advance notes that so many of a thread's steps are done.
func (f *OrderFollower) advance(n, steps int) {
	if n < len(f.done) && uint32(steps) > f.done[n] {
		f.done[n], f.changed, f.nudged = uint32(steps), true, false
	}
}

// returned handles a thread that comes out of an operation.
func (f *OrderFollower) returned(n int, result uint64) bool {
	t := f.threads[n]
	if len(t.open) == 0 {
		return true // the child of a fork comes out of its parent's
	}
	o := &t.open[len(t.open)-1]
	if o.Kind == BeginStep && o.index >= 0 && !t.left {
		if !o.rests {
			f.advance(n, o.index+1)
		}
		o.Step, o.index, o.rests = o.rest(), -1, false
	}
	if t.left || t.extra != 0 {
		t.open = t.open[:len(t.open)-1]
		if o.unlocks() {
			t.extra = 0
		}
		return true
	}
	steps := f.log(n).Steps
	if o.index < 0 && t.pos >= len(steps) {
		t.stand, t.ended = held, true
		return false
	}
	if o.index < 0 && !f.claim(n, o) {
		t.stand = held
		return false
	}
	f.finish(n, result)
	return true
}

// claim gives the rest of a step its place, if it is its turn.
func (f *OrderFollower) claim(n int, o *opened) bool {
	t := f.threads[n]
	s := &f.log(n).Steps[t.pos]
	if !s.same(&o.Step) {
		f.leave(n, o.Step.String())
		return true
	}
	if !f.eligible(s) {
		return false
	}
	o.index = t.pos
	t.pos++
	return true
}

// finish completes the step that a thread is in, the innermost.
func (f *OrderFollower) finish(n int, result uint64) {
	t := f.threads[n]
	o := t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
	if t.left || o.index < 0 {
		return
	}
	if s := &f.log(n).Steps[o.index]; s.done && s.Result != result && !Told(s.Number) {
		t.pos = o.index
		f.leave(n, fmt.Sprintf("%s with the result %d", o.String(), int64(result)))
		t.pos = o.index + 1
		return
	}
	f.advance(n, o.index+1)
}

// wake decides about a thread that goes on from a wait in the kernel.
func (f *OrderFollower) wake(n int) bool {
	t := f.threads[n]
	t.woken, t.stand = false, going
	if t.left || len(t.open) == 0 && !f.noticed(n) {
		return true
	}
	if f.signalled(n, true) {
		t.at, t.stand, t.woken, f.changed = AtWake, held, true, true
		return false
	}
	o := &t.open[len(t.open)-1]
	if o.Kind == BeginStep && o.rests {
		o.Step, o.index, o.rests = o.rest(), -1, false
	}
	if o.index >= 0 {
		return true
	}
	t.at = AtWake
	if t.pos >= len(f.log(n).Steps) {
		t.ended, t.stand, t.woken = true, held, true
		return false
	}
	if !f.claim(n, o) {
		t.stand, t.woken = held, true
		return false
	}
	return true
}
