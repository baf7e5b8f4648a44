package enforce

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched"
)

const (
	anyNumber = sched.NoStop
	// lookAhead is the greatest number of posts without a waiter that a thread passes before it
	// stops. longestRun is more than the length of any block, by which a thread may run past a
	// place where it is to stop soon.
	lookAhead  = 64
	longestRun = 1 << 16
)

// StopDistance implements Controller. A thread stops exactly where it has to wait, and soon where it hands a
// turn to another thread. The other instructions that it has passed are accounted for at the end of
// its quantum.
func (e *Enforcer) StopDistance(id arch.ThreadID, done uint64) (soon, exactly uint64, accesses uint8) {
	soon, exactly = anyNumber, anyNumber
	n, ok := e.numberOf(id)
	if !ok || e.left != "" {
		return soon, exactly, 0
	}
	t, list := &e.threads[n], e.plan.actions[n]
	if e.plan.s.Portable {
		return soon, e.remainingPortable(n, done), 0
	}
	for i := t.actions; i < len(list) && int(list[i].done) == t.done; i++ {
		a := &list[i]
		left := t.base + a.at - min(t.base+a.at, done)
		switch {
		case e.stopsExactly(a):
			return soon, left, a.accesses
		case soon != anyNumber:
			if left-soon > longestRun {
				return soon, exactly, 0
			}
		case i == t.actions+lookAhead || a.kind == post && e.endsQuantum(a):
			soon = left
		}
	}
	return soon, exactly, 0
}

// stopsExactly reports whether a thread stops exactly at an action: where it has to wait, and where
// its position is checked, so that a thread on another path than the recorded one is detected soon.
func (e *Enforcer) stopsExactly(a *action) bool {
	return a.accesses > 0 || a.kind == halt || a.kind == deliver || a.kind == wait && (a.look || !e.posted[a.of])
}

// endsQuantum reports whether a thread's quantum ends after the first point of a constraint: if the
// turn of an operation depends on it. A thread that waits at an instruction is released later, with
// the time at which the point was passed. If constraints are only watched, a quantum ends after
// every first point, because the thread that one releases may run before the next.
func (e *Enforcer) endsQuantum(a *action) bool {
	if len(e.o.Loose) > 0 {
		return true
	}
	if e.plan.waiter[a.of] != turnWaits {
		return false
	}
	second := &e.plan.s.Constraints[a.of].Second
	t := &e.threads[second.Thread]
	position, _ := e.nextOperation(second.Thread)
	return position == e.next && (t.held && t.waiting == forTurn || t.blocked)
}

// passActionsUntil handles the actions of a thread that has retired done instructions.
func (e *Enforcer) passActionsUntil(g *sched.Gate, id arch.ThreadID, done uint64) {
	if n, ok := e.numberOf(id); ok && e.left == "" && !e.plan.s.Portable {
		e.passActions(g, n, done)
	}
}

// passActions handles the actions that a thread has gone past without having to wait.
func (e *Enforcer) passActions(g *sched.Gate, n int, done uint64) {
	t := &e.threads[n]
	for e.left == "" {
		a := e.plan.actionOf(n, t.actions)
		if a == nil || int(a.done) != t.done || t.base+a.at > done || e.stopsExactly(a) {
			return
		}
		e.chargeInstrumentation(g, n)
		t.actions++
		if a.kind == post {
			e.ago = done - (t.base + a.at)
			e.postConstraint(g, int(a.of))
			e.ago = 0
		} else {
			g.Charge(e.o.Costs.SemaphoreWait)
		}
	}
}

// chargeInstrumentation lets the time pass that the instrumentation up to a thread's next action takes.
func (e *Enforcer) chargeInstrumentation(g *sched.Gate, n int) {
	w := e.plan.work[n][e.threads[n].actions]
	slots, counting := w.slots+w.arrivals, arch.Cycles(0)
	branches := arch.Cycles(w.branches) * e.o.Costs.BranchCount
	switch {
	case w.arrivals == 0:
		counting = branches
	case e.o.Runs:
		slots = w.slots + 1
		counting = arch.Cycles(w.arrivals) * e.o.Costs.SlotCheck
		if branches > 0 {
			counting = min(counting, branches)
		}
	}
	e.counts.Slots += slots
	g.Charge(arch.Cycles(slots)*e.o.Costs.SlotCall + counting)
}

