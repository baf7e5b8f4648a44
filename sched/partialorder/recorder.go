package partialorder

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/follow"
)

// Recorder is the Controller of a thread-parallel replica in one epoch. It lets threads run in any
// order, and records the partial order of their synchronization operations and system calls with
// vector clocks (Frost section 3.1). Operations on one entity happen one at a time, so that they
// are recorded in the order in which they took effect; a thread that waits in the kernel lets
// others act meanwhile. After Close it holds every thread at its next operation or system call,
// which is the end of the epoch (section 3.2).
type Recorder struct {
	sched.Pass
	functions     *Functions
	start         []ThreadState
	threads       []*recordedThread // in the order in which they started, including ended ones
	byID          map[arch.ThreadID]int
	entities      map[entityKey]*entityState
	births        map[arch.ThreadID]birth
	waiting       []int // threads that wait for an entity, the first one first
	constraints   [][2]int
	closing       bool
	endsAtBirth   bool                        // see EndAtCreation
	allowsSignals bool                        // see AllowSignals
	cancellations map[arch.ThreadID]stepPlace // where threads were cancelled
	stepCount     uint64                      // without the steps of atomic instructions
	atomicCount   int
}

// entityState is the state of an entity.
type entityState struct {
	clock       []uint32
	last        int // the thread that acted last, or -1
	busy        int // the thread that acts, or -1
	depth       int
	sharedClock []uint32 // of the steps that have shared it since
	sharing     []int    // the threads that act and share it
}

// clockFor returns the clock of the steps that come before one that acts on the entity.
func (x *entityState) clockFor(shares bool) []uint32 {
	if shares {
		return x.clock
	}
	return joinClocks(x.clock, x.sharedClock)
}

// isBusyFor reports whether a thread has to wait until it may act.
func (x *entityState) isBusyFor(n int, shares bool) bool {
	if x.busy >= 0 && x.busy != n {
		return true
	}
	return !shares && slices.ContainsFunc(x.sharing, func(m int) bool { return m != n })
}

// recordedThread is a thread of the epoch.
type recordedThread struct {
	id   arch.ThreadID
	name string
	// process identifies its process.
	process arch.ThreadID
	state   threadState
	clock   []uint32
	steps   []Step
	open    []openStep // steps under way, from the outermost to the innermost
	next    Step       // the step that it is about to begin, if it is held or queued
	// unordered counts its system calls without a place in the order since its last step.
	unordered int
	// The thread's instructions at the end of its last step, and before the call or operation that it
	// is in; 0 if that began in an earlier epoch.
	lastStepAt, issuedAt uint64
	inSystemCall         bool // outside of operations
	exiting              bool // no other thread may detach it
	signals              signalProgress
	cancel               cancelProgress
}

// signalProgress is the state of a thread's signals and handlers.
type signalProgress struct {
	pending          *Step  // a signal that has arrived in the system call, whose consequences are not known yet
	withheld         bool   // the thread gets no signals
	entersHandler    bool   // it will continue in a handler
	resumesOperation bool   // it continues in an operation after a handler
	handlers         int    // the number of handlers that it is in
	handlerSteps     int    // steps in handlers
	handlerEnd       uint64 // its instructions at the end of the last handler
}

// cancelProgress is the state of a thread that cancels another, or is cancelled.
type cancelProgress struct {
	paused        bool // another thread is about to cancel it
	noticePending bool // it has been cancelled, and has not run since
	sentSignal    bool // it has sent a signal in its operation
}

