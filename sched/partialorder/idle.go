package partialorder

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
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
		if steps := f.logOf(n).Steps; len(t.open) == 0 || t.position < len(steps) && hasTimedOut(&steps[t.position]) {
			kind = sched.Expire
		}
		g.Affect(sched.Effect{Kind: kind, Thread: t.id})
	}
}

func hasTimedOut(s *Step) bool {
	return follow.TimedOut(&event.Operation{Op: s.Op, Result: int64(s.Result)})
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

// IsIncomplete reports whether a thread has done fewer steps than in the first replica.
func (f *Replayer) IsIncomplete() bool {
	for n := range f.order.Threads {
		steps := f.order.Threads[n].Steps
		if n >= len(f.threads) && len(steps) > 0 || n < len(f.threads) && f.threads[n].position < len(steps) {
			return true
		}
	}
	return false
}

// ThreadStates returns the states of the threads at the end of the epoch.
func (f *Replayer) ThreadStates() (list []ThreadState) {
	for _, t := range f.threads {
		if !t.state.isAlive() {
			continue
		}
		s := ThreadState{ID: t.id, Name: t.name, Held: t.state.isHeld(), Woken: t.state.isAfterWait(), Next: t.next, Exits: t.exiting}
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
