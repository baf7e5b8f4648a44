package partialorder

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/follow"
)

// Idle is called when no thread can run. It reports whether the epoch has ended. If it has not, and
// timers cannot help, Idle lets some thread continue.
func (f *Replayer) Idle(g *sched.Gate, timers bool) bool {
	if !slices.ContainsFunc(f.threads, func(t *replayedThread) bool { return t.state.isAlive() && !f.isOver(t) }) {
		return true
	}
	switch {
	case timers, f.releaseHelper(g, true):
	case !f.endedWaits:
		f.endedWaits = true
		f.endKernelWaits(g)
	case f.releaseHelper(g, false):
	default:
		return !f.forceDivergence(g)
	}
	return false
}

// isOver reports whether the epoch has ended for a thread.
func (f *Replayer) isOver(t *replayedThread) bool {
	if t.epochOver {
		return true
	}
	n := f.byID[t.id]
	l := f.logOf(n)
	rest := len(l.Steps) - t.position
	return t.state == blocked && rest <= 0 && !l.EndsHeld
}

// releaseHelper lets a thread continue from its wait before its turn if another thread needs that
// for its own step: glibc's pthread_cond_broadcast waits until the threads that it has woken have
// noticed. The helper waits for its turn after it has noticed, or at the end of its operation.
// Among several helpers the one whose turn comes first is chosen, and one for which the epoch has
// ended only if there is no other: in the first replica it noticed and then waited for the mutex.
// Waits on the condition that is signalled are considered first, because a thread that continues
// from another wait may take a mutex before its turn.
func (f *Replayer) releaseHelper(g *sched.Gate, signals bool) bool {
	best := -1
	for _, t := range f.threads {
		if t.state != blocked || len(t.open) == 0 || t.open[len(t.open)-1].index < 0 || f.isOver(t) {
			continue
		}
		waker := &t.open[len(t.open)-1].Step
		if signals && !waker.isConditionSignal() {
			continue
		}
		if !signals {
			waker = nil
		}
		if best = f.chooseHelper(waker, false); best < 0 {
			best = f.chooseHelper(waker, true)
		}
		if best >= 0 {
			break
		}
	}
	if best < 0 {
		return false
	}
	t := f.threads[best]
	t.state.become(running)
	t.continuesEarly, t.epochOver = true, false
	g.Release(t.id, 0)
	return true
}

// chooseHelper returns a thread that is held after a wait, for which the epoch has ended or not, as
// asked for; only waits on the waker's condition count if a waker is given. Without
// one it returns -1.
func (f *Replayer) chooseHelper(waker *Step, ended bool) int {
	best := -1
	for n, t := range f.threads {
		if t.state != heldAfterWait || t.epochOver != ended {
			continue
		}
		if waker != nil && (len(t.open) == 0 || t.open[len(t.open)-1].Object != waker.Object) {
			continue
		}
		if best < 0 || f.precedes(n, best) {
			best = n
		}
	}
	return best
}

// isConditionSignal reports whether a step wakes threads that wait on a condition.
func (s *Step) isConditionSignal() bool {
	switch s.Op {
	case event.OpCondSignal, event.OpCondBroadcast, event.OpC11CndSignal, event.OpC11CndBroadcast:
		return true
	}
	return false
}

// Woken implements Controller: the helper has noticed. It must not continue, since it would take
// the mutex before its turn.
func (f *Replayer) Woken(_ *sched.Gate, id arch.ThreadID) {
	for _, t := range f.threads {
		if t.continuesEarly && t.id != id && t.state == running {
			t.continuesEarly, t.stopsEarly = false, true
		}
	}
}

// MayRun implements Controller.
func (f *Replayer) MayRun(id arch.ThreadID, _ uint64) bool {
	n, ok := f.byID[id]
	if !ok || !f.threads[n].stopsEarly {
		return true
	}
	f.threads[n].stopsEarly = false
	return f.threads[n].state != running || f.continueAfterWait(n)
}

// precedes reports whether a thread's next step comes before another thread's.
func (f *Replayer) precedes(n, m int) bool {
	t, o := f.threads[n], f.threads[m]
	steps := f.logOf(m).Steps
	return !t.diverged && !o.diverged && o.position < len(steps) && clockComponent(steps[o.position].Clock, n) > uint32(t.position)
}

// endKernelWaits ends waits in the kernel with the results that they had in the first replica.
func (f *Replayer) endKernelWaits(g *sched.Gate) {
	for n, t := range f.threads {
		if t.state != blocked || f.isOver(t) || f.nextIsSignal(n, true) {
			continue
		}
		kind := sched.Rouse
		if steps := f.logOf(n).Steps; len(t.open) == 0 || t.position < len(steps) && steps[t.position].hasTimedOut() {
			kind = sched.Expire
		}
		g.Affect(sched.Effect{Kind: kind, Thread: t.id})
	}
}

