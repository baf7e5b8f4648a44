package partialorder

import (
	"fmt"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/follow"
)

// Replayer is the Controller of an epoch-parallel replica. Threads do the steps of the epoch's
// partial order, each after the steps that its vector clock names are complete (Frost section 3.1),
// and are held after their last. Time-dependent system calls return the results of the first
// replica.
//
// A thread that does another step than in the first replica has diverged: the cause is a data race,
// since nothing else differs. It continues without constraints until it has done as many steps as
// there, and other threads do not wait for it. To lock and unlock a mutex that the first replica
// did not, or the reverse, is a benign divergence (section 3.3).
//
// Invariant: unless a thread diverges, no step happens before one that its Clock names.
type Replayer struct {
	sched.Pass
	functions  *Functions
	order      *Order
	threads    []*replayedThread
	byID       map[arch.ThreadID]int
	clock      []uint32 // the replay vector clock
	divergence string   // the first divergence
	benign     string   // the first benign divergence
	progressed bool     // the clock has advanced since waiting threads were considered
	endedWaits bool
	uses       *uses
	// cancelTargets are the threads, by number, that have a meeting point with a cancellation.
	cancelTargets map[int]bool
}

// replayedThread is a thread of the epoch.
type replayedThread struct {
	id             arch.ThreadID
	name           string
	state          threadState
	epochOver      bool // it is held after its last step
	next           Step
	position       int // the index of its next step
	unordered      int
	open           []openStep
	diverged       bool // it has done another step than in the first replica
	continuesEarly bool // it continues from its wait before its turn, since another thread waits for that
	// stopsEarly reports that the other thread has continued, so that this one must wait again.
	stopsEarly bool
	extraLock  event.ObjectID // a lock that the first replica did not take
	exiting    bool           // no other thread may detach it
	extraSteps int            // steps after its last that it may do: ContinueDiverged
	// The thread's instructions at the end of its last step, and before the call or operation that
	// it is in. RestartsCall reports that the call is restarted.
	lastStepAt, issuedAt        uint64
	process                     arch.ThreadID // ThreadState.Process
	entersHandler, restartsCall bool
	pendingWrites               []event.Write // of the call that a signal ends
	answering, answered         int           // answers given within the operation of the step of this index
	attempts                    int           // of a CMPXCHG, which have failed in place of one that has stored
}

// NewReplayer makes the controller of a replica that begins where the order does.
func NewReplayer(shared *Functions, order *Order) *Replayer {
	f := &Replayer{
		functions: shared, order: order, byID: map[arch.ThreadID]int{}, clock: make([]uint32, len(order.Threads)),
		uses: usesWithin(order.Begin),
	}
	f.cancelTargets = order.cancelTargets()
	for i := range order.Begin {
		s := &order.Begin[i]
		t := &replayedThread{id: s.ID, name: s.Name, state: s.kind(), next: s.Next, exiting: s.Exits, process: s.Process}
		for _, w := range s.Within {
			t.open = append(t.open, openStep{Step: w, index: -1})
		}
		f.byID[t.id] = i
		f.threads = append(f.threads, t)
	}
	return f
}

// Begin lets all threads continue whose turn it is.
func (f *Replayer) Begin(g *sched.Gate) {
	for n, t := range f.threads {
		if t.state == heldAfterWait && f.continueAfterWait(n) || t.state == heldAtStep && f.reachStep(g, n) {
			g.Release(t.id, 0)
		}
	}
}

// Diverged describes the first divergence; it is empty if the run did not diverge.
func (f *Replayer) Diverged() string { return f.divergence }

// BenignDivergence describes the first divergence without consequences; it is empty if there was
// none.
func (f *Replayer) BenignDivergence() string { return f.benign }

// Ask implements Controller. Threads whose turn has come continue at once: one with a higher
// priority preempts the thread that acts.
func (f *Replayer) Ask(g *sched.Gate, v *sched.SyncPoint) bool {
	n := f.numberOf(v)
	goes := f.decidePoint(g, n, v)
	if f.nextIsSignal(n, false) {
		g.Cut() // the place where the thread stops is computed anew
	}
	f.progressed = f.progressed || !goes && (f.cancelTargets[n] || f.nextIsAwaited(n)) // another thread may wait for that
	if f.progressed {
		for m := range f.threads {
			if m != n {
				f.releaseIfReady(g, m)
			}
		}
	}
	return goes
}

