package sched

import (
	"fmt"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// peek returns the position of a thread's next operation, or -1.
func (e *Enforcer) peek(n int) (position int, o *event.Operation) {
	own, t := e.plan.own[n], &e.threads[n]
	if t.done >= len(own) {
		return -1, nil
	}
	return own[t.done], &e.plan.s.Operations[own[t.done]]
}

// acts tells whether the operation that is under way is the thread's.
func (e *Enforcer) acts(n int) bool { return e.acting && e.plan.s.Operations[e.next].Thread == n }

// differs leaves the schedule because a thread does something else.
func (e *Enforcer) differs(g *Gate, n int, found string) bool {
	expected := "nothing more"
	if position, o := e.peek(n); o != nil {
		expected = fmt.Sprintf("%s at position %d", e.plan.s.Describe(position), position)
	}
	e.leave(g, "thread %s comes to %s, and the schedule has %s", e.plan.s.Threads[n], found, expected)
	return true
}

// beyond holds a thread for good that has come to what the recorded run had no
// more: it ended before.
func (e *Enforcer) beyond(g *Gate, n int, at Place) bool {
	if e.mayLeave() {
		return e.differs(g, n, "more")
	}
	t := &e.threads[n]
	t.held, t.place, t.waiting = true, at, forGood
	if a := e.plan.action(n, t.actions); a != nil && a.kind == halt && int(a.done) == t.done {
		e.post(g, int(a.of))
	}
	return false
}

// What a thread waits for that is held, besides constraints: its turn, that
// another has helped it, nothing.
const forTurn, forHelp, forGood = -1, -2, -3

func (e *Enforcer) start(g *Gate, n int) bool {
	if position, o := e.peek(n); o != nil && o.Part == event.StartPart {
		return e.turn(g, n, AtStart, position)
	}
	return true
}

// enter handles a thread that comes to an operation.
func (e *Enforcer) enter(g *Gate, n int, v *Visit) bool {
	if Transparent(v.Sync.Op) {
		return true
	}
	position, o := e.peek(n)
	if v.Sync.Op == event.OpAllocate {
		return e.allocate(g, n, position, o)
	}
	switch {
	case o == nil:
		return e.beyond(g, n, AtEnter)
	case o.Op != v.Sync.Op || o.Part != event.WholePart && o.Part != event.BeginPart:
		return e.differs(g, n, v.Sync.Op.String())
	case !e.bind(o, v.Sync):
		return e.differs(g, n, fmt.Sprintf("%s of another object, at %#x,", v.Sync.Op, uint64(v.Sync.Addr)))
	}
	return e.turn(g, n, AtEnter, position)
}

// Schedules implements ScheduleController.
func (e *Enforcer) Schedules() bool { return e.plan.s.Allocators && !e.plan.s.Portable }

// allocate handles a thread that calls malloc or its kin: some of the calls are
// operations.
func (e *Enforcer) allocate(g *Gate, n, position int, o *event.Operation) bool {
	t := &e.threads[n]
	t.allocations++
	if o == nil || o.Op != event.OpAllocate || o.Result != t.allocations {
		return true
	}
	return e.turn(g, n, AtEnter, position)
}

// bind tells whether an operation is on the object that the schedule says: each
// has one address.
func (e *Enforcer) bind(o *event.Operation, s *event.Sync) bool {
	if o.Object == 0 || !inMemory(o.Op) {
		return true
	}
	if at, known := e.bound[o.Object]; known {
		return at == s.Addr
	}
	e.bound[o.Object] = s.Addr
	return true
}

// inMemory tells which operations are on an object that is where Sync.Addr says.
func inMemory(op event.SyncOp) bool {
	return op >= event.OpMutexInit && op <= event.OpSemDestroy || op >= event.OpSemWait && op <= event.OpSemPost
}

// returned handles a thread that comes out of an operation.
func (e *Enforcer) returned(g *Gate, n int, v *Visit) bool {
	if Transparent(v.Sync.Op) {
		return true
	}
	if e.helper == n {
		defer e.help(g)
	}
	position, o := e.peek(n)
	if v.Sync.Op == event.OpAllocate && (!e.acts(n) || o.Op != event.OpAllocate) {
		return true
	}
	if o != nil && o.Part == event.BeginPart && e.acts(n) {
		e.complete(g, n) // it did not wait
		position, o = e.peek(n)
	}
	switch {
	case e.left != "":
		return true
	case o == nil:
		return e.beyond(g, n, AtReturn)
	case o.Op != v.Sync.Op || o.Part != event.WholePart && o.Part != event.EndPart:
		return e.differs(g, n, "the end of "+v.Sync.Op.String())
	case v.Sync.Phase == event.Return && v.Sync.Result != o.Result && o.Op != event.OpSemOpen && o.Op != event.OpAllocate:
		return e.differs(g, n, fmt.Sprintf("the end of %s with the result %d, not %d,", o.Op, v.Sync.Result, o.Result))
	case e.acts(n):
		e.complete(g, n)
		return true
	}
	return e.turn(g, n, AtReturn, position)
}

// wake handles a thread that goes on from a wait in the kernel.
func (e *Enforcer) wake(g *Gate, n int, v *Visit) bool {
	t := &e.threads[n]
	t.blocked = false
	position, o := e.peek(n)
	t.waits = (o == nil || o.Part == event.EndPart) && v.Inside && !e.acts(n)
	if t.handles {
		t.handles, t.waits = false, false
		return true
	}
	switch {
	case interrupts(o):
		return e.turn(g, n, AtWake, position)
	case e.helper == n:
		return true
	case e.acts(n) && e.helper >= 0:
		t.held, t.place, t.waiting = true, AtWake, forHelp
		return false
	case o == nil && v.Inside:
		return e.beyond(g, n, AtWake)
	case o == nil || o.Part != event.EndPart || !v.Inside || e.acts(n):
		return true
	}
	return e.turn(g, n, AtWake, position)
}

// call handles a thread that has issued a system call.
func (e *Enforcer) call(g *Gate, n int, v *Visit) bool {
	if !Ordered(v.Call.Number) || AddressSpace(v.Call.Number) && !e.plan.memory || e.plan.free(v.Call) || e.threads[n].heap {
		return true
	}
	position, o := e.peek(n)
	switch {
	case o == nil:
		return e.beyond(g, n, AtCall)
	case interrupts(o):
		return e.turn(g, n, AtCall, position)
	case o.Part != event.SystemCall || o.Number != v.Call.Number:
		return e.differs(g, n, fmt.Sprintf("system call %d", v.Call.Number))
	}
	e.threads[n].issued, e.threads[n].given = v.Now, v.Call.Args[:]
	return e.turn(g, n, AtCall, position)
}

// turn lets a thread go on from a place if it is the turn of its operation, and
// has it wait for that otherwise.
func (e *Enforcer) turn(g *Gate, n int, at Place, position int) bool {
	t := &e.threads[n]
	t.place = at
	g.Charge(e.o.Costs.Sync)
	if e.next != position || e.acting || !e.ready(position) {
		t.held, t.waiting = true, forTurn
		e.counts.Waited++
		return false
	}
	if e.o.Relay != FlagRelay {
		g.Charge(e.o.Costs.SemaphoreWait)
	}
	delay := e.sleep(n)
	if at != AtCall && e.plan.s.Operations[position].Part == event.SignalPart {
		delay = 1 // it gets its signal when it goes on
	}
	e.begin(g, n)
	if delay > 0 {
		g.HoldFor(delay)
	}
	return delay == 0
}

// delay is how long it takes to wake a thread that is held.
func (e *Enforcer) delay() event.Cycles {
	if e.o.Relay == FlagRelay {
		return e.o.Costs.SpinCheck
	}
	return e.o.Costs.SemaphoreWake
}

// sleep is how long the thread whose turn it is would have to sleep still.
func (e *Enforcer) sleep(n int) event.Cycles {
	o, t := &e.plan.s.Operations[e.next], &e.threads[n]
	if o.Part != event.SystemCall || !sleeps(o.Number) {
		return 0
	}
	if e.o.SkipWait {
		e.counts.Skipped++
		return 0
	}
	return max(t.issued+o.Time, e.now) - e.now
}

// begin lets the operation happen whose turn it is: its thread goes on.
func (e *Enforcer) begin(g *Gate, n int) {
	t := &e.threads[n]
	o := &e.plan.s.Operations[e.next]
	e.acting = true
	for _, c := range e.plan.waits[e.next] {
		if !e.posted[c] {
			e.counts.Flipped++ // or else it was not ready
		}
	}
	switch {
	case t.place == AtStart, t.place == AtReturn, o.Part == event.BeginPart && once(o.Op):
		e.complete(g, n)
	case o.Part == event.SignalPart:
		t.handles = t.blocked
		g.Affect(Effect{Kind: Deliver, Thread: t.id, Writes: o.Writes})
	case t.place == AtCall && answered(o):
		e.counts.Answered++
		g.Affect(Effect{Kind: Answer, Thread: t.id, Result: uint64(o.Result), Writes: e.moved(o, t.given)})
	case t.place == AtEnter && e.o.SkipWait && o.Part == event.BeginPart && o.Op == event.OpBarrierWait:
		e.counts.Skipped++
		end := e.plan.s.Operations[e.plan.own[n][t.done+1]]
		g.Affect(Effect{Kind: Leave, Thread: t.id, Result: uint64(end.Result)})
		e.complete(g, n)
	}
}

// complete ends the operation whose turn it is, and gives the turn to the next.
func (e *Enforcer) complete(g *Gate, n int) {
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
		e.post(g, c)
	}
	if e.missed(g, n) {
		return
	}
	if soon, exactly, _ := e.Left(t.id, t.total); soon != anyNumber || exactly != anyNumber {
		g.Cut()
	}
	e.advance(g)
}