// NewRecorder makes the controller of an epoch that begins with the given states of threads, without
// any in the first epoch.
func NewRecorder(shared *Functions, begin []ThreadState) *Recorder {
	r := &Recorder{
		functions: shared, start: begin, byID: map[arch.ThreadID]int{}, entities: map[entityKey]*entityState{},
		births: map[arch.ThreadID]birth{}, cancellations: map[arch.ThreadID]stepPlace{},
	}
	for i := range begin {
		s := &begin[i]
		t := &recordedThread{id: s.ID, name: s.Name, process: s.Process, state: s.kind(), next: s.Next}
		for j, w := range s.Within {
			o := openStep{Step: w, index: -1, blocked: j == len(s.Within)-1 && (!s.Held || s.Woken)}
			o.blocked = o.blocked || j < len(s.Within)-1 && s.Within[j+1].Kind == HandlerStep
			t.open = append(t.open, o)
			if !o.blocked {
				r.acquireAll(i, o.entities)
			}
		}
		t.inSystemCall = !s.Held && (len(t.open) == 0 || t.open[len(t.open)-1].Kind == CalledStep)
		if t.exiting = s.Exits; t.exiting {
			r.acquireAll(i, []entity{exitEntityOf(t.id)})
		}
		r.byID[t.id] = i
		r.threads = append(r.threads, t)
	}
	return r
}

// Begin lets all held threads continue.
func (r *Recorder) Begin(g *sched.Gate) {
	for n, t := range r.threads {
		if !t.state.isHeld() {
			continue
		}
		if r.continueFrom(n) {
			g.Release(t.id, 0)
		}
	}
}

// continueFrom lets a held or queued thread continue, if its entities are free.
func (r *Recorder) continueFrom(n int) bool {
	if r.threads[n].state.isAfterWait() {
		return r.continueAfterWait(n)
	}
	return r.beginStep(n)
}

// Close ends the epoch: every thread is held at its next operation or system call. The end of a
// process ends the epoch by itself. Reopen takes it back.
func (r *Recorder) Close() { r.closing = true }

// Reopen lets the threads continue, undoing Close.
func (r *Recorder) Reopen(g *sched.Gate) {
	r.closing = false
	r.Begin(g)
}

// Closing reports whether Close was called.
func (r *Recorder) Closing() bool { return r.closing }

// Closed reports whether every thread is held or waits in the kernel.
func (r *Recorder) Closed() bool {
	return r.closing && !slices.ContainsFunc(r.threads, func(t *recordedThread) bool {
		return t.state.isAlive() && !t.isStanding() && t.state != blocked
	})
}

// isStanding reports whether a thread is held, or is queued before its next step. A thread that is
// queued when all others are held waits for one that exits.
func (t *recordedThread) isStanding() bool { return t.state.isHeld() || t.state == queuedAtStep }

// EndAtCreation has the epoch end before an operation or system call of its only thread that creates a thread or a process.
func (r *Recorder) EndAtCreation() { r.endsAtBirth = true }

// Alone reports whether the epoch has had one thread.
func (r *Recorder) Alone() bool { return len(r.threads) <= 1 && len(r.births) == 0 }

// OneIsLeft reports whether the epoch has had several threads, of which one has not ended.
func (r *Recorder) OneIsLeft() bool { return len(r.byID) == 1 && len(r.threads) > 1 }

// Steps returns the number of steps recorded so far, without those of atomic instructions.
func (r *Recorder) Steps() uint64 { return r.stepCount }

// Ask implements Controller.
func (r *Recorder) Ask(g *sched.Gate, v *sched.SyncPoint) bool {
	n := r.numberOf(v)
	t := r.threads[n]
	if t.signals.pending != nil {
		r.restartCall(g, n)
	}
	switch v.Kind {
	case sched.AtStart:
		t.clock = r.births[v.Thread].clock
		return r.reachStep(n, Step{Kind: StartStep})
	case sched.AtEnter:
		if follow.Transparent(v.Sync.Op) {
			return true
		}
		t.issuedAt = v.Instructions
		return r.reachStep(n, r.functions.stepOfOperation(v.Sync))
	case sched.AtCall:
		t.issuedAt = v.Instructions
		return r.reachStep(n, stepOfCall(v))
	case sched.AtAtomic:
		return r.reachStep(n, stepOfAtomic(v))
	case sched.AtWake:
		if continuesInHandler(&t.open, &t.signals.entersHandler, v.InOperation) {
			t.state.become(running)
			return true
		}
		return r.continueAfterWait(n)
	case sched.AtReturn:
		if !follow.Transparent(v.Sync.Op) {
			leaveHandlers(&t.open)
			r.finishInnermost(g, n, uint64(v.Sync.Result))
			t.lastStepAt = v.Instructions
			if t.signals.withheld {
				g.Cut() // it gets signals again
			}
		}
	}
	return true
}

