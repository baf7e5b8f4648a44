package sched

import (
	"cmp"
	"math"
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Stopper is a Controller that stops threads at instructions.
type Stopper interface {
	// Points are the addresses of the instructions before which threads are most often
	// stopped exactly.
	Points() []event.Addr
	// Left is how many instructions a thread that has retired done may run until
	// AtInstruction: soon to the end of a block, or exactly, and then so many accesses of the
	// next one. The greatest number means any.
	Left(t event.ThreadID, done uint64) (soon, exactly uint64, accesses uint8)
	// Reached tells at the end of a slice how many instructions its thread has
	// retired.
	Reached(g *Gate, t event.ThreadID, done uint64)
}

// Points implements Stopper.
func (e *Enforcer) Points() []event.Addr {
	if e.plan.s.Portable {
		return nil // they are breakpoints
	}
	return e.plan.points()
}

const (
	anyNumber = math.MaxUint64
	// lookAhead is how many actions that nobody waits for a thread passes at most
	// before it stops, and longestRun more than the instructions of any block, by
	// which it comes further than a place where it is to stop soon.
	lookAhead  = 64
	longestRun = 1 << 16
)

// Left implements Stopper. A thread stops exactly where it has to wait, and soon
// where it gives a turn to another. That it has passed other instructions is found out
// at the end of its slice.
func (e *Enforcer) Left(id event.ThreadID, done uint64) (soon, exactly uint64, accesses uint8) {
	soon, exactly = anyNumber, anyNumber
	n, ok := e.find(id)
	if !ok || e.left != "" {
		return soon, exactly, 0
	}
	t, list := &e.threads[n], e.plan.actions[n]
	if e.plan.s.Portable {
		return soon, e.leftOther(n, done), 0
	}
	for i := t.actions; i < len(list) && int(list[i].done) == t.done; i++ {
		a := &list[i]
		left := t.base + a.at - min(t.base+a.at, done)
		switch {
		case e.stops(a):
			return soon, left, a.accesses
		case soon != anyNumber:
			if left-soon > longestRun {
				return soon, exactly, 0
			}
		case i == t.actions+lookAhead || a.kind == post && e.ends(a):
			soon = left
		}
	}
	return soon, exactly, 0
}

// stops tells whether a thread stops exactly at an action: where it has to wait, and
// where it is looked at, so that one that goes another way than the recorded run's is
// found out soon.
func (e *Enforcer) stops(a *action) bool {
	return a.accesses > 0 || a.kind == halt || a.kind == deliver || a.kind == wait && (a.look || !e.posted[a.of])
}

// ends tells whether a thread's slice ends behind the first point of a constraint:
// if the turn of an operation depends on it. A thread that waits at an instruction is
// released later, with the time at which the point was passed. If constraints are only
// watched, to see whether they hold all the same, a slice ends behind every first point:
// who is released by one may come before the next.
func (e *Enforcer) ends(a *action) bool {
	if len(e.o.Loose) > 0 {
		return true
	}
	if e.plan.waiter[a.of] != turnWaits {
		return false
	}
	second := &e.plan.s.Constraints[a.of].Second
	t := &e.threads[second.Thread]
	position, _ := e.peek(second.Thread)
	return position == e.next && (t.held && t.waiting == forTurn || t.blocked)
}

// Reached implements Stopper.
func (e *Enforcer) Reached(g *Gate, id event.ThreadID, done uint64) {
	if n, ok := e.find(id); ok && e.left == "" && !e.plan.s.Portable {
		e.pass(g, n, done)
	}
}

// pass handles the actions that a thread has gone past without having to wait.
func (e *Enforcer) pass(g *Gate, n int, done uint64) {
	t := &e.threads[n]
	for e.left == "" {
		a := e.plan.action(n, t.actions)
		if a == nil || int(a.done) != t.done || t.base+a.at > done || e.stops(a) {
			return
		}
		e.charge(g, n)
		t.actions++
		if a.kind == post {
			e.ago = done - (t.base + a.at)
			e.post(g, int(a.of))
			e.ago = 0
		} else {
			g.Charge(e.o.Costs.SemaphoreWait)
		}
	}
}

// charge lets the time pass that the instrumentation up to a thread's next action takes.
func (e *Enforcer) charge(g *Gate, n int) {
	instructions, branches := e.plan.since(n, e.threads[n].actions)
	e.counts.Slots += instructions
	g.Charge(event.Cycles(instructions)*e.o.Costs.SlotCall + event.Cycles(branches)*e.o.Costs.BranchCount)
}

// instruction handles a thread that has come to where it may have to wait.
func (e *Enforcer) instruction(g *Gate, n int, v *Visit) bool {
	t := &e.threads[n]
	if t.arrivals.crossing {
		e.crossed(g, n, v)
		return true
	}
	a := e.plan.action(n, t.actions)
	if a == nil || int(a.done) != t.done || t.base+a.at > v.Instructions || a.accesses > v.Accesses {
		return true
	}
	if a.pc != 0 && a.pc != v.PC || t.base+a.at < v.Instructions {
		e.leave(g, "thread %s is at %#x, not at the instruction of %s at %#x", e.plan.s.Threads[n], uint64(v.PC), a.what(), uint64(a.pc))
		return true
	}
	e.charge(g, n)
	switch a.kind {
	case halt:
		return e.beyond(g, n, AtInstruction)
	case post:
		t.actions++
		e.post(g, int(a.of))
		return e.instruction(g, n, v)
	case deliver:
		t.actions++
		position, _ := e.peek(n)
		return e.turn(g, n, AtInstruction, position)
	}
	return e.await(g, n, a)
}

// await lets a thread go on from the second instruction of a constraint if the first
// one was executed, and holds it otherwise.
func (e *Enforcer) await(g *Gate, n int, a *action) bool {
	t := &e.threads[n]
	switch {
	case e.posted[a.of]:
		t.actions++
		g.Charge(e.o.Costs.SemaphoreWait)
	case slices.Contains(e.o.Loose, int(a.of)):
		t.actions++
		e.counts.Flipped++
	default:
		t.held, t.place, t.waiting = true, AtInstruction, int(a.of)
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
	n := e.plan.waiter[c]
	if n == turnWaits {
		e.advance(g)
		return
	}
	if t := &e.threads[n]; t.held && t.waiting == c {
		t.held, t.waiting = false, forTurn
		t.actions++
		g.ReleaseAgo(t.id, e.delay(), e.ago)
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
	if a == nil || int(a.done) >= t.done {
		return false
	}
	pc, _ := e.plan.instruction(a)
	e.leave(g, "thread %s has not come to the instruction of %s at %#x before its operation %d",
		e.plan.s.Threads[n], a.what(), uint64(cmp.Or(a.pc, pc)), t.done-1)
	return true
}
