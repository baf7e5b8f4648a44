package sched

import (
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Stopper is a Controller that stops threads at exact instructions.
type Stopper interface {
	// Left is how many instructions a thread that has retired done may run until
	// AtInstruction; none if there is no such place ahead.
	Left(t event.ThreadID, done uint64) (left uint64, some bool)
}

// Left implements Stopper.
func (e *Enforcer) Left(id event.ThreadID, done uint64) (left uint64, some bool) {
	n, ok := e.numbers[id]
	if !ok || e.left != "" {
		return 0, false
	}
	t := &e.threads[n]
	a := e.plan.action(n, t.actions)
	if e.plan.s.Portable {
		return t.leftOther(a, done)
	}
	if a == nil || a.done != t.done {
		return 0, false
	}
	return t.base + a.at - min(t.base+a.at, done), true
}

// instruction handles a thread that has come to where it has an action.
func (e *Enforcer) instruction(g *Gate, n int, v *Visit) bool {
	t := &e.threads[n]
	if t.arrivals.crossing {
		e.crossed(g, n, v)
		return true
	}
	a := e.plan.action(n, t.actions)
	if a == nil {
		return true
	}
	if a.pc != 0 && a.pc != v.PC {
		e.leave(g, "thread %s is at %#x, not at the instruction of constraint %d at %#x", e.plan.s.Threads[n], uint64(v.PC),
			a.constraint, uint64(a.pc))
		return true
	}
	e.charge(g, a)
	switch {
	case a.kind == halt:
		return e.beyond(g, n, AtInstruction)
	case a.kind == post:
		t.actions++
		e.post(g, a.constraint)
		return true
	}
	return e.await(g, n, a)
}

// charge lets pass what it costs to find the instruction of a constraint.
func (e *Enforcer) charge(g *Gate, a *action) {
	g.Charge(event.Cycles(a.instructions)*e.o.Costs.SlotCall + event.Cycles(a.branches)*e.o.Costs.BranchCount)
}

// await lets a thread go on from the second instruction of a constraint if the first
// one was executed, and holds it otherwise.
func (e *Enforcer) await(g *Gate, n int, a *action) bool {
	t := &e.threads[n]
	switch {
	case e.posted[a.constraint]:
		t.actions++
		g.Charge(e.o.Costs.SemaphoreWait)
	case slices.Contains(e.o.Loose, a.constraint):
		t.actions++
		e.counts.Flipped++
	default:
		t.held, t.place, t.waiting = true, AtInstruction, a.constraint
		e.counts.Stalled++
		return false
	}
	return true
}

// post notes that the first instruction of a constraint was executed, and lets
// go who waits for that.
func (e *Enforcer) post(g *Gate, c int) {
	if e.posted[c] {
		return
	}
	e.posted[c] = true
	e.since = e.now
	e.counts.Constraints++
	g.Charge(e.o.Costs.SemaphoreWait)
	second := &e.plan.s.Constraints[c].Second
	if second.PC == 0 && !second.Ends {
		e.advance(g)
		return
	}
	if t := &e.threads[second.Thread]; t.held && t.waiting == c {
		t.held, t.waiting = false, forTurn
		t.actions++
		g.Release(t.id, e.delay())
	}
}

// ready tells whether the constraints on an operation as a whole are satisfied.
func (e *Enforcer) ready(position int) bool {
	for _, c := range e.plan.waits[position] {
		if !e.posted[c] && !slices.Contains(e.o.Loose, c) {
			return false
		}
	}
	return true
}

// missed tells whether a thread has passed an instruction that it has not
// executed, and then leaves the schedule.
func (e *Enforcer) missed(g *Gate, n int) bool {
	t := &e.threads[n]
	a := e.plan.action(n, t.actions)
	if a == nil || a.done >= t.done {
		return false
	}
	e.leave(g, "thread %s has not come to the instruction of constraint %d at %#x before its operation %d",
		e.plan.s.Threads[n], a.constraint, uint64(a.pc), t.done-1)
	return true
}