// numberOf returns the number of a thread, a new one for a new thread.
func (r *Recorder) numberOf(v *sched.SyncPoint) int {
	n, ok := r.byID[v.Thread]
	if !ok {
		n = len(r.threads)
		r.byID[v.Thread] = n
		r.threads = append(r.threads, &recordedThread{id: v.Thread, name: v.Name, process: r.births[v.Thread].process})
	}
	return n
}

// birth is the creation of a thread.
type birth struct {
	clock   []uint32
	process arch.ThreadID
}

// NoteBirth is called when a thread has created another, of its own process or of a new one. The
// start of the new thread comes after all steps of its creator so far.
func (r *Recorder) NoteBirth(id, maker arch.ThreadID, newProcess bool) {
	b := birth{process: id}
	if n, ok := r.byID[maker]; ok {
		b.clock = r.threads[n].clock
		if !newProcess {
			b.process = r.threads[n].process
		}
	}
	r.births[id] = b
}

// reachStep decides whether a thread may begin a step.
func (r *Recorder) reachStep(n int, next Step) bool {
	t := r.threads[n]
	t.next = next
	if next.Kind == CallStep && next.Number == linux.ExitGroup {
		r.closing = true // memory is compared before it is unmapped
	}
	if r.endsAtBirth && r.Alone() && next.createsThread() {
		r.closing = true
	}
	if r.closing && !t.staysInHandler() {
		t.state.become(heldAtStep)
		return false
	}
	return r.beginStep(n)
}

// beginStep begins the step that a thread is about to do, unless its entities are busy.
func (r *Recorder) beginStep(n int) bool {
	t := r.threads[n]
	if t.next.isUnordered() {
		t.unordered++
		t.inSystemCall = true
		t.state.become(running)
		return true
	}
	if r.wouldDisturb(t) || !r.acquireAll(n, t.next.entities) {
		t.state.become(queuedAtStep)
		r.waiting = append(r.waiting, n)
		return false
	}
	t.state.become(running)
	t.unordered, t.inSystemCall = 0, t.next.Kind == CallStep
	if t.next.Kind == AtomicStep {
		return true // it gets its place when it is complete
	}
	o := openStep{Step: t.next, index: -1}
	t.reserveStep(&o)
	if o.Kind == StartStep {
		r.completeStep(n, &o)
		return true
	}
	if follow.EnclosesOperations(o.Op) {
		r.completeStep(n, &o)
		o.beginDone = true
	}
	t.open = append(t.open, o)
	return true
}

// reserveStep appends a step to the thread's steps.
func (t *recordedThread) reserveStep(o *openStep) {
	if o.index < 0 {
		o.index = len(t.steps)
		t.steps = append(t.steps, o.Step)
	}
}

// entityOf returns the state of an entity.
func (r *Recorder) entityOf(e entity) *entityState {
	x := r.entities[e.key()]
	if x == nil {
		x = &entityState{last: -1, busy: -1}
		r.entities[e.key()] = x
	}
	return x
}

// acquireAll marks entities as busy, all of them or none.
func (r *Recorder) acquireAll(n int, list []entity) bool {
	for _, e := range list {
		if r.entityOf(e).isBusyFor(n, e.shared) {
			return false
		}
	}
	for _, e := range list {
		x := r.entityOf(e)
		if e.shared {
			x.sharing = append(x.sharing, n)
			continue
		}
		x.busy = n
		x.depth++
	}
	return true
}

