package enforce

import (
	"fmt"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/follow"
)

// nextOperation returns the position of a thread's next operation, or -1.
func (e *Enforcer) nextOperation(n int) (position int, o *event.Operation) {
	own, t := e.plan.own[n], &e.threads[n]
	if t.done >= len(own) {
		return -1, nil
	}
	return own[t.done], &e.plan.s.Operations[own[t.done]]
}

// isActing reports whether the operation under way is the thread's.
func (e *Enforcer) isActing(n int) bool { return e.acting && e.plan.s.Operations[e.next].Thread == n }

// leaveForMismatch leaves the schedule because a thread does something else.
func (e *Enforcer) leaveForMismatch(g *sched.Gate, n int, found string) bool {
	expected := "nothing more"
	if position, o := e.nextOperation(n); o != nil {
		expected = fmt.Sprintf("%s at position %d", e.plan.s.Describe(position), position)
	}
	e.leaveSchedule(g, "thread %s reaches %s, and the schedule has %s", e.plan.s.Threads[n], found, expected)
	return true
}

// holdBeyondEnd holds a thread forever that reaches an operation after the end of the recorded run.
func (e *Enforcer) holdBeyondEnd(g *sched.Gate, n int, at sched.PointKind) bool {
	if e.mayLeave() {
		return e.leaveForMismatch(g, n, "more")
	}
	t := &e.threads[n]
	t.held, t.place, t.waiting = true, at, forGood
	if a := e.plan.actionOf(n, t.actions); a != nil && a.kind == halt && int(a.done) == t.done {
		e.postConstraint(g, int(a.of))
	}
	return false
}

// The reasons why a thread is held, besides constraints: for its turn, for another thread that
// helps it, forever.
const forTurn, forHelp, forGood = -1, -2, -3

func (e *Enforcer) startThread(g *sched.Gate, n int) bool {
	if position, o := e.nextOperation(n); o != nil && o.Part == event.StartPart {
		return e.requestTurn(g, n, sched.AtStart, position)
	}
	return true
}

// enterOperation handles a thread that reaches an operation.
func (e *Enforcer) enterOperation(g *sched.Gate, n int, v *sched.SyncPoint) bool {
	if follow.Transparent(v.Sync.Op) {
		return true
	}
	if t := &e.threads[n]; t.held && t.place == sched.AtReturn && t.waiting == forTurn {
		call := *v.Sync
		t.entered = &call
		return false
	}
	position, o := e.nextOperation(n)
	if v.Sync.Op == event.OpAllocate {
		return e.enterAllocation(g, n, position, o)
	}
	switch {
	case o == nil:
		return e.holdBeyondEnd(g, n, sched.AtEnter)
	case o.Op != v.Sync.Op || o.Part != event.WholePart && o.Part != event.BeginPart:
		return e.leaveForMismatch(g, n, v.Sync.Op.String())
	case !e.bindObject(o, v.Sync):
		return e.leaveForMismatch(g, n, fmt.Sprintf("%s of another object, at %#x", v.Sync.Op, uint64(v.Sync.Addr)))
	}
	return e.requestTurn(g, n, sched.AtEnter, position)
}

// enterAllocation handles a thread that calls malloc or its kin: some of the calls are
// operations.
func (e *Enforcer) enterAllocation(g *sched.Gate, n, position int, o *event.Operation) bool {
	t := &e.threads[n]
	t.allocations++
	if o == nil || o.Op != event.OpAllocate || o.Result != t.allocations {
		return true
	}
	return e.requestTurn(g, n, sched.AtEnter, position)
}

// bindObject reports whether an operation is on the object that the schedule names. The first
// operation on an object gives it its address.
func (e *Enforcer) bindObject(o *event.Operation, s *event.Sync) bool {
	if o.Object == 0 || !hasAddress(o.Op) {
		return true
	}
	if at, known := e.bound[o.Object]; known {
		return at == s.Addr
	}
	e.bound[o.Object] = s.Addr
	return true
}

// hasAddress reports whether an operation is on an object at the address Sync.Addr.
func hasAddress(op event.SyncOp) bool {
	return op >= event.OpMutexInit && op <= event.OpSemDestroy || op >= event.OpSemWait && op <= event.OpSemPost
}

