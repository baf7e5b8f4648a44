package partialorder

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// Signals in an epoch-parallel replica: a thread gets a signal only at its place in the order,
// unless it has diverged.

// HoldsSignals implements Controller.
func (f *Replayer) HoldsSignals(id arch.ThreadID) bool {
	n, ok := f.byID[id]
	return !ok || !f.threads[n].diverged
}

// nextIsSignal reports whether a thread's next step is a signal, one that arrives within a wait
// or another one.
func (f *Replayer) nextIsSignal(n int, within bool) bool {
	t, steps := f.threads[n], f.logOf(n).Steps
	return !t.diverged && !t.epochOver && t.position < len(steps) && steps[t.position].Kind == SignalStep && steps[t.position].Within == within
}

// nextIsAwaited reports whether a thread's next step is a signal, or a call that a signal ends.
func (f *Replayer) nextIsAwaited(n int) bool {
	t, steps := f.threads[n], f.logOf(n).Steps
	return f.nextIsSignal(n, false) || f.nextIsSignal(n, true) || !t.diverged && t.position < len(steps) && steps[t.position].Interrupted
}

// nextIsInterruptedCall reports whether the unordered call that a thread is about to make is one
// that a signal has ended, which has a place in the order.
func (f *Replayer) nextIsInterruptedCall(n int) bool {
	t, steps := f.threads[n], f.logOf(n).Steps
	return !t.diverged && t.position < len(steps) && steps[t.position].Interrupted && steps[t.position].matches(&t.next) &&
		t.issuedAt-t.lastStepAt == steps[t.position].Place
}

// noteHandlerReturn handles the return from a signal handler: the thread continues in its operation
// when it is its turn.
func (f *Replayer) noteHandlerReturn(id arch.ThreadID) {
	if n, ok := f.byID[id]; ok {
		t := f.threads[n]
		t.stopsEarly = leaveHandler(&t.open)
	}
}

// nextIsRestartedCall reports whether the system call that a thread is about to make is one that a
// signal interrupted and that was restarted.
func (f *Replayer) nextIsRestartedCall(n int) bool {
	t := f.threads[n]
	if t.next.Kind != CallStep || !f.nextIsSignal(n, true) {
		return false
	}
	s := &f.logOf(n).Steps[t.position]
	return !s.isNotice() && (!t.next.isUnordered() || s.Place == 0 || s.Place == t.issuedAt-t.lastStepAt)
}

// beginInterruptedCall delivers a thread's signal in the system call that it is about to make.
func (f *Replayer) beginInterruptedCall(g *sched.Gate, n int) bool {
	t := f.threads[n]
	if !f.deliverSignal(g, n) {
		return false
	}
	t.state.become(running)
	if !t.next.isUnordered() {
		t.open = append(t.open, openStep{Step: t.next, index: -1})
	}
	return true
}

// deliverSignal delivers a thread's signal if it is eligible. Otherwise the thread is held, unless
// it waits in the kernel.
func (f *Replayer) deliverSignal(g *sched.Gate, n int) bool {
	t := f.threads[n]
	if t.diverged {
		t.state.become(running)
		return true
	}
	s := &f.logOf(n).Steps[t.position]
	if !f.isEligible(s) {
		if !s.Within {
			t.state.become(heldAtSignal)
			t.next = Step{Kind: SignalStep}
		}
		return false
	}
	if !s.Within {
		t.state.become(running)
	}
	if !s.Within {
		t.lastStepAt += s.Place
	}
	t.position++
	t.unordered = 0
	f.advanceClock(n, t.position)
	if s.isNotice() {
		return true
	}
	t.pendingWrites = s.Writes[1:]
	g.Affect(sched.Effect{Kind: sched.Deliver, Thread: t.id, Writes: s.Writes[:1]})
	return true
}

// deliverWhileWaiting delivers a signal to a thread that waits in the kernel, or is held after its
// wait.
func (f *Replayer) deliverWhileWaiting(g *sched.Gate, n int) {
	t := f.threads[n]
	notice := f.logOf(n).Steps[t.position].isNotice()
	if !f.deliverSignal(g, n) || !t.state.isHeld() {
		return
	}
	if !notice {
		t.state.become(running)
	} else if !f.continueAfterWait(n) {
		return
	}
	g.Release(t.id, 0)
}

// overwriteMemory writes the bytes that a completed system call wrote in the first replica.
func (f *Replayer) overwriteMemory(g *sched.Gate, n int) {
	t := f.threads[n]
	if len(t.pendingWrites) > 0 {
		g.Affect(sched.Effect{Kind: sched.Overwrite, Thread: t.id, Writes: t.pendingWrites})
	}
	t.pendingWrites = nil
}

// noteSignal handles a signal that a thread has got.
func (f *Replayer) noteSignal(e *event.Signal) {
	n, ok := f.byID[e.Thread]
	if !ok || len(e.Info) == 0 {
		return
	}
	t := f.threads[n]
	t.lastStepAt = e.Instructions
	switch {
	case inOperation(t.open):
		t.open = append(t.open, handlerStep)
		t.entersHandler = true
	case inCall(t.open):
		t.restartsCall = true // otherwise Called follows
	default:
		nestHandler(&t.open)
	}
}

// leaveRestartedCall closes the system call that a thread makes again after a signal.
func (f *Replayer) leaveRestartedCall(t *replayedThread) {
	if t.restartsCall {
		t.restartsCall = false
		t.open = t.open[:len(t.open)-1]
	}
}

// StopDistance implements Controller: a thread stops where its next step is a signal.
func (f *Replayer) StopDistance(id arch.ThreadID, done uint64) (soon, exactly uint64, accesses uint8) {
	if n, ok := f.byID[id]; ok {
		if exactly, stops := f.instructionsToSignal(n, done); stops {
			return sched.NoStop, exactly, 0
		}
	}
	return sched.NoStop, sched.NoStop, 0
}

// instructionsToSignal returns the number of instructions to the place where a thread gets a
// signal. It returns false if the thread gets none, or gets it in an operation or call.
func (f *Replayer) instructionsToSignal(n int, done uint64) (exactly uint64, stops bool) {
	t := f.threads[n]
	if !f.nextIsSignal(n, false) || inOperation(t.open) {
		return 0, false
	}
	at := t.lastStepAt + f.logOf(n).Steps[t.position].Place
	return at - min(at, done), true
}