// hasTimedOut reports whether the wait of a step has ended because its time was up.
func (s *Step) hasTimedOut() bool {
	if s.Kind != CalledStep {
		return follow.TimedOut(&event.Operation{Op: s.Op, Result: int64(s.Result)})
	}
	if linux.Has(s.Number, linux.Polls) {
		return s.Result == 0
	}
	return s.Result == linux.Failure(syscall.EAGAIN) || s.Result == linux.Failure(syscall.ETIMEDOUT)
}

// passWait completes the part of a system call before a wait.
func (f *Replayer) passWait(n int, o *openStep) {
	if (o.Kind == CallStep || o.Kind == CalledStep) && o.index >= 0 && !f.threads[n].diverged && f.logOf(n).Steps[o.index].Waits {
		f.advanceClock(n, o.index+1)
		o.Step, o.index = o.remainder(), -1
	}
}

// expireWait is endWait if it is the thread's turn.
func (f *Replayer) expireWait(g *sched.Gate, n int) {
	t, steps := f.threads[n], f.logOf(n).Steps
	if t.diverged || len(t.open) == 0 || t.position >= len(steps) {
		return
	}
	o, s := &t.open[len(t.open)-1], &steps[t.position]
	if o.Kind == CalledStep && o.index < 0 && s.matches(&o.Step) && f.isEligible(s) {
		s.endWait(g, t.id)
	}
}

// endWait ends the wait of a thread in a system call if its time was up in the first replica, if a
// signal made the call fail, or if the thread waited again: it may have moved some data before.
func (s *Step) endWait(g *sched.Gate, t arch.ThreadID) {
	switch {
	case s.Waits:
		g.Affect(sched.Effect{Kind: sched.Rouse, Thread: t})
	case s.Result == linux.Failure(syscall.EINTR):
		g.Affect(sched.Effect{Kind: sched.Interrupt, Thread: t})
	case s.hasTimedOut():
		g.Affect(sched.Effect{Kind: sched.Expire, Thread: t})
	}
}

// forceDivergence marks a thread as diverged that waits for an event that does not happen. It
// returns false without one.
func (f *Replayer) forceDivergence(g *sched.Gate) bool {
	for n, t := range f.threads {
		if t.state.isHeld() && !t.epochOver {
			f.divergeAt(n, "an operation before it is missing")
			f.releaseIfReady(g, n)
			t.epochOver = t.state.isHeld()
			f.Stepped(g, arch.NoThread, 0, 0)
			return true
		}
	}
	return false
}

// Missing names the first step that a thread has not done and did in the first replica; it is empty if there
// is none.
func (f *Replayer) Missing() string {
	for n := range f.order.Threads {
		l, done := &f.order.Threads[n], 0
		if n < len(f.threads) {
			done = f.threads[n].position
		}
		if done < len(l.Steps) {
			return fmt.Sprintf("thread %d has not done its step %d: %s", l.ID, done, l.Steps[done].String())
		}
	}
	return ""
}

// ThreadStates returns the states of the threads at the end of the epoch.
func (f *Replayer) ThreadStates() (list []ThreadState) {
	for _, t := range f.threads {
		if !t.state.isAlive() {
			continue
		}
		s := ThreadState{ID: t.id, Name: t.name, Held: t.state.isHeld(), Woken: t.state.isAfterWait(), Next: t.next, Exits: t.exiting, Process: t.process}
		for i := range t.open {
			s.Within = append(s.Within, t.open[i].remainder())
		}
		if t.state == heldAtReturn {
			s.Woken, s.Within = true, s.Within[:len(s.Within)-1]
		}
		list = append(list, s)
	}
	return list
}

// Uses lists the uses of objects by the steps that threads have begun in the epoch, and by those that
// were under way at its start.
func (f *Replayer) Uses() []Use { return f.uses.list() }

// ContinueDiverged lets the threads that have diverged do some more steps after the end of the
// epoch, so that the consequences of the divergence show.
func (f *Replayer) ContinueDiverged(g *sched.Gate, steps int) {
	for n, t := range f.threads {
		if !t.state.isAlive() || !t.diverged {
			continue
		}
		t.extraSteps = steps
		if t.epochOver && t.state == heldAtStep {
			t.epochOver = false
			if f.reachStep(g, n) {
				g.Release(t.id, 0)
			}
		}
	}
}