// decidePoint decides whether a thread may continue at a synchronization point.
func (f *Replayer) decidePoint(g *sched.Gate, n int, v *sched.SyncPoint) bool {
	t := f.threads[n]
	f.passEnclosing(n)
	t.continuesEarly, t.stopsEarly = false, false
	f.leaveRestartedCall(t)
	switch v.Kind {
	case sched.AtStart:
		t.next = Step{Kind: StartStep}
		return f.reachStep(g, n)
	case sched.AtEnter:
		if follow.Transparent(v.Sync.Op) {
			return true
		}
		t.next, t.issuedAt = f.functions.stepOfOperation(v.Sync), v.Instructions
		return f.reachStep(g, n)
	case sched.AtCall:
		t.next, t.issuedAt = stepOfCall(v), v.Instructions
		return f.reachStep(g, n)
	case sched.AtAtomic:
		if exactly, stops := f.instructionsToSignal(n, v.Instructions); stops && exactly == 0 {
			return true // it reaches the instruction again
		}
		t.next = stepOfAtomic(v)
		return f.reachStep(g, n)
	case sched.AtWake:
		return f.resumeAtWake(n, v)
	case sched.AtReturn:
		return follow.Transparent(v.Sync.Op) || f.leaveOperation(n, v)
	case sched.AtInstruction:
		return f.deliverSignal(g, n)
	}
	return true
}

// resumeAtWake decides whether a thread may continue after a wait. In a handler within an operation
// and in a once routine it may.
func (f *Replayer) resumeAtWake(n int, v *sched.SyncPoint) bool {
	t := f.threads[n]
	if continuesInHandler(&t.open, &t.entersHandler, v.InOperation) {
		t.state.become(running)
		return true
	}
	return f.continueInRoutine(t, v.InOperation) || f.continueAfterWait(n)
}

// leaveOperation handles the end of an operation.
func (f *Replayer) leaveOperation(n int, v *sched.SyncPoint) bool {
	t := f.threads[n]
	leaveHandlers(&t.open)
	t.lastStepAt = v.Instructions
	return f.completeReturn(n, uint64(v.Sync.Result))
}

// numberOf returns the number of a thread. A thread that the first replica did not have diverges.
func (f *Replayer) numberOf(v *sched.SyncPoint) int {
	n, ok := f.byID[v.Thread]
	if ok {
		return n
	}
	n = slices.IndexFunc(f.order.Threads, func(l ThreadLog) bool { return l.ID == v.Thread })
	if n < 0 {
		n = max(len(f.threads), len(f.order.Threads))
	}
	for n >= len(f.threads) {
		f.threads = append(f.threads, &replayedThread{state: notStarted})
	}
	f.threads[n] = &replayedThread{id: v.Thread, name: v.Name, process: f.logOf(n).Process}
	f.byID[v.Thread] = n
	if n >= len(f.order.Threads) {
		f.divergeAt(n, "a thread that was not there")
	}
	return n
}

// logOf returns the part of the order that is a thread's.
func (f *Replayer) logOf(n int) *ThreadLog {
	if n < len(f.order.Threads) {
		return &f.order.Threads[n]
	}
	return &ThreadLog{}
}

// divergeAt marks a thread as diverged; found names the step that it does instead.
func (f *Replayer) divergeAt(n int, found string) {
	t := f.threads[n]
	if t.diverged {
		return
	}
	if f.divergence == "" {
		f.divergence = fmt.Sprintf("thread %s at step %d: %s", t.name, t.position, found)
		if t.position < len(f.logOf(n).Steps) {
			f.divergence += ", not " + f.logOf(n).Steps[t.position].String()
		}
	}
	t.diverged, f.progressed = true, true
}