// advance lets the thread go on whose turn it is, if it is there.
func (e *Enforcer) advance(g *Gate) {
	if e.acting || e.left != "" || e.next >= len(e.plan.s.Operations) {
		return
	}
	o := &e.plan.s.Operations[e.next]
	n := o.Thread
	t := &e.threads[n]
	position, _ := e.peek(n)
	switch {
	case t.gone:
		e.leave(g, "thread %s has ended before %s at position %d", e.plan.s.Threads[n], e.plan.s.Describe(e.next), e.next)
	case t.held && t.waiting == forTurn && position == e.next && e.ready(e.next):
		t.held = false
		g.Release(t.id, e.delay()+e.sleep(n))
		e.begin(g, n)
	case t.blocked && interrupts(o) && position == e.next && e.ready(e.next):
		e.begin(g, n)
	case t.blocked && o.Part == event.EndPart && position == e.next && e.ready(e.next):
		// It has not been woken, or waits for a deadline.
		e.acting = true
		e.rouse(g, n, o)
	}
}

// rouse ends the wait of a thread in the kernel as the recorded run's ended.
func (e *Enforcer) rouse(g *Gate, n int, o *event.Operation) {
	kind := Rouse
	if timedOut(o) {
		kind = Expire
	}
	g.Affect(Effect{Kind: kind, Thread: e.threads[n].id})
}