// returnFromOperation handles a thread that comes out of an operation.
func (e *Enforcer) returnFromOperation(g *sched.Gate, n int, v *sched.SyncPoint) bool {
	if follow.Transparent(v.Sync.Op) {
		return true
	}
	if e.helper == n {
		defer e.releaseHelper(g)
	}
	position, o := e.nextOperation(n)
	if v.Sync.Op == event.OpAllocate && (!e.isActing(n) || o.Op != event.OpAllocate) {
		return true
	}
	for o != nil && (o.Part == event.BeginPart || o.Part == event.ResumePart) && e.isActing(n) {
		e.completeOperation(g, n) // it did not wait
		position, o = e.nextOperation(n)
	}
	switch {
	case e.left != "":
		return true
	case o == nil:
		return e.holdBeyondEnd(g, n, sched.AtReturn)
	case o.Op != v.Sync.Op || o.Part != event.WholePart && o.Part != event.EndPart:
		return e.leaveForMismatch(g, n, "the end of "+v.Sync.Op.String())
	case v.Sync.Phase == event.Return && v.Sync.Result != o.Result && o.Op != event.OpSemOpen && o.Op != event.OpAllocate:
		return e.leaveForMismatch(g, n, fmt.Sprintf("the end of %s with the result %d, not %d", o.Op, v.Sync.Result, o.Result))
	case e.isActing(n):
		e.completeOperation(g, n)
		return true
	}
	return e.requestTurn(g, n, sched.AtReturn, position)
}

// continueAfterWait handles a thread that continues from a wait in the kernel.
func (e *Enforcer) continueAfterWait(g *sched.Gate, n int, v *sched.SyncPoint) bool {
	t := &e.threads[n]
	t.blocked = false
	position, o := e.nextOperation(n)
	t.waits = (o == nil || o.Part.EndsWait()) && v.InOperation && !e.isActing(n)
	if t.handles {
		t.handles, t.waits = false, false
		return true
	}
	switch {
	case isInterruption(o):
		return e.requestTurn(g, n, sched.AtWake, position)
	case e.helper == n:
		return true
	case e.isActing(n) && e.helper >= 0:
		t.held, t.place, t.waiting = true, sched.AtWake, forHelp
		return false
	case o == nil && v.InOperation:
		return e.holdBeyondEnd(g, n, sched.AtWake)
	case o == nil || !o.Part.EndsWait() || !v.InOperation || e.isActing(n):
		return true
	}
	return e.requestTurn(g, n, sched.AtWake, position)
}

// requestCall handles a thread that has issued a system call.
func (e *Enforcer) requestCall(g *sched.Gate, n int, v *sched.SyncPoint) bool {
	if !Ordered(v.Call.Number) || AddressSpace(v.Call.Number) && !e.plan.memory || e.plan.hasNoPosition(v.Call) || e.threads[n].heap {
		return true
	}
	position, o := e.nextOperation(n)
	switch {
	case v.Inner && (o == nil || o.Part != event.SystemCall || o.Number != v.Call.Number):
		return true
	case o == nil:
		return e.holdBeyondEnd(g, n, sched.AtCall)
	case isInterruption(o):
		return e.requestTurn(g, n, sched.AtCall, position)
	case o.Part != event.SystemCall || o.Number != v.Call.Number:
		return e.leaveForMismatch(g, n, fmt.Sprintf("system call %d", v.Call.Number))
	}
	e.threads[n].issued, e.threads[n].given = v.Now, v.Call.Args[:]
	return e.requestTurn(g, n, sched.AtCall, position)
}

// requestTurn lets a thread continue if it is the turn of its operation, and holds it until then
// otherwise.
func (e *Enforcer) requestTurn(g *sched.Gate, n int, at sched.PointKind, position int) bool {
	t := &e.threads[n]
	t.place = at
	g.Charge(e.o.Costs.Sync)
	if e.next != position || e.acting || !e.constraintsHold(position) {
		t.held, t.waiting = true, forTurn
		e.counts.Waited++
		return false
	}
	if e.o.Relay != FlagRelay && !e.continuesRun(n, position) {
		g.Charge(e.o.Costs.SemaphoreWait)
	}
	delay := e.remainingSleep(n)
	if at != sched.AtCall && e.plan.s.Operations[position].Part == event.SignalPart {
		delay = 1 // it gets its signal when it continues
	}
	e.beginOperation(g, n)
	if delay > 0 {
		g.HoldFor(delay)
	}
	return delay == 0
}

