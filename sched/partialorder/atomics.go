package partialorder

import (
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// maxAtomics is the number of atomic instructions that an epoch has room for: a thread that spins
// with atomic instructions does no other steps.
const maxAtomics = 50_000

// stepOfAtomic returns the step for an atomic instruction that a thread is about to execute. The
// address is known when it has been executed. The C library's instructions guard its internal data,
// of which programs see the allocator: they act on the allocator's entity. Exceptions are the
// instructions on the thread's own control block (CMPXCHG), with which each call that is a
// cancellation point begins and ends. The instruction by which a thread declares that it exits
// matters to threads that join or detach it.
func stepOfAtomic(v *sched.SyncPoint) Step {
	s := Step{Kind: AtomicStep, Op: event.OpAtomic}
	if v.Private {
		s.entities = memoryOnly
	}
	if s.declaresExit = v.MayExit; v.MayExit {
		s.entities = append(slices.Clone(s.entities), exitEntityOf(v.Thread))
	}
	return s
}

// withAddress returns the step with the address at which it was executed.
func (s *Step) withAddress(e *event.Sync) Step {
	d := *s
	d.Object, d.Addr = e.Object, e.Addr
	// The library unlocks and locks the mutexes of cancelled waits by its own instructions.
	d.entities = append(slices.Clone(d.entities), entity{kind: syncEntity, id: e.Object})
	return d
}

// setExiting keeps other threads from detaching a thread that exits until it has ended: its last
// instructions check by a plain read whether it is detached. A cancelled thread declares first that
// it exits, and then runs its cleanup handlers: if it waits there, other threads may continue.
func (r *Recorder) setExiting(g *sched.Gate, n int, on bool) {
	t := r.threads[n]
	if on == t.exiting {
		return
	}
	t.exiting = on
	if own := []entity{exitEntityOf(t.id)}; on {
		r.acquireAll(n, own)
	} else {
		r.releaseAll(g, n, own)
	}
}

// completeAtomic handles an atomic instruction that a thread has executed. It does not count as progress: a thread may wait by atomic
// instructions for an event that never happens.
func (r *Recorder) completeAtomic(g *sched.Gate, e *event.Sync, failed bool) {
	n, ok := r.byID[e.Thread]
	if !ok {
		return
	}
	t := r.threads[n]
	if t.next.Kind != AtomicStep || t.state != running {
		return
	}
	o := openStep{Step: t.next.withAddress(e), index: -1}
	o.pc, o.failed = e.PC, failed
	t.reserveStep(&o)
	if o.index > 0 {
		before := &t.steps[o.index-1]
		before.repeated = before.failed && before.pc == o.pc && before.Object == o.Object
	}
	r.completeStep(n, &o)
	r.setExiting(g, n, t.exiting || t.next.declaresExit)
	r.releaseAll(g, n, t.next.entities)
	t.next, t.lastStepAt = Step{}, e.Instructions
	r.atomicCount++
	r.closing = r.closing || r.atomicCount > maxAtomics
}

// A loop that repeats a CMPXCHG until it stores has the load of the old value in it, which is not ordered. So the number of
// attempts that fail may differ between replicas, and they have no effect: in the first replica attempts that were repeated are
// passed over, and in the others an attempt that fails in place of one that has stored does not count.

// mostAttempts bounds the attempts in place of one that has stored.
const mostAttempts = 1000

// passAttempts passes over the steps that are repeated attempts.
func (f *Replayer) passAttempts(n int) {
	t, steps := f.threads[n], f.logOf(n).Steps
	for !t.diverged && t.position < len(steps) && steps[t.position].repeated {
		t.position++
		f.advanceClock(n, t.position)
	}
}

// completeAtomic handles an atomic instruction that a thread has executed.
func (f *Replayer) completeAtomic(g *sched.Gate, e *event.Sync, failed bool) {
	n, ok := f.byID[e.Thread]
	if !ok {
		return
	}
	t := f.threads[n]
	if len(t.open) == 0 || t.open[len(t.open)-1].Kind != AtomicStep {
		return
	}
	o := t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
	t.lastStepAt = e.Instructions
	if t.diverged || o.index < 0 {
		return
	}
	t.exiting = t.exiting || o.declaresExit
	if s := &f.logOf(n).Steps[o.index]; s.Object != e.Object {
		t.position = o.index
		f.divergeAt(n, "an atomic instruction elsewhere")
		t.position = o.index + 1
		return
	} else if failed && !s.failed {
		t.position = o.index
		if t.attempts++; t.attempts > mostAttempts {
			f.divergeAt(n, "a CMPXCHG that stores nothing")
		}
		return
	}
	t.attempts = 0
	f.advanceClock(n, o.index+1)
	if f.nextIsSignal(n, false) {
		g.Cut()
	}
}