// Clock is what clocks show to a thread: the recorded time of the operation that
// it is in, or of its last. False: they show the present.
func (e *Enforcer) Clock(id event.ThreadID) (event.Cycles, bool) {
	n, ok := e.find(id)
	switch {
	case e.alone:
		return e.plan.clock[e.place-1], true
	case e.left != "":
		return 0, false
	case !ok:
		return 0, true
	case e.acts(n):
		return e.plan.clock[e.next], true
	case e.threads[n].done == 0:
		return 0, true
	}
	return e.plan.clock[e.plan.own[n][e.threads[n].done-1]], true
}

// Called implements Controller.
func (e *Enforcer) Called(g *Gate, id event.ThreadID, result uint64) {
	n, ok := e.find(id)
	if !ok || e.left != "" || !e.acts(n) {
		return
	}
	o := &e.plan.s.Operations[e.next]
	if o.Part != event.SystemCall {
		return
	}
	if result != uint64(o.Result) && !addressed(o.Number) && !(e.plan.s.Portable && Moves(o.Number)) {
		e.leave(g, "thread %s gets %d from %s at position %d, and %d in the schedule", e.plan.s.Threads[n],
			int64(result), e.plan.s.Describe(e.next), e.next, o.Result)
		return
	}
	e.complete(g, n)
}