// continuesRun reports whether a thread keeps the turn from its previous operation.
func (e *Enforcer) continuesRun(n, position int) bool {
	return e.o.Runs && position > 0 && e.plan.s.Operations[position-1].Thread == n && len(e.plan.waits[position]) == 0
}

// wakeUpDelay is how long it takes to wake a thread that is held.
func (e *Enforcer) wakeUpDelay() arch.Cycles {
	if e.o.Relay == FlagRelay {
		return e.o.Costs.SpinCheck
	}
	return e.o.Costs.SemaphoreWake
}

// remainingSleep is how long the thread whose turn it is would have to sleep still.
func (e *Enforcer) remainingSleep(n int) arch.Cycles {
	o, t := &e.plan.s.Operations[e.next], &e.threads[n]
	if o.Part != event.SystemCall || !isSleep(o.Number) {
		return 0
	}
	if e.o.SkipWait {
		e.counts.Skipped++
		return 0
	}
	return max(t.issued+o.Time, e.now) - e.now
}

// beginOperation starts the operation whose turn it is: its thread continues.
func (e *Enforcer) beginOperation(g *sched.Gate, n int) {
	t := &e.threads[n]
	o := &e.plan.s.Operations[e.next]
	e.acting = true
	for _, c := range e.plan.waits[e.next] {
		if !e.posted[c] {
			e.counts.Flipped++ // or else it was not ready
		}
	}
	switch {
	case t.place == sched.AtStart, t.place == sched.AtReturn, o.Part == event.BeginPart && follow.EnclosesOperations(o.Op):
		e.completeOperation(g, n)
	case o.Part == event.SignalPart:
		t.handles = t.blocked
		g.Affect(sched.Effect{Kind: sched.Deliver, Thread: t.id, Writes: o.Writes})
	case t.place == sched.AtCall && isAnswered(o):
		e.counts.Answered++
		g.Affect(sched.Effect{Kind: sched.Answer, Thread: t.id, Result: uint64(o.Result), Writes: e.relocateWrites(o, t.given)})
	case t.place == sched.AtEnter && e.o.SkipWait && o.Part == event.BeginPart && o.Op == event.OpBarrierWait:
		e.counts.Skipped++
		end := e.plan.s.Operations[e.plan.own[n][t.done+1]]
		g.Affect(sched.Effect{Kind: sched.Leave, Thread: t.id, Result: uint64(end.Result)})
		e.completeOperation(g, n)
	}
}

// completeOperation ends the operation whose turn it is, and gives the turn to the next.
func (e *Enforcer) completeOperation(g *sched.Gate, n int) {
	t := &e.threads[n]
	position := e.next
	t.done++
	t.base = t.total
	t.arrivals, t.allocations = arrivals{}, 0
	e.counts.Operations++
	e.since = e.now
	e.acting = false
	e.next++
	for _, c := range e.plan.posts[position] {
		e.postConstraint(g, c)
	}
	if e.leaveIfMissed(g, n) {
		return
	}
	if soon, exactly, _ := e.StopDistance(t.id, t.total); soon != anyNumber || exactly != anyNumber {
		g.Cut()
	}
	e.advanceTurn(g)
}

// advanceTurn lets the thread continue whose turn it is, if it has reached its operation.
func (e *Enforcer) advanceTurn(g *sched.Gate) {
	if e.acting || e.left != "" || e.next >= len(e.plan.s.Operations) {
		return
	}
	o := &e.plan.s.Operations[e.next]
	n := o.Thread
	t := &e.threads[n]
	position, _ := e.nextOperation(n)
	switch {
	case t.gone:
		e.leaveSchedule(g, "thread %s has ended before %s at position %d", e.plan.s.Threads[n], e.plan.s.Describe(e.next), e.next)
	case t.held && t.waiting == forTurn && position == e.next && e.constraintsHold(e.next) && t.entered != nil:
		e.advanceToCall(g, n)
	case t.held && t.waiting == forTurn && position == e.next && e.constraintsHold(e.next):
		t.held = false
		g.Release(t.id, e.wakeUpDelay()+e.remainingSleep(n))
		e.beginOperation(g, n)
	case t.blocked && isInterruption(o) && position == e.next && e.constraintsHold(e.next):
		e.beginOperation(g, n)
	case t.blocked && o.Part.EndsWait() && position == e.next && e.constraintsHold(e.next):
		// It has not been woken, or waits for a deadline.
		e.acting = true
		e.endKernelWait(g, n)
	}
}

