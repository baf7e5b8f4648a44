package partialorder

import (
	"fmt"

	"github.com/heddle-dmt/heddle/sched/follow"
)

// How threads of an epoch-parallel replica continue in their steps and complete them.

// passEnclosing completes the begin of a once routine when the thread reaches its next point: only
// then it is known that the routine has been called or left out, and until then another thread
// could still come before it.
func (f *Replayer) passEnclosing(n int) {
	t := f.threads[n]
	if k := len(t.open); k > 0 && t.open[k-1].beginPending {
		t.open[k-1].beginPending = false
		f.advanceClock(n, t.open[k-1].index+1)
	}
}

// continueInRoutine lets a thread continue after a wait in its once routine, which is not part of
// the operation. It returns false if the thread is in none.
func (f *Replayer) continueInRoutine(t *replayedThread, inside bool) bool {
	k := len(t.open)
	if inside || k == 0 || !follow.EnclosesOperations(t.open[k-1].Op) || t.diverged {
		return false
	}
	t.state.become(running)
	return true
}

// advanceClock raises the number of a thread's complete steps.
func (f *Replayer) advanceClock(n, steps int) {
	if n < len(f.clock) && uint32(steps) > f.clock[n] {
		f.clock[n], f.progressed, f.endedWaits = uint32(steps), true, false
	}
}

// completeReturn handles a thread that returns from an operation.
func (f *Replayer) completeReturn(n int, result uint64) bool {
	t := f.threads[n]
	if len(t.open) == 0 {
		return true // the child of a fork returns from its parent's
	}
	o := &t.open[len(t.open)-1]
	if o.Kind == BeginStep && o.index >= 0 && !t.diverged {
		if !o.beginDone {
			f.advanceClock(n, o.index+1)
		}
		o.Step, o.index, o.beginDone = o.remainder(), -1, false
	}
	if t.diverged || t.extraLock != 0 {
		t.open = t.open[:len(t.open)-1]
		if o.isUnlock() {
			t.extraLock = 0
		}
		return true
	}
	steps := f.logOf(n).Steps
	if o.index < 0 && t.position >= len(steps) {
		t.state.become(heldAtReturn)
		t.epochOver = true
		return false
	}
	if o.index < 0 && !f.claimStep(n, o) {
		t.state.become(heldAtReturn)
		return false
	}
	f.finishInnermost(n, result)
	return true
}

// claimStep gives the remainder of a step its place, if it is its turn.
func (f *Replayer) claimStep(n int, o *openStep) bool {
	t := f.threads[n]
	s := &f.logOf(n).Steps[t.position]
	if !s.matches(&o.Step) {
		f.divergeAt(n, o.Step.String())
		return true
	}
	if !f.isEligible(s) {
		return false
	}
	o.index = t.position
	t.position++
	return true
}

// finishInnermost completes the innermost open step of a thread.
func (f *Replayer) finishInnermost(n int, result uint64) {
	t := f.threads[n]
	o := t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
	if t.diverged || o.index < 0 {
		return
	}
	if s := &f.logOf(n).Steps[o.index]; s.complete && s.Result != result && !IsTimeDependent(s.Number) {
		t.position = o.index
		f.divergeAt(n, fmt.Sprintf("%s with the result %d", o.String(), int64(result)))
		t.position = o.index + 1
		return
	}
	f.advanceClock(n, o.index+1)
}

// continueAfterWait decides whether a thread may continue after a wait in the kernel.
func (f *Replayer) continueAfterWait(n int) bool {
	t := f.threads[n]
	t.state.become(running)
	if t.diverged || len(t.open) == 0 && !f.nextIsNotice(n) {
		return true
	}
	if f.nextIsSignal(n, true) {
		t.state.become(heldAfterWait)
		f.progressed = true
		return false
	}
	o := &t.open[len(t.open)-1]
	if o.Kind == BeginStep && o.beginDone {
		o.Step, o.index, o.beginDone = o.remainder(), -1, false
	}
	if o.index >= 0 {
		return true
	}
	if t.position >= len(f.logOf(n).Steps) {
		t.state.become(heldAfterWait)
		t.epochOver = true
		return false
	}
	if !f.claimStep(n, o) {
		t.state.become(heldAfterWait)
		return false
	}
	return true
}
