package sched

import (
	"fmt"
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// OrderFollower is the Controller of an epoch-parallel replica: threads do the
// steps of the epoch's partial order, each when those before it are done, as its
// replay vector clock tells (Frost section 3.1), and come to a stand behind their
// last. What told the time is told again.
//
// A thread that does something else than in the first replica has diverged: a data
// race is why, since nothing else differs. It goes on without constraints until it
// has done as many steps as there, and nobody waits for it. Locking and unlocking
// what the first replica did not, or the reverse, is no divergence (section 3.3).
//
// Invariant: unless a thread diverges, no step happens before one that its Clock
// names.
type OrderFollower struct {
	Pass
	shared  *Shared
	order   *PartialOrder
	threads []*follows
	numbers map[event.ThreadID]int
	done    []uint32 // the replay vector clock
	why     string   // the first divergence
	soft    string   // the first that is none
	changed bool     // done has, since threads that wait were looked at
	nudged  bool
	used    []Step
	// cancelled are the threads that steps are to meet, by number.
	cancelled map[int]bool
}

// follows is a thread.
type follows struct {
	id    event.ThreadID
	name  string
	stand stand
	ended bool // held for good: the epoch is over for it
	woken bool
	at    Place // where it is held
	next  Step
	pos   int // of its next step
	free  int
	open  []opened
	left  bool // has diverged
	gone  bool
	helps bool // it was let go before its turn, as another waits for it
	// helped tells that that one goes on.
	helped bool
	extra  event.ObjectID // a lock that the first replica did not take
	exits  bool           // as of recorded
	more   int            // steps behind its last that it may do: Probe
	// As of recorded. The system call that the thread is in is made again.
	base, issued       uint64
	handling, restarts bool
	writes             []event.Write // by the call that a signal ends
}

// NewOrderFollower makes the controller of a replica that begins where the order
// does.
func NewOrderFollower(shared *Shared, order *PartialOrder) *OrderFollower {
	f := &OrderFollower{
		shared: shared, order: order, numbers: map[event.ThreadID]int{}, done: make([]uint32, len(order.Threads)),
	}
	f.cancelled = order.cancelled()
	for i := range order.Begin {
		s := &order.Begin[i]
		t := &follows{id: s.ID, name: s.Name, stand: asleep, woken: s.Woken, next: s.Next, at: AtEnter, exits: s.Exits}
		if s.Held {
			t.stand = held
		}
		for _, w := range s.Within {
			t.open = append(t.open, opened{Step: w, index: -1})
		}
		f.numbers[t.id] = i
		f.threads = append(f.threads, t)
	}
	return f
}

// Begin lets the threads go that can.
func (f *OrderFollower) Begin(g *Gate) {
	for n, t := range f.threads {
		if t.stand == held && (t.woken && f.wake(n) || !t.woken && f.come(g, n)) {
			g.Release(t.id, 0)
		}
	}
}

// Diverged says what a thread did that it had not done in the first replica, or
// nothing. Softly says the same of what is no divergence.
func (f *OrderFollower) Diverged() string { return f.why }

// Softly is the first divergence without consequence.
func (f *OrderFollower) Softly() string { return f.soft }

// Ask implements Controller. Threads whose turn has come go on at once: one that
// comes first in the order of priorities preempts the one that acts.
func (f *OrderFollower) Ask(g *Gate, v *Visit) bool {
	n := f.number(v)
	f.threads[n].at = v.Place
	goes := f.visit(g, n, v)
	if f.signalled(n, false) {
		g.Cut() // where the thread stops is to be found out again
	}
	f.changed = f.changed || !goes && (f.cancelled[n] || f.awaited(n)) // another may wait for that
	if f.changed {
		for m := range f.threads {
			if m != n {
				f.look(g, m)
			}
		}
	}
	return goes
}

// visit decides about a thread at a place.
func (f *OrderFollower) visit(g *Gate, n int, v *Visit) bool {
	t := f.threads[n]
	f.begun(n)
	t.helps, t.helped = false, false
	f.again(t)
	switch v.Place {
	case AtStart:
		t.next = Step{Kind: StartStep}
		return f.come(g, n)
	case AtEnter:
		if Transparent(v.Sync.Op) {
			return true
		}
		t.next, t.issued = f.shared.step(v.Sync), v.Instructions
		return f.come(g, n)
	case AtCall:
		t.next, t.issued = f.shared.call(v.Call), v.Instructions
		return f.come(g, n)
	case AtAtomic:
		if exactly, stops := f.left(n, v.Instructions); stops && exactly == 0 {
			return true // it comes to the instruction again
		}
		t.next = atomicStep(v)
		return f.come(g, n)
	case AtWake:
		return f.goesOn(n, v)
	case AtReturn:
		return Transparent(v.Sync.Op) || f.comesBack(n, v)
	case AtInstruction:
		return f.deliver(g, n)
	}
	return true
}

// goesOn decides about a thread behind a wait: in a handler within an operation or in a
// once routine it goes on.
func (f *OrderFollower) goesOn(n int, v *Visit) bool {
	t := f.threads[n]
	if handles(&t.open, &t.handling, v.Inside) {
		t.stand, t.woken = going, false
		return true
	}
	return f.inRoutine(t, v.Inside) || f.wake(n)
}

// comesBack handles a thread at the end of an operation.
func (f *OrderFollower) comesBack(n int, v *Visit) bool {
	t := f.threads[n]
	leaveHandlers(&t.open)
	t.base = v.Instructions
	return f.returned(n, uint64(v.Sync.Result))
}

// number finds a thread; one that the first replica did not have diverges.
func (f *OrderFollower) number(v *Visit) int {
	n, ok := f.numbers[v.Thread]
	if ok {
		return n
	}
	n = slices.IndexFunc(f.order.Threads, func(l ThreadLog) bool { return l.ID == v.Thread })
	if n < 0 {
		n = max(len(f.threads), len(f.order.Threads))
	}
	for n >= len(f.threads) {
		f.threads = append(f.threads, &follows{gone: true})
	}
	f.threads[n] = &follows{id: v.Thread, name: v.Name}
	f.numbers[v.Thread] = n
	if n >= len(f.order.Threads) {
		f.leave(n, "a thread that was not there")
	}
	return n
}

// log is what a thread did in the first replica.
func (f *OrderFollower) log(n int) *ThreadLog {
	if n < len(f.order.Threads) {
		return &f.order.Threads[n]
	}
	return &ThreadLog{}
}

// leave notes that a thread has diverged.
func (f *OrderFollower) leave(n int, found string) {
	t := f.threads[n]
	if t.left {
		return
	}
	if f.why == "" {
		f.why = fmt.Sprintf("thread %s at step %d: %s", t.name, t.pos, found)
		if t.pos < len(f.log(n).Steps) {
			f.why += ", not " + f.log(n).Steps[t.pos].String()
		}
	}
	t.left, f.changed = true, true
}

// come decides about a thread that is before a step.
func (f *OrderFollower) come(g *Gate, n int) bool {
	t, l := f.threads[n], f.log(n)
	t.stand, t.woken = held, false
	if t.next.Kind == AtomicStep && t.base == 0 && f.signalled(n, false) {
		t.stand = going // it has stood there, and gets the signal at once
		return true
	}
	if t.next.Kind == AtomicStep && t.pos >= len(l.Steps) && f.order.Endless {
		t.stand = going
		return true
	}
	if f.restarting(n) {
		return f.callAgain(g, n)
	}
	if t.next.free() && !f.interrupted(n) {
		if t.pos >= len(l.Steps) && t.free >= l.Free && t.more == 0 && !f.order.Endless {
			t.ended = true
			return false
		}
		t.free++
		t.stand = going
		return true
	}
	if t.pos >= len(l.Steps) && t.more == 0 {
		t.ended = true
		return false
	}
	if !t.left && !l.Steps[t.pos].same(&t.next) && !f.softly(n) {
		f.leave(n, t.next.String())
	}
	if !t.left && t.extra == 0 && !f.eligible(&l.Steps[t.pos]) {
		return false
	}
	if !t.left && t.extra == 0 && l.Steps[t.pos].Split {
		t.next.Kind = BeginStep
	}
	f.start(g, n)
	return true
}

// softly tells whether a thread that comes to another step than in the first
// replica takes a lock, or leaves one out, that changes nothing.
func (f *OrderFollower) softly(n int) bool {
	t, steps := f.threads[n], f.log(n).Steps[f.threads[n].pos:]
	note := func() bool {
		if f.soft == "" {
			f.soft = fmt.Sprintf("thread %s at step %d: %s, not %s", t.name, t.pos, t.next.String(), steps[0].String())
		}
		return true
	}
	switch {
	case t.extra != 0:
		return t.next.unlocks() && t.next.Object == t.extra
	case len(steps) > 2 && steps[0].locks() && steps[1].unlocks() && steps[0].Object == steps[1].Object && steps[2].same(&t.next):
		t.pos += 2
		f.advance(n, t.pos)
		return note()
	case t.next.locks():
		t.extra = t.next.Object
		return note()
	}
	return false
}

// eligible tells whether all is done that comes before a step.
func (f *OrderFollower) eligible(s *Step) bool {
	for m, n := range s.Clock {
		if f.done[m] < n && !f.free(m) {
			return false
		}
	}
	return s.Meets == 0 || f.meets(s)
}

// free tells that nobody waits for a thread: it has diverged or ended.
func (f *OrderFollower) free(n int) bool {
	return n < len(f.threads) && f.threads[n].id != 0 && (f.threads[n].left || f.threads[n].gone)
}

// start begins the step that a thread is before.
func (f *OrderFollower) start(g *Gate, n int) {
	t := f.threads[n]
	t.stand, t.free = going, 0
	t.more = max(0, t.more-1)
	f.used = append(f.used, t.next)
	o := opened{Step: t.next, index: -1}
	if t.extra == 0 {
		o.index = t.pos
		t.pos++
	}
	switch {
	case o.Kind == StartStep:
		f.advance(n, o.index+1)
		return
	case t.left:
	case o.Kind == CallStep && o.index >= 0 && (Told(o.Number) || f.log(n).Steps[o.index].Interrupted):
		s := &f.log(n).Steps[o.index]
		g.Affect(Effect{Kind: Answer, Thread: t.id, Result: s.Result, Writes: s.Writes})
	case once(o.Op):
		o.rests, o.due = true, true
	}
	t.open = append(t.open, o)
}

// Called implements Controller.
func (f *OrderFollower) Called(g *Gate, id event.ThreadID, result uint64) {
	n, ok := f.numbers[id]
	if !ok {
		return
	}
	t := f.threads[n]
	t.restarts = false
	f.tell(g, n)
	if !inCall(t.open) {
		return
	}
	t.base = t.issued
	o := &t.open[len(t.open)-1]
	if o.index < 0 && !t.left && t.pos < len(f.log(n).Steps) && f.log(n).Steps[t.pos].same(&o.Step) {
		o.index = t.pos
		t.pos++
		t.writes = f.log(n).Steps[o.index].Writes
		f.tell(g, n)
	}
	f.finish(n, result)
}

// Blocked implements Controller.
func (f *OrderFollower) Blocked(_ *Gate, id event.ThreadID, inside bool) {
	n, ok := f.numbers[id]
	if !ok {
		return
	}
	t := f.threads[n]
	f.begun(n)
	t.helps, t.helped = false, false
	t.stand, t.handling = asleep, false
	if inside {
		leaveHandlers(&t.open)
	}
	f.changed = f.changed || f.signalled(n, true)
	if len(t.open) == 0 {
		return
	}
	if o := &t.open[len(t.open)-1]; o.Kind == BeginStep && !o.rests {
		o.rests = true
		if o.index >= 0 {
			f.advance(n, o.index+1)
		}
	}
}

// Exited implements Controller.
func (f *OrderFollower) Exited(_ *Gate, id event.ThreadID) {
	n, ok := f.numbers[id]
	if !ok {
		return
	}
	delete(f.numbers, id)
	t := f.threads[n]
	if len(t.open) > 0 && t.open[len(t.open)-1].ends() && !t.left && t.pos < len(f.log(n).Steps) {
		f.leave(n, "its end")
	}
	t.gone, f.changed = true, true
}

// Stepped implements Controller: threads go on whose turn has come.
func (f *OrderFollower) Stepped(g *Gate, _ event.ThreadID, _ uint64, _ event.Cycles) {
	for f.changed {
		f.changed = false
		for n := range f.threads {
			f.look(g, n)
		}
	}
}

// look lets a thread go that is held, if it can.
func (f *OrderFollower) look(g *Gate, n int) {
	t := f.threads[n]
	if !t.gone && (t.stand == asleep || t.woken) && f.signalled(n, true) {
		f.deliverWithin(g, n)
		return
	}
	if t.gone || t.stand != held || t.ended {
		return
	}
	goes := false
	switch {
	case t.at == AtInstruction:
		goes = f.deliver(g, n)
	case t.at == AtReturn && t.left:
		t.open, t.stand, goes = t.open[:len(t.open)-1], going, true
	case t.at == AtReturn:
		o := &t.open[len(t.open)-1]
		if goes = f.claim(n, o); goes {
			t.stand = going
			f.finish(n, f.result(n, o))
		}
	case t.woken:
		goes = f.wake(n)
	default:
		goes = f.come(g, n)
	}
	if goes {
		g.Release(t.id, 0)
	}
}

// result is what the step returned in the first replica: what it returned here was
// compared, or is not known any more.
func (f *OrderFollower) result(n int, o *opened) uint64 {
	if o.index < 0 {
		return 0
	}
	return f.log(n).Steps[o.index].Result
}
