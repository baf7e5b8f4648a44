package sched

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// OrderRecorder is the Controller of a thread-parallel replica in one epoch: it
// lets threads run as they come, and notes the partial order of their
// synchronization operations and system calls by vector clocks (Frost section
// 3.1). Operations on one thing happen one at a time, so that the order in which
// they are noted is the one in which they took effect; a thread that waits in the
// kernel lets others act meanwhile. When it is told to, it brings every thread to
// a stand at its next operation or system call: the epoch's end (section 3.2).
type OrderRecorder struct {
	Pass
	shared   *Shared
	begin    []Standing
	threads  []*recorded // in the order in which they began, the ended ones too
	numbers  map[event.ThreadID]int
	entities map[entity]*record
	births   map[event.ThreadID][]uint32
	queue    []int // threads that wait for an entity, the first one first
	pairs    [][2]int
	closing  bool
	letting  bool                     // LetSignals
	cancels  map[event.ThreadID]place // where threads were cancelled
	steps    uint64                   // but for those of atomic instructions
	atomics  int
}

// record is what is known of an entity.
type record struct {
	clock []uint32
	last  int // the thread that acted last, or -1
	busy  int // the thread that acts, or -1
	depth int
}

// stand is where a thread is.
type stand uint8

const (
	going  stand = iota
	queued       // it waits for an entity
	held         // at the epoch's end, or for its turn
	asleep       // in the kernel
)

// recorded is a thread.
type recorded struct {
	id    event.ThreadID
	name  string
	stand stand
	woken bool // held or queued behind a wait, in the innermost of open
	clock []uint32
	steps []Step
	open  []opened
	free  int
	gone  bool
	next  Step // that it is before, if it is held or queued
	// Instructions at the last step's end, and before the call or operation that the
	// thread is in; 0 if that was in an earlier epoch.
	base, issued uint64
	calling      bool   // it is in a system call outside of operations
	signal       *Step  // that has come in the system call: what becomes of that is not known
	handling     bool   // it is to go on in a handler
	paused       bool   // another is about to cancel it
	noticed      bool   // another has, and it has not run since
	exits        bool   // nobody may detach it
	kills        bool   // it has sent a signal in its operation
	holds        bool   // it gets no signals
	resumes      bool   // it goes on in an operation behind a handler
	handlers     int    // that it is in
	since        int    // steps in them
	handled      uint64 // instructions at the end of the last one
}

// opened is a step that is under way. Its index is -1 if an earlier epoch ended
// in it.
type opened struct {
	Step
	index int
	rests bool // its BeginStep is complete
	waits bool // in the kernel
	due   bool // its BeginStep is to be noted when the thread comes by next
	early bool // signals that came in it were put before it
}

// NewOrderRecorder makes the controller of an epoch: of the first one if no thread
// stands anywhere yet.
func NewOrderRecorder(shared *Shared, begin []Standing) *OrderRecorder {
	r := &OrderRecorder{
		shared: shared, begin: begin, numbers: map[event.ThreadID]int{}, entities: map[entity]*record{},
		births: map[event.ThreadID][]uint32{}, cancels: map[event.ThreadID]place{},
	}
	for i := range begin {
		s := &begin[i]
		t := &recorded{id: s.ID, name: s.Name, stand: asleep, next: s.Next, woken: s.Woken}
		if s.Held {
			t.stand = held
		}
		for j, w := range s.Within {
			o := opened{Step: w, index: -1, waits: j == len(s.Within)-1 && (!s.Held || s.Woken)}
			o.waits = o.waits || j < len(s.Within)-1 && s.Within[j+1].Kind == HandlerStep
			t.open = append(t.open, o)
			if !o.waits {
				r.take(i, o.on)
			}
		}
		t.calling = !s.Held && (len(t.open) == 0 || t.open[len(t.open)-1].Kind == CalledStep)
		if t.exits = s.Exits; t.exits {
			r.take(i, []entity{exitOf(t.id)})
		}
		r.numbers[t.id] = i
		r.threads = append(r.threads, t)
	}
	return r
}

// Begin lets the threads go that stand.
func (r *OrderRecorder) Begin(g *Gate) {
	for n, t := range r.threads {
		if t.gone || t.stand != held {
			continue
		}
		if t.woken && r.wake(n) || !t.woken && r.proceed(n) {
			g.Release(t.id, 0)
		}
	}
}

// Close has the epoch end: every thread comes to a stand at its next operation or
// system call. Before the end of a process it ends by itself. Reopen takes it
// back.
func (r *OrderRecorder) Close() { r.closing = true }

// Reopen lets the threads go on, as if Close had not been called.
func (r *OrderRecorder) Reopen(g *Gate) {
	r.closing = false
	r.Begin(g)
}

// Closing tells that Close was called.
func (r *OrderRecorder) Closing() bool { return r.closing }