// Blocked implements Controller.
func (e *Enforcer) Blocked(g *Gate, id event.ThreadID, _ bool) {
	n, ok := e.find(id)
	if !ok || e.left != "" {
		return
	}
	t := &e.threads[n]
	t.blocked, t.waits = true, true
	if e.helper == n {
		e.help(g)
	}
	if !e.acts(n) {
		return
	}
	switch o := &e.plan.s.Operations[e.next]; {
	case o.Part == event.BeginPart, o.Part == event.SystemCall && Forks(o.Number):
		e.complete(g, n)
	case timedOut(o):
		e.rouse(g, n, o)
	case o.Part == event.WholePart && e.helper < 0:
		e.help(g)
	}
}

// help is for an operation that waits for threads that are to go on only after
// it: glibc's pthread_cond_broadcast waits until those that it wakes have noticed.
// They run, one after the other in the order of their turns, each until it waits
// again or comes out of its operation.
func (e *Enforcer) help(g *Gate) {
	actor := &e.threads[e.plan.s.Operations[e.next].Thread]
	e.helper = -1
	switch {
	case actor.held && actor.waiting == forHelp:
		actor.held = false
		g.Release(actor.id, 0)
		return
	case !actor.blocked:
		return // it is about to go on
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
		g.Affect(Effect{Kind: Rouse, Thread: t.id})
	}
}

// nextHelper is the thread that is in a wait, has not helped yet, and has its turn
// first, or -1. Those come last whose waits were never over.
func (e *Enforcer) nextHelper() int {
	found, first := -1, 0
	for n := range e.threads {
		t := &e.threads[n]
		position, o := e.peek(n)
		switch {
		case !t.waits || t.helped == e.next || t.held && t.place != AtWake || o != nil && o.Part != event.EndPart:
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
func (e *Enforcer) Woken(_ *Gate, id event.ThreadID) {
	if n, ok := e.find(id); ok {
		e.threads[n].blocked = false
	}
}

// Exited implements Controller.
func (e *Enforcer) Exited(g *Gate, id event.ThreadID) {
	n, ok := e.find(id)
	if !ok {
		return
	}
	e.numbers.Delete(id)
	t := &e.threads[n]
	acts := e.left == "" && e.acts(n)
	if a := e.plan.action(n, t.actions); e.plan.s.Portable && a != nil && a.kind == halt && int(a.done) == t.done {
		e.post(g, int(a.of)) // it gets no further
	}
	t.id, t.gone, t.held, t.blocked, t.waits = event.NoThread, true, false, false, false
	if acts {
		e.complete(g, n)
	} else if e.helper == n {
		e.help(g)
	}
}

// Stepped implements Controller.
func (e *Enforcer) Stepped(g *Gate, _ event.ThreadID, _ uint64, now event.Cycles) {
	e.now = max(e.now, now)
	if e.o.BreakOut > 0 && e.now-e.since > e.o.BreakOut && e.left == "" && !e.Complete() {
		e.leave(g, "for %d cycles nothing of the schedule has happened; next is %s", e.o.BreakOut, e.missing())
	}
}

// Stuck implements Controller.
func (e *Enforcer) Stuck(g *Gate) {
	if e.Complete() && e.plan.s.Stuck {
		return // so was the recorded run
	}
	if e.Complete() {
		e.leave(g, "the schedule is at its end, and the run is not")
		return
	}
	e.leave(g, "no thread can go on; next is %s", e.missing())
}

// missing says what is to happen next, and where its thread is.
func (e *Enforcer) missing() string {
	o := &e.plan.s.Operations[e.next]
	t := &e.threads[o.Thread]
	where := "has not come to it"
	switch {
	case t.gone:
		where = "has ended"
	case t.id == event.NoThread:
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