// reachStep decides whether a thread may begin a step.
func (f *Replayer) reachStep(g *sched.Gate, n int) bool {
	t, l := f.threads[n], f.logOf(n)
	t.state.become(heldAtStep)
	f.passAttempts(n)
	if t.next.Kind == AtomicStep && t.lastStepAt == 0 && f.nextIsSignal(n, false) {
		t.state.become(running) // it was held there, and gets the signal at once
		return true
	}
	if t.next.Kind == AtomicStep && t.position >= len(l.Steps) && f.order.Endless {
		t.state.become(running)
		return true
	}
	if f.nextIsRestartedCall(n) {
		return f.beginInterruptedCall(g, n)
	}
	if t.next.isUnordered() && !f.nextIsInterruptedCall(n) {
		if t.position >= len(l.Steps) && t.unordered >= l.Unordered && t.extraSteps == 0 && !f.order.Endless {
			t.epochOver = true
			return false
		}
		t.unordered++
		t.state.become(running)
		return true
	}
	if t.position >= len(l.Steps) && t.extraSteps == 0 {
		t.epochOver = true
		return false
	}
	if !t.diverged && !l.Steps[t.position].matches(&t.next) && !f.acceptBenign(n) {
		f.divergeAt(n, t.next.String())
	}
	if !t.diverged && t.extraLock == 0 && !f.isEligible(&l.Steps[t.position]) {
		return false
	}
	if !t.diverged && t.extraLock == 0 && l.Steps[t.position].Split {
		t.next.Kind = BeginStep
	}
	f.beginStep(g, n)
	return true
}

// acceptBenign handles a thread that reaches another step than in the first replica. It returns
// false unless the thread takes an additional lock or leaves one out, with no other consequence.
func (f *Replayer) acceptBenign(n int) bool {
	t, steps := f.threads[n], f.logOf(n).Steps[f.threads[n].position:]
	note := func() bool {
		if f.benign == "" {
			f.benign = fmt.Sprintf("thread %s at step %d: %s, not %s", t.name, t.position, t.next.String(), steps[0].String())
		}
		return true
	}
	switch {
	case t.extraLock != 0:
		return t.next.isUnlock() && t.next.Object == t.extraLock
	case len(steps) > 2 && steps[0].isLock() && steps[1].isUnlock() && steps[0].Object == steps[1].Object && steps[2].matches(&t.next):
		t.position += 2
		f.advanceClock(n, t.position)
		return note()
	case t.next.isLock():
		t.extraLock = t.next.Object
		return note()
	}
	return false
}

// isEligible reports whether all steps that come before a step are complete.
func (f *Replayer) isEligible(s *Step) bool {
	for m, n := range s.Clock {
		if f.clock[m] < n && !f.needsNoWaiting(m) {
			return false
		}
	}
	return s.MeetingStep == 0 || f.hasMet(s)
}

// needsNoWaiting reports whether other threads do not wait for a thread's steps: it has diverged or
// ended.
func (f *Replayer) needsNoWaiting(n int) bool {
	return n < len(f.threads) && f.threads[n].state != notStarted && (f.threads[n].diverged || f.threads[n].state == exited)
}

// beginStep begins the step that a thread is about to do.
func (f *Replayer) beginStep(g *sched.Gate, n int) {
	t := f.threads[n]
	t.state.become(running)
	t.unordered = 0
	t.extraSteps = max(0, t.extraSteps-1)
	f.uses.add(&t.next)
	f.showTime(g, n)
	o := openStep{Step: t.next, index: -1}
	if t.extraLock == 0 {
		o.index = t.position
		t.position++
	}
	switch {
	case o.Kind == StartStep:
		f.advanceClock(n, o.index+1)
		return
	case t.diverged:
	case o.Kind == CallStep && o.index >= 0 && f.logOf(n).Steps[o.index].isAnswered():
		s := &f.logOf(n).Steps[o.index]
		g.Affect(sched.Effect{Kind: sched.Answer, Thread: t.id, Result: s.Result, Writes: s.Writes})
	case follow.EnclosesOperations(o.Op):
		o.beginDone, o.beginPending = true, true
	}
	t.open = append(t.open, o)
}

// answerWithin gives a system call within an operation the answer that it had in the first replica.
func (f *Replayer) answerWithin(g *sched.Gate, id arch.ThreadID, number uint64) {
	n, ok := f.byID[id]
	if !ok || f.threads[n].diverged || len(f.threads[n].open) == 0 {
		return
	}
	t := f.threads[n]
	i := t.open[len(t.open)-1].index
	if i < 0 {
		return
	}
	if i != t.answering {
		t.answering, t.answered = i, 0
	}
	if list := f.logOf(n).Steps[i].Answers; t.answered < len(list) && list[t.answered].Number == number {
		a := &list[t.answered]
		t.answered++
		g.Affect(sched.Effect{Kind: sched.Answer, Thread: id, Result: a.Result, Writes: a.Writes})
	}
}