// advanceToCall ends an operation that a thread has left for the call of another one, where it waits for its turn again.
func (e *Enforcer) advanceToCall(g *sched.Gate, n int) {
	t := &e.threads[n]
	call := t.entered
	t.held, t.entered = false, nil
	e.completeOperation(g, n)
	if e.left == "" && e.enterOperation(g, n, &sched.SyncPoint{Kind: sched.AtEnter, Thread: t.id, Sync: call}) {
		g.Release(t.id, e.wakeUpDelay())
	}
}

// endKernelWait ends the wait of a thread in the kernel as the recorded run's ended.
func (e *Enforcer) endKernelWait(g *sched.Gate, n int) {
	kind := sched.Rouse
	if e.waitTimesOut(n) {
		kind = sched.Expire
	}
	g.Affect(sched.Effect{Kind: kind, Thread: e.threads[n].id})
}

// waitTimesOut reports whether the wait in the kernel that a thread is in, or comes to, was ended by its deadline in
// the recorded run: the last wait of an operation that timed out, unless an earlier one did.
func (e *Enforcer) waitTimesOut(n int) bool {
	t, own := &e.threads[n], e.plan.own[n]
	if t.done >= len(own) {
		return false
	}
	o := &e.plan.s.Operations[own[t.done]]
	if o.Part == event.ResumePart {
		return o.Result != 0
	}
	for i := t.done - 1; o.Part == event.EndPart && i >= 0; i-- {
		before := &e.plan.s.Operations[own[i]]
		if before.Part == event.BeginPart {
			break
		}
		if before.Part == event.ResumePart && before.Result != 0 {
			return false
		}
	}
	return follow.TimedOut(o)
}

// Clock returns the time that clocks show to a thread: the recorded time of the operation that it
// is in, or of its last one. It returns false if clocks show the present.
func (e *Enforcer) Clock(id arch.ThreadID) (arch.Cycles, bool) {
	n, ok := e.numberOf(id)
	switch {
	case e.alone:
		return e.plan.clock[e.place-1], true
	case e.left != "":
		return 0, false
	case !ok:
		return 0, true
	case e.isActing(n):
		return e.plan.clock[e.next], true
	case e.threads[n].done == 0:
		return 0, true
	}
	return e.plan.clock[e.plan.own[n][e.threads[n].done-1]], true
}

// Called implements Controller.
func (e *Enforcer) Called(g *sched.Gate, id arch.ThreadID, result uint64) {
	n, ok := e.numberOf(id)
	if !ok || e.left != "" || !e.isActing(n) {
		return
	}
	o := &e.plan.s.Operations[e.next]
	if o.Part != event.SystemCall {
		return
	}
	if result != uint64(o.Result) && !hasArbitraryResult(o.Number) && !(e.plan.s.Portable && MovesData(o.Number)) {
		e.leaveSchedule(g, "thread %s gets %d from %s at position %d, and %d in the schedule", e.plan.s.Threads[n],
			int64(result), e.plan.s.Describe(e.next), e.next, o.Result)
		return
	}
	e.completeOperation(g, n)
}

// Blocked implements Controller.
func (e *Enforcer) Blocked(g *sched.Gate, id arch.ThreadID, _ bool) {
	n, ok := e.numberOf(id)
	if !ok || e.left != "" {
		return
	}
	t := &e.threads[n]
	t.blocked, t.waits = true, true
	if e.helper == n {
		e.releaseHelper(g)
	}
	if e.isActing(n) {
		e.blockActor(g, n)
	}
	if _, o := e.nextOperation(n); e.left == "" && o != nil && o.Part.EndsWait() && e.waitTimesOut(n) {
		g.Affect(sched.Effect{Kind: sched.Detach, Thread: id}) // others' wake-ups are not for it
	}
	e.advanceTurn(g)
}

// blockActor handles the thread whose operation is under way, and which waits in the kernel.
func (e *Enforcer) blockActor(g *sched.Gate, n int) {
	switch o := &e.plan.s.Operations[e.next]; {
	case o.Part == event.BeginPart, o.Part == event.ResumePart, o.Part == event.SystemCall && Forks(o.Number):
		e.completeOperation(g, n)
	case e.waitTimesOut(n):
		e.endKernelWait(g, n)
	case o.Part == event.WholePart && e.helper < 0:
		e.releaseHelper(g)
	}
}

