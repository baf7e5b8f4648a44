package partialorder

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// Cancellation of threads. The target learns of it by a signal, or by a plain read of a word that
// the C library keeps for it; so the change of that word has a place among the target's
// instructions, like a signal. The target does not run while another thread cancels it, and the
// cancellation begins when the target is in no operation, or waits in one.

// sigCancel is the signal by which the C library cancels threads
// (sysdeps/unix/sysv/linux/internal-signals.h).
const sigCancel = 32

// stepPlace identifies a step by its thread and its index.
type stepPlace struct{ thread, step int }

// isBeingCancelled reports whether another thread is cancelling a thread. The target does not run
// until it has the signal, since it could learn of the cancellation earlier otherwise.
func (r *Recorder) isBeingCancelled(id arch.ThreadID) bool {
	return slices.ContainsFunc(r.threads, func(t *recordedThread) bool {
		k := len(t.open)
		return k > 0 && t.state.isAlive() && t.open[k-1].Op == event.OpCancel && t.open[k-1].Cancelled == id && t.id != id
	})
}

// resumeCancelled lets the target of a cancellation continue.
func (r *Recorder) resumeCancelled(g *sched.Gate, id arch.ThreadID) {
	if n, ok := r.byID[id]; ok && r.threads[n].cancel.paused {
		r.threads[n].cancel.paused = false
		g.Release(id, 0)
	}
}

// noteSentSignal notes that a thread sends a signal to another within an operation.
func (r *Recorder) noteSentSignal(id arch.ThreadID) {
	if n, ok := r.byID[id]; ok {
		r.threads[n].cancel.sentSignal = true
	}
}

// wouldDisturb reports whether a thread is about to cancel another in the middle of an operation,
// where the target may or may not learn of it, or of a system call. Exceptions are a target that
// spins for a lock, which may never finish by itself, and a target that exits, which cannot be
// cancelled any more.
func (r *Recorder) wouldDisturb(t *recordedThread) bool {
	m, ok := r.byID[t.next.Cancelled]
	if t.next.Op != event.OpCancel || !ok || t.next.Cancelled == t.id {
		return false
	}
	p := r.threads[m]
	return p.state != blocked && (p.inSystemCall || inOperation(p.open) && !p.open[len(p.open)-1].isUnbounded())
}

// isUnbounded reports whether an operation lasts as long as other threads want, without a wait in
// the kernel.
func (s *Step) isUnbounded() bool { return s.Op == event.OpSpinLock || s.endsThread() }

// noteCancellation gives a cancellation a place in the target's steps, unless it has sent a signal,
// which has a place of its own.
func (r *Recorder) noteCancellation(t *recordedThread, id arch.ThreadID) {
	sent := t.cancel.sentSignal
	t.cancel.sentSignal = false
	if id == t.id {
		return
	}
	m, ok := r.byID[id]
	if !ok {
		b := r.births[id]
		b.clock = joinClocks(b.clock, t.clock)
		r.births[id] = b
		return
	}
	p := r.threads[m]
	stands := p.isStanding() && !p.state.isAfterWait()
	if !sent || stands {
		p.clock = joinClocks(p.clock, t.clock)
	}
	switch {
	case stands:
		r.setMeetingPoint(m, len(p.steps)) // the target's next step comes after the cancellation, unless that is the signal
	case sent:
	case p.inSystemCall:
		r.noteCancelInCall(m)
	case inOperation(p.open):
		r.noteCancelInOperation(m)
	default:
		p.cancel.noticePending = true
	}
}

// noteCancelInCall places the cancellation of a thread in a system call before that call, which
// continues unaffected.
func (r *Recorder) noteCancelInCall(m int) {
	p := r.threads[m]
	switch {
	case p.inCall():
		r.noteCancelBeforeStep(m)
	case p.issuedAt == 0:
		r.addNotice(m, Step{Within: true})
	default:
		r.addNotice(m, Step{Place: p.issuedAt - 1 - p.lastStepAt})
		p.unordered = 1
	}
}