// completeStep gives a step its place in the order: after the thread's previous steps, and after
// the last step on each of its entities.
func (r *Recorder) completeStep(n int, o *openStep) {
	t := r.threads[n]
	for _, e := range o.entities {
		x := r.entityOf(e)
		if x.last >= 0 && x.last != n && clockComponent(x.clock, x.last) > clockComponent(t.clock, x.last) {
			r.constraints = append(r.constraints, [2]int{x.last, n})
		}
		t.clock = joinClocks(t.clock, x.clockFor(e.shared))
	}
	s := &t.steps[o.index]
	s.Clock, s.complete = t.clock, true
	if o.Op == event.OpCancel && o.Kind == BeginStep {
		r.cancellations[o.Cancelled] = stepPlace{n, o.index}
	}
	t.clock = advanceComponent(t.clock, n, uint32(o.index+1))
	for _, e := range o.entities {
		x := r.entityOf(e)
		if e.shared {
			x.sharedClock = joinClocks(x.sharedClock, t.clock)
			continue
		}
		x.clock, x.sharedClock, x.last = t.clock, nil, n
	}
	if o.Kind != AtomicStep {
		r.stepCount++
	}
}

// finishInnermost completes the innermost open step of a thread.
func (r *Recorder) finishInnermost(g *sched.Gate, n int, result uint64) {
	t := r.threads[n]
	if len(t.open) == 0 {
		return // the child of a fork returns from its parent's
	}
	o := t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
	t.reserveStep(&o)
	if o.Kind == BeginStep {
		if !o.beginDone {
			r.completeStep(n, &o)
		}
		o.Step, o.index = o.remainder(), -1
		t.reserveStep(&o)
	}
	t.steps[o.index].Result = result
	r.completeStep(n, &o)
	if o.Op == event.OpCancel {
		r.noteCancellation(t, o.Cancelled)
	}
	r.releaseAll(g, n, o.entities)
	if o.Op == event.OpCancel {
		r.resumeCancelled(g, o.Cancelled)
	}
}

// releaseAll marks entities as free, and lets threads continue that wait for them.
func (r *Recorder) releaseAll(g *sched.Gate, n int, list []entity) {
	for _, e := range list {
		switch x := r.entityOf(e); {
		case e.shared:
			if i := slices.Index(x.sharing, n); i >= 0 {
				x.sharing = slices.Delete(x.sharing, i, i+1)
			}
		case x.busy == n:
			if x.depth--; x.depth == 0 {
				x.busy = -1
			}
		}
	}
	waiting := r.waiting
	r.waiting = nil
	for _, w := range waiting {
		t := r.threads[w]
		switch {
		case !t.state.isQueued():
		case r.isBeingCancelled(t.id):
			r.waiting = append(r.waiting, w)
		case t.state == queuedAtStep && r.closing && !t.staysInHandler():
			t.state.become(heldAtStep)
		case r.continueFrom(w):
			g.Release(t.id, 0)
		}
	}
}

// continueAfterWait decides whether a thread may continue after a wait in the kernel: in an
// operation it acts on the same entities again.
func (r *Recorder) continueAfterWait(n int) bool {
	t := r.threads[n]
	if len(t.open) == 0 || !t.open[len(t.open)-1].blocked {
		t.state.become(running)
		return true
	}
	o := &t.open[len(t.open)-1]
	if !r.acquireAll(n, o.entities) {
		t.state.become(queuedAfterWait)
		r.waiting = append(r.waiting, n)
		return false
	}
	o.blocked = false
	t.state.become(running)
	return true
}

// Called implements Controller.
func (r *Recorder) Called(g *sched.Gate, id arch.ThreadID, result uint64) {
	n, ok := r.byID[id]
	if !ok {
		return
	}
	t := r.threads[n]
	if !t.inSystemCall {
		return
	}
	t.inSystemCall = false
	if t.signals.pending != nil {
		r.completeInterrupted(g, n, result)
	} else if t.inCall() {
		r.finishInnermost(g, n, result)
		t.lastStepAt = t.issuedAt
	} else {
		r.releaseAll(g, n, nil)
	}
}