// releaseHelper is for an operation that waits for threads whose turn comes only after it: glibc's
// pthread_cond_broadcast waits until the threads that it wakes have noticed. They run one after the
// other in the order of their turns, each until it waits again or its operation ends.
func (e *Enforcer) releaseHelper(g *sched.Gate) {
	actor := &e.threads[e.plan.s.Operations[e.next].Thread]
	e.helper = -1
	switch {
	case actor.held && actor.waiting == forHelp:
		actor.held = false
		g.Release(actor.id, 0)
		return
	case !actor.blocked:
		return // it is about to continue
	}
	n := e.nextHelper()
	if n < 0 {
		return
	}
	t := &e.threads[n]
	e.helper, t.helped = n, e.next
	switch {
	case t.held:
		t.held = false
		g.Release(t.id, 0)
	case t.blocked:
		g.Affect(sched.Effect{Kind: sched.Rouse, Thread: t.id})
	}
}

// nextHelper is the thread that is in a wait, has not helped yet, and has its turn
// first, or -1. Those come last whose waits were never over.
func (e *Enforcer) nextHelper() int {
	found, first := -1, 0
	for n := range e.threads {
		t := &e.threads[n]
		position, o := e.nextOperation(n)
		switch {
		case !t.waits || t.helped == e.next || t.held && t.place != sched.AtWake || o != nil && !o.Part.EndsWait():
			continue
		case o == nil:
			position = len(e.plan.s.Operations)
		}
		if found < 0 || position < first {
			found, first = n, position
		}
	}
	return found
}

// Woken implements Controller.
func (e *Enforcer) Woken(_ *sched.Gate, id arch.ThreadID) {
	if n, ok := e.numberOf(id); ok {
		e.threads[n].blocked = false
	}
}

// Exited implements Controller.
func (e *Enforcer) Exited(g *sched.Gate, id arch.ThreadID) {
	n, ok := e.numberOf(id)
	if !ok {
		return
	}
	e.numbers.Delete(id)
	t := &e.threads[n]
	acts := e.left == "" && e.isActing(n)
	if a := e.plan.actionOf(n, t.actions); e.plan.s.Portable && a != nil && a.kind == halt && int(a.done) == t.done {
		e.postConstraint(g, int(a.of)) // it gets no further
	}
	t.id, t.gone, t.held, t.blocked, t.waits = arch.NoThread, true, false, false, false
	if acts {
		e.completeOperation(g, n)
	} else if e.helper == n {
		e.releaseHelper(g)
	}
}

// Stepped implements Controller.
func (e *Enforcer) Stepped(g *sched.Gate, _ arch.ThreadID, _ uint64, now arch.Cycles) {
	e.now = max(e.now, now)
	if e.o.BreakOut > 0 && e.now-e.since > e.o.BreakOut && e.left == "" && !e.Complete() {
		e.leaveSchedule(g, "for %d cycles nothing of the schedule has happened; next is %s", e.o.BreakOut, e.describeMissing())
	}
}

// Stuck implements Controller.
func (e *Enforcer) Stuck(g *sched.Gate) {
	if e.Complete() && e.plan.s.Stuck {
		return // so was the recorded run
	}
	if e.Complete() {
		e.leaveSchedule(g, "the schedule is at its end, and the run is not")
		return
	}
	e.leaveSchedule(g, "no thread can continue; next is %s", e.describeMissing())
}

// describeMissing describes the next operation, and where its thread is.
func (e *Enforcer) describeMissing() string {
	o := &e.plan.s.Operations[e.next]
	t := &e.threads[o.Thread]
	where := "has not reached it"
	switch {
	case t.gone:
		where = "has ended"
	case t.id == arch.NoThread:
		where = "has not begun"
	case e.acting && t.blocked:
		where = "waits in it"
	case e.acting:
		where = "is in it"
	case t.blocked:
		where = "waits in the kernel"
	case t.held && t.waiting >= 0:
		where = fmt.Sprintf("is held for constraint %d", t.waiting)
	case t.held:
		where = "is held for a constraint"
	}
	return fmt.Sprintf("%s of thread %s at position %d, which %s", e.plan.s.Describe(e.next), e.plan.s.Threads[o.Thread], e.next, where)
}