// Closed tells that every thread stands or waits in the kernel.
func (r *OrderRecorder) Closed() bool {
	return r.closing && !slices.ContainsFunc(r.threads, func(t *recorded) bool {
		return !t.gone && !t.stands() && t.stand != asleep
	})
}

// stands tells of a thread that stands before its next step, or behind a wait. One that is
// queued when all others stand waits for one that exits.
func (t *recorded) stands() bool { return t.stand == held || t.stand == queued && !t.woken }

// Steps counts what was noted so far, but for atomic instructions.
func (r *OrderRecorder) Steps() uint64 { return r.steps }

// Ask implements Controller.
func (r *OrderRecorder) Ask(g *Gate, v *Visit) bool {
	n := r.number(v)
	t := r.threads[n]
	if t.signal != nil {
		r.restarts(g, n)
	}
	switch v.Place {
	case AtStart:
		t.clock = r.births[v.Thread]
		return r.come(n, Step{Kind: StartStep})
	case AtEnter:
		if Transparent(v.Sync.Op) {
			return true
		}
		t.issued = v.Instructions
		return r.come(n, r.shared.step(v.Sync))
	case AtCall:
		t.issued = v.Instructions
		return r.come(n, r.shared.call(v.Call))
	case AtAtomic:
		return r.come(n, atomicStep(v))
	case AtWake:
		if handles(&t.open, &t.handling, v.Inside) {
			t.stand, t.woken = going, false
			return true
		}
		return r.wake(n)
	case AtReturn:
		if !Transparent(v.Sync.Op) {
			leaveHandlers(&t.open)
			r.finish(g, n, uint64(v.Sync.Result))
			t.base = v.Instructions
			if t.holds {
				g.Cut() // it gets its signals again
			}
		}
	}
	return true
}

// number finds a thread.
func (r *OrderRecorder) number(v *Visit) int {
	n, ok := r.numbers[v.Thread]
	if !ok {
		n = len(r.threads)
		r.numbers[v.Thread] = n
		r.threads = append(r.threads, &recorded{id: v.Thread, name: v.Name})
	}
	return n
}

// Born notes that a thread has made another, which comes behind what its maker
// has done so far.
func (r *OrderRecorder) Born(id, maker event.ThreadID) {
	if n, ok := r.numbers[maker]; ok {
		r.births[id] = slices.Clone(r.threads[n].clock)
	}
}

// come decides about a thread that is before a step.
func (r *OrderRecorder) come(n int, next Step) bool {
	t := r.threads[n]
	t.next, t.woken = next, false
	if next.Kind == CallStep && next.Number == unix.SYS_EXIT_GROUP {
		r.closing = true // memory is compared before it is gone
	}
	if r.closing && !t.inHandler() {
		t.stand = held
		return false
	}
	return r.proceed(n)
}

// proceed begins the step that a thread is before, unless what it acts on is in
// use.
func (r *OrderRecorder) proceed(n int) bool {
	t := r.threads[n]
	if t.next.free() {
		t.free++
		t.stand, t.calling = going, true
		return true
	}
	if r.disturbs(t) || !r.take(n, t.next.on) {
		t.stand = queued
		r.queue = append(r.queue, n)
		return false
	}
	t.stand, t.free, t.calling = going, 0, t.next.Kind == CallStep
	if t.next.Kind == AtomicStep {
		return true // it has its place when it is done
	}
	o := opened{Step: t.next, index: -1}
	t.slot(&o)
	if o.Kind == StartStep {
		r.complete(n, &o)
		return true
	}
	if once(o.Op) {
		r.complete(n, &o)
		o.rests = true
	}
	t.open = append(t.open, o)
	return true
}

// slot gives a step a place among the thread's.
func (t *recorded) slot(o *opened) {
	if o.index < 0 {
		o.index = len(t.steps)
		t.steps = append(t.steps, o.Step)
	}
}

// entity finds the record of an entity.
func (r *OrderRecorder) entity(e entity) *record {
	x := r.entities[e]
	if x == nil {
		x = &record{last: -1, busy: -1}
		r.entities[e] = x
	}
	return x
}

// take marks entities as in use, all of them or none.
func (r *OrderRecorder) take(n int, list []entity) bool {
	for _, e := range list {
		if x := r.entity(e); x.busy >= 0 && x.busy != n {
			return false
		}
	}
	for _, e := range list {
		x := r.entity(e)
		x.busy = n
		x.depth++
	}
	return true
}

// complete gives a step its place in the order: behind what the thread did, and
// behind what was done to what it acts on.
func (r *OrderRecorder) complete(n int, o *opened) {
	t := r.threads[n]
	for _, e := range o.on {
		x := r.entity(e)
		if x.last >= 0 && x.last != n && component(x.clock, x.last) > component(t.clock, x.last) {
			r.pairs = append(r.pairs, [2]int{x.last, n})
		}
		t.clock = joined(t.clock, x.clock)
	}
	s := &t.steps[o.index]
	s.Clock, s.done = slices.Clone(t.clock), true
	if o.Op == event.OpCancel && o.Kind == BeginStep {
		r.cancels[o.Whom] = place{n, o.index}
	}
	t.clock = ticked(t.clock, n, uint32(o.index+1))
	for _, e := range o.on {
		x := r.entity(e)
		x.clock, x.last = slices.Clone(t.clock), n
	}
	if o.Kind != AtomicStep {
		r.steps++
	}
}