// reachInstruction handles a thread that has reached an instruction where it may have to wait.
func (e *Enforcer) reachInstruction(g *sched.Gate, n int, v *sched.SyncPoint) bool {
	t := &e.threads[n]
	if t.arrivals.crossing {
		e.completeCrossing(g, n, v)
		return true
	}
	a := e.plan.actionOf(n, t.actions)
	if a == nil || int(a.done) != t.done || t.base+a.at > v.Instructions || a.accesses > v.Accesses {
		return true
	}
	if a.pc != 0 && a.pc != v.PC || t.base+a.at < v.Instructions {
		e.leaveSchedule(g, "thread %s is at %#x, not at the instruction of %s at %#x", e.plan.s.Threads[n], uint64(v.PC), a.describeAction(), uint64(a.pc))
		return true
	}
	e.chargeInstrumentation(g, n)
	switch a.kind {
	case halt:
		return e.holdBeyondEnd(g, n, sched.AtInstruction)
	case post:
		t.actions++
		e.postConstraint(g, int(a.of))
		return e.reachInstruction(g, n, v)
	case deliver:
		t.actions++
		position, _ := e.nextOperation(n)
		return e.requestTurn(g, n, sched.AtInstruction, position)
	}
	return e.awaitConstraint(g, n, a)
}

// awaitConstraint lets a thread continue from the second instruction of a constraint if the first
// has been executed, and holds it otherwise.
func (e *Enforcer) awaitConstraint(g *sched.Gate, n int, a *action) bool {
	t := &e.threads[n]
	switch {
	case e.posted[a.of]:
		t.actions++
		g.Charge(e.o.Costs.SemaphoreWait)
	case slices.Contains(e.o.Loose, int(a.of)):
		t.actions++
		e.counts.Flipped++
	default:
		t.held, t.place, t.waiting = true, sched.AtInstruction, int(a.of)
		e.counts.Stalled++
		return false
	}
	return true
}

// postConstraint records that the first instruction of a constraint has been executed, and releases
// the thread that waits for it.
func (e *Enforcer) postConstraint(g *sched.Gate, c int) {
	if e.posted[c] {
		return
	}
	e.posted[c] = true
	e.since = e.now
	e.counts.Constraints++
	g.Charge(e.o.Costs.SemaphoreWait)
	n := e.plan.waiter[c]
	if n == turnWaits {
		e.advanceTurn(g)
		return
	}
	if t := &e.threads[n]; t.held && t.waiting == c {
		t.held, t.waiting = false, forTurn
		t.actions++
		g.ReleaseAgo(t.id, e.wakeUpDelay(), e.ago)
	}
}

// constraintsHold reports whether the constraints on an operation as a whole are satisfied.
func (e *Enforcer) constraintsHold(position int) bool {
	for _, c := range e.plan.waits[position] {
		if !e.posted[c] && !slices.Contains(e.o.Loose, c) {
			return false
		}
	}
	return true
}

// leaveIfMissed leaves the schedule if a thread has passed an instruction of a constraint without
// executing it. It reports whether that is so.
func (e *Enforcer) leaveIfMissed(g *sched.Gate, n int) bool {
	t := &e.threads[n]
	a := e.plan.actionOf(n, t.actions)
	if a == nil || int(a.done) >= t.done {
		return false
	}
	pc, _ := e.plan.instructionOf(a)
	e.leaveSchedule(g, "thread %s has not reached the instruction of %s at %#x before its operation %d",
		e.plan.s.Threads[n], a.describeAction(), uint64(cmp.Or(a.pc, pc)), t.done-1)
	return true
}