// showTime has the step that a thread begins leave the time stamps that it left in the first replica.
func (f *Replayer) showTime(g *sched.Gate, n int) {
	t := f.threads[n]
	e := sched.Effect{Kind: sched.ShowTime, Thread: t.id}
	if !t.diverged && t.extraLock == 0 {
		if e.Result = uint64(f.logOf(n).Steps[t.position].Time); e.Result == 0 {
			return
		}
	}
	g.Affect(e)
}

// Called implements Controller.
func (f *Replayer) Called(g *sched.Gate, id arch.ThreadID, result uint64) {
	n, ok := f.byID[id]
	if !ok {
		return
	}
	t := f.threads[n]
	t.restartsCall = false
	f.overwriteMemory(g, n)
	if !inCall(t.open) {
		return
	}
	t.lastStepAt = t.issuedAt
	o := &t.open[len(t.open)-1]
	f.passWait(n, o)
	for o.index < 0 && !t.diverged && t.position < len(f.logOf(n).Steps) && f.logOf(n).Steps[t.position].matches(&o.Step) {
		o.index = t.position
		t.position++
		f.passWait(n, o)
	}
	if o.Kind == CalledStep && o.index >= 0 && !t.diverged {
		t.pendingWrites = f.logOf(n).Steps[o.index].Writes
		f.overwriteMemory(g, n)
	}
	f.finishInnermost(n, result)
}

// Blocked implements Controller.
func (f *Replayer) Blocked(g *sched.Gate, id arch.ThreadID, inside bool) {
	n, ok := f.byID[id]
	if !ok {
		return
	}
	t := f.threads[n]
	f.passEnclosing(n)
	t.continuesEarly, t.stopsEarly = false, false
	t.state.become(blocked)
	t.entersHandler = false
	if inside {
		leaveHandlers(&t.open)
	}
	f.progressed = f.progressed || f.nextIsSignal(n, true)
	if len(t.open) == 0 {
		return
	}
	o := &t.open[len(t.open)-1]
	if o.Kind == BeginStep && !o.beginDone {
		o.beginDone = true
		if o.index >= 0 {
			f.advanceClock(n, o.index+1)
		}
	}
	f.passWait(n, o)
	if o.Kind == CalledStep && o.index >= 0 && !t.diverged {
		f.logOf(n).Steps[o.index].endWait(g, t.id)
	}
	f.expireWait(g, n)
}

// Exited implements Controller.
func (f *Replayer) Exited(_ *sched.Gate, id arch.ThreadID) {
	n, ok := f.byID[id]
	if !ok {
		return
	}
	delete(f.byID, id)
	t := f.threads[n]
	if len(t.open) > 0 && t.open[len(t.open)-1].endsThread() && !t.diverged && t.position < len(f.logOf(n).Steps) {
		f.divergeAt(n, "its end")
	}
	t.state.become(exited)
	f.progressed = true
}

// Stepped implements Controller: threads continue whose turn has come.
func (f *Replayer) Stepped(g *sched.Gate, _ arch.ThreadID, _ uint64, _ arch.Cycles) {
	for f.progressed {
		f.progressed = false
		for n := range f.threads {
			f.releaseIfReady(g, n)
		}
	}
}

// releaseIfReady lets a held thread continue, if it may.
func (f *Replayer) releaseIfReady(g *sched.Gate, n int) {
	t := f.threads[n]
	if (t.state == blocked || t.state == heldAfterWait) && f.nextIsSignal(n, true) {
		f.deliverWhileWaiting(g, n)
		return
	}
	if t.state == blocked {
		f.expireWait(g, n)
	}
	if !t.state.isHeld() || t.epochOver {
		return
	}
	goes := false
	switch {
	case t.state == heldAtSignal:
		goes = f.deliverSignal(g, n)
	case t.state == heldAtReturn && t.diverged:
		t.open, goes = t.open[:len(t.open)-1], true
		t.state.become(running)
	case t.state == heldAtReturn:
		o := &t.open[len(t.open)-1]
		if goes = f.claimStep(n, o); goes {
			t.state.become(running)
			f.finishInnermost(n, f.recordedResult(n, o))
		}
	case t.state == heldAfterWait:
		goes = f.continueAfterWait(n)
	default:
		goes = f.reachStep(g, n)
	}
	if goes {
		g.Release(t.id, 0)
	}
}

// recordedResult returns the result of a step in the first replica. The result in this one was
// compared already, or is not known any more.
func (f *Replayer) recordedResult(n int, o *openStep) uint64 {
	if o.index < 0 {
		return 0
	}
	return f.logOf(n).Steps[o.index].Result
}