// finish completes the step that a thread is in, the innermost.
func (r *OrderRecorder) finish(g *Gate, n int, result uint64) {
	t := r.threads[n]
	if len(t.open) == 0 {
		return // the child of a fork comes out of its parent's
	}
	o := t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
	t.slot(&o)
	if o.Kind == BeginStep {
		if !o.rests {
			r.complete(n, &o)
		}
		o.Step, o.index = o.rest(), -1
		t.slot(&o)
	}
	t.steps[o.index].Result = result
	r.complete(n, &o)
	if o.Op == event.OpCancel {
		r.informs(t, o.Whom)
	}
	r.drop(g, n, o.on)
	if o.Op == event.OpCancel {
		r.unpause(g, o.Whom)
	}
}

// drop marks entities as no more in use, and lets threads go that wait for them.
func (r *OrderRecorder) drop(g *Gate, n int, list []entity) {
	for _, e := range list {
		if x := r.entity(e); x.busy == n {
			if x.depth--; x.depth == 0 {
				x.busy = -1
			}
		}
	}
	waiting := r.queue
	r.queue = nil
	for _, w := range waiting {
		t := r.threads[w]
		switch {
		case t.gone || t.stand != queued:
		case r.cancelled(t.id):
			r.queue = append(r.queue, w)
		case !t.woken && r.closing && !t.inHandler():
			t.stand = held
		case t.woken && r.wake(w), !t.woken && r.proceed(w):
			g.Release(t.id, 0)
		}
	}
}

// wake decides about a thread that goes on from a wait in the kernel: in an
// operation it acts on the same again.
func (r *OrderRecorder) wake(n int) bool {
	t := r.threads[n]
	if len(t.open) == 0 || !t.open[len(t.open)-1].waits {
		t.stand, t.woken = going, false
		return true
	}
	o := &t.open[len(t.open)-1]
	if !r.take(n, o.on) {
		t.stand, t.woken = queued, true
		r.queue = append(r.queue, n)
		return false
	}
	o.waits, t.stand, t.woken = false, going, false
	return true
}

// Called implements Controller.
func (r *OrderRecorder) Called(g *Gate, id event.ThreadID, result uint64) {
	n, ok := r.numbers[id]
	if !ok {
		return
	}
	t := r.threads[n]
	if !t.calling {
		return
	}
	t.calling = false
	if t.signal != nil {
		r.interrupted(g, n, result)
	} else if t.inCall() {
		r.finish(g, n, result)
		t.base = t.issued
	} else {
		r.drop(g, n, nil)
	}
}

// Tell notes what the system call wrote that a thread has just completed, of those
// that are Told or were interrupted.
func (r *OrderRecorder) Tell(id event.ThreadID, number uint64, writes []event.Write) {
	n, ok := r.numbers[id]
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
func (r *OrderRecorder) Blocked(g *Gate, id event.ThreadID, inside bool) {
	n, ok := r.numbers[id]
	if !ok {
		return
	}
	t := r.threads[n]
	t.stand, t.handling = asleep, false
	r.exits(g, n, false)
	if inside {
		leaveHandlers(&t.open)
	}
	if len(t.open) == 0 || t.open[len(t.open)-1].waits {
		r.drop(g, n, nil)
		return
	}
	o := &t.open[len(t.open)-1]
	if o.Kind == BeginStep && !o.rests {
		r.complete(n, o)
		o.rests = true
	}
	o.waits = true
	r.drop(g, n, o.on)
}

// Exited implements Controller. A thread that others end completes no step.
func (r *OrderRecorder) Exited(g *Gate, id event.ThreadID) {
	n, ok := r.numbers[id]
	if !ok {
		return
	}
	t := r.threads[n]
	if t.signal != nil {
		r.restarts(g, n)
	}
	r.killed(n)
	if k := len(t.open); k > 0 && t.open[k-1].Op == event.OpCancel {
		r.unpause(g, t.open[k-1].Whom)
	}
	t.gone = true
	r.exits(g, n, false)
	delete(r.numbers, id)
	if t.next.Kind == AtomicStep && t.stand == going {
		r.drop(g, n, t.next.on) // it has faulted
	}
	own := len(t.open) > 0 && t.open[len(t.open)-1].ends()
	open := t.open
	t.open = nil
	for i := len(open) - 1; i >= 0; i-- {
		o := open[i]
		if own {
			t.slot(&o)
			o.on = append(slices.Clone(o.on), both...)
			r.complete(n, &o)
		}
		r.drop(g, n, open[i].on)
	}
	t.steps = whole(t.steps)
}
