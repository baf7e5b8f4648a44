package sched

import (
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// mostAtomics is how many atomic instructions an epoch has room for: a thread that
// spins by them has no others.
const mostAtomics = 50_000

// atomicStep is an atomic instruction that a thread is before. Where it acts is
// known when it is done. Those of the C library guard what the library has for
// itself, of which allocation is the part that programs see: they act on the
// same as the allocator, but for those on the thread's own control block with which
// it begins and ends each call that it may be cancelled in, by CMPXCHG. The one by which
// it exits matters to who joins or detaches it.
func atomicStep(v *Visit) Step {
	s := Step{Kind: AtomicStep, Op: event.OpAtomic}
	if v.Own {
		s.on = memoryOnly
	}
	if s.exits = v.Exits; v.Exits {
		s.on = append(slices.Clone(s.on), exitOf(v.Thread))
	}
	return s
}

// doneAt is the step as it was done.
func (s *Step) doneAt(e *event.Sync) Step {
	d := *s
	d.Object, d.Addr = e.Object, e.Addr
	// The library unlocks and locks the mutexes of waits that are cancelled.
	d.on = append(slices.Clone(d.on), entity{syncEntity, e.Object})
	return d
}

// exits has a thread that exits keep others from detaching it until it is gone: in the end
// it looks whether it is detached, by a plain read. A thread that has been cancelled says
// first that it exits, and then does what it has to clean up: others may have to go on for
// that, and when it waits, they do.
func (r *OrderRecorder) exits(g *Gate, n int, on bool) {
	t := r.threads[n]
	if on == t.exits {
		return
	}
	t.exits = on
	if own := []entity{exitOf(t.id)}; on {
		r.take(n, own)
	} else {
		r.drop(g, n, own)
	}
}

// Atomic implements AtomicController. It is no progress: whoever waits for what
// does not come may do so by atomic instructions.
func (r *OrderRecorder) Atomic(g *Gate, e *event.Sync) {
	n, ok := r.numbers[e.Thread]
	if !ok {
		return
	}
	t := r.threads[n]
	if t.next.Kind != AtomicStep || t.stand != going {
		return
	}
	o := opened{Step: t.next.doneAt(e), index: -1}
	t.slot(&o)
	r.complete(n, &o)
	r.exits(g, n, t.exits || t.next.exits)
	r.drop(g, n, t.next.on)
	t.next, t.base = Step{}, e.Instructions
	r.atomics++
	r.closing = r.closing || r.atomics > mostAtomics
}

// Atomic implements AtomicController.
func (f *OrderFollower) Atomic(g *Gate, e *event.Sync) {
	n, ok := f.numbers[e.Thread]
	if !ok {
		return
	}
	t := f.threads[n]
	if len(t.open) == 0 || t.open[len(t.open)-1].Kind != AtomicStep {
		return
	}
	o := t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
	t.base = e.Instructions
	if t.left || o.index < 0 {
		return
	}
	t.exits = t.exits || o.exits
	if s := &f.log(n).Steps[o.index]; s.Object != e.Object {
		t.pos = o.index
		f.leave(n, "an atomic instruction elsewhere")
		t.pos = o.index + 1
		return
	}
	f.advance(n, o.index+1)
	if f.signalled(n, false) {
		g.Cut()
	}
}