// noteCancelBeforeStep places a cancellation before the step that the target is in, if that has had
// no effect yet, and otherwise within it.
func (r *Recorder) noteCancelBeforeStep(m int) {
	p := r.threads[m]
	o := &p.open[len(p.open)-1]
	if o.Kind != WholeStep && o.Kind != CallStep || o.index >= 0 && o.index != len(p.steps)-1 {
		r.addNotice(m, Step{Within: true})
		return
	}
	p.reserveStep(o)
	r.setMeetingPoint(m, o.index)
}

// noteCancelInOperation places the cancellation of a thread that waits in an operation.
func (r *Recorder) noteCancelInOperation(m int) {
	p := r.threads[m]
	if o := &p.open[len(p.open)-1]; o.endsThread() || o.Op == event.OpTestCancel {
		delete(r.cancellations, p.id)
		return
	}
	r.noteCancelBeforeStep(m)
}

// addNotice adds a signal step without a number to a thread: from there on it may learn that it is
// cancelled.
func (r *Recorder) addNotice(n int, s Step) {
	t := r.threads[n]
	s.Kind, t.cancel.noticePending, t.unordered = SignalStep, false, 0
	o := openStep{Step: s, index: -1}
	t.reserveStep(&o)
	r.completeStep(n, &o)
	t.lastStepAt += s.Place
	r.setMeetingPoint(n, o.index)
}

// setMeetingPoint requires that a thread is cancelled when it is at a given step.
func (r *Recorder) setMeetingPoint(n, step int) {
	id := r.threads[n].id
	if at, ok := r.cancellations[id]; ok {
		c := &r.threads[at.thread].steps[at.step]
		c.MeetingStep, c.MeetingThread = step+1, n
		delete(r.cancellations, id)
	}
}

// completeCancelBegins completes the begin steps of all cancellations under way, whose signals have
// been sent.
func (r *Recorder) completeCancelBegins() {
	for n, t := range r.threads {
		if k := len(t.open); k > 0 && t.state.isAlive() && t.open[k-1].Op == event.OpCancel {
			r.completeBegin(n, &t.open[k-1])
		}
	}
}

// hasMet reports whether the target of a cancellation is at the place where it gets the signal.
func (f *Replayer) hasMet(s *Step) bool {
	if s.MeetingThread >= len(f.threads) || f.threads[s.MeetingThread].id == 0 {
		return false
	}
	t := f.threads[s.MeetingThread]
	if t.diverged || t.state == exited || t.position >= s.MeetingStep {
		return true
	}
	steps := f.logOf(s.MeetingThread).Steps
	first := min(s.MeetingStep-1, len(steps))
	if first == len(steps) || steps[first].Kind != SignalStep || steps[first].isNotice() && !steps[first].Within {
		return t.position == first && t.state.isHeld()
	}
	if first > 0 && steps[first-1].Interrupted {
		first--
	}
	return t.position >= first && (t.state.isHeld() || t.state == blocked)
}

// isNotice reports whether a step is the point from which a thread may learn that it is cancelled.
func (s *Step) isNotice() bool { return s.Kind == SignalStep && s.Number == 0 }

// nextIsNotice reports whether a thread's next step is a notice that it gets while it waits.
func (f *Replayer) nextIsNotice(n int) bool {
	return f.nextIsSignal(n, true) && f.logOf(n).Steps[f.threads[n].position].isNotice()
}

// cancelTargets returns the threads, by number, that have a meeting point with a cancellation.
func (o *Order) cancelTargets() map[int]bool {
	list := map[int]bool{}
	for n := range o.Threads {
		for i := range o.Threads[n].Steps {
			if s := &o.Threads[n].Steps[i]; s.MeetingStep > 0 {
				list[s.MeetingThread] = true
			}
		}
	}
	return list
}