// NoteTime records the kernel's time in ns at the end of a system call, in the step of which the call is.
func (r *Recorder) NoteTime(id arch.ThreadID, number uint64, now int64) {
	n, ok := r.byID[id]
	if !ok {
		return
	}
	t := r.threads[n]
	if k := len(t.open); k > 0 && !inCall(t.open) {
		if i := t.open[k-1].index; i >= 0 {
			t.steps[i].Time = now
		}
		return
	}
	if k := len(t.steps); k > 0 && t.steps[k-1].Kind == CallStep && t.steps[k-1].Number == number {
		t.steps[k-1].Time = now
	}
}

// NoteAnswer records the answer of a time-dependent system call that a thread has made within an operation.
func (r *Recorder) NoteAnswer(id arch.ThreadID, a Answer) {
	n, ok := r.byID[id]
	if !ok {
		return
	}
	t := r.threads[n]
	if k := len(t.open); k > 0 && t.open[k-1].index >= 0 {
		s := &t.steps[t.open[k-1].index]
		s.Answers = append(s.Answers, a)
	}
}

// NoteWrites records the writes of the system call that a thread has just completed, if the call is
// time-dependent or was interrupted.
func (r *Recorder) NoteWrites(id arch.ThreadID, number uint64, writes []event.Write) {
	n, ok := r.byID[id]
	if !ok {
		return
	}
	steps := r.threads[n].steps
	if k := len(steps); k > 1 && steps[k-1].Kind == SignalStep && steps[k-2].Interrupted {
		steps = steps[:k-1]
	}
	k := len(steps)
	switch {
	case k == 0:
	case steps[k-1].Kind == SignalStep && steps[k-1].Within:
		steps[k-1].Writes = append(steps[k-1].Writes, writes...)
	case (steps[k-1].Kind == CallStep || steps[k-1].Kind == CalledStep) && steps[k-1].Number == number:
		steps[k-1].Writes = writes
	}
}

// Blocked implements Controller.
func (r *Recorder) Blocked(g *sched.Gate, id arch.ThreadID, inside bool) {
	n, ok := r.byID[id]
	if !ok {
		return
	}
	t := r.threads[n]
	t.state.become(blocked)
	t.signals.entersHandler = false
	r.setExiting(g, n, false)
	if inside {
		leaveHandlers(&t.open)
	}
	if len(t.open) == 0 || t.open[len(t.open)-1].blocked {
		r.releaseAll(g, n, nil)
		return
	}
	o := &t.open[len(t.open)-1]
	if o.Kind == BeginStep && !o.beginDone {
		r.completeStep(n, o)
		o.beginDone = true
	}
	if o.Kind == WholeStep && r.functions.usesFiles(&o.Step) {
		r.splitOperation(n, o)
	}
	if inCall(t.open) {
		t.reserveStep(o)
		t.steps[o.index].Waits = true
		r.completeStep(n, o)
		o.Step, o.index = o.remainder(), -1
	}
	o.blocked = true
	r.releaseAll(g, n, o.entities)
}

// Exited implements Controller. A thread that another thread ends completes no step.
func (r *Recorder) Exited(g *sched.Gate, id arch.ThreadID) {
	n, ok := r.byID[id]
	if !ok {
		return
	}
	t := r.threads[n]
	if t.signals.pending != nil {
		r.restartCall(g, n)
	}
	r.orderKill(n)
	if k := len(t.open); k > 0 && t.open[k-1].Op == event.OpCancel {
		r.resumeCancelled(g, t.open[k-1].Cancelled)
	}
	last := t.state
	t.state.become(exited)
	r.setExiting(g, n, false)
	delete(r.byID, id)
	if t.next.Kind == AtomicStep && last == running {
		r.releaseAll(g, n, t.next.entities) // it has faulted
	}
	own := len(t.open) > 0 && t.open[len(t.open)-1].endsThread()
	open := t.open
	t.open = nil
	for i := len(open) - 1; i >= 0; i-- {
		o := open[i]
		if own {
			t.reserveStep(&o)
			o.entities = append(slices.Clone(o.entities), memoryAndKernel...)
			r.completeStep(n, &o)
		}
		r.releaseAll(g, n, open[i].entities)
	}
	t.steps = completeSteps(t.steps)
	if last == blocked && t.next.isUnordered() {
		t.unordered-- // the call had no effect
	}
}
