package dmt

import (
	"math"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// Isolates reports whether threads have views of memory under a policy: they do not see what others
// store until their next turn, so that races, too, have one outcome.
func Isolates(policy string) bool { return policy == sched.DThreads || policy == sched.Consequence }

// viewTurns is the part of a turnController whose threads have views of memory. All system calls and
// atomic instructions take turns. A thread that gets a turn commits its stores; while it has the
// turn it accesses shared memory, which no other thread changes; and at the end of the turn it gets a
// new view. What a thread reads between two turns therefore depends only on the turns before.
//
// A turn ends in two steps: when the operation is over the thread is leaving, and when it is about to
// run again, and has taken the signals that it got in its turn, the turn passes on. Signals are
// delivered in turns only, except those that an instruction of the thread causes.
//
// A nil viewTurns has no views.
type viewTurns struct {
	// rounds is the order of DThreads, nil under Consequence.
	rounds *roundOrder
	// limit is the number of instructions in a view after which a thread may be spinning.
	limit uint64
	// coarse is nil under DThreads.
	coarse *coarsening
}

// viewController is a turnController with views.
type viewController struct{ *turnController }

func newViewController(o turnOrder, p turnCosts, v *viewTurns) *viewController {
	c := newTurnController(o, p)
	c.views = v
	return &viewController{c}
}

// Needs implements Controller.
func (*viewController) Needs() sched.Needs {
	return sched.Needs{Creations: true, Atomics: true, MayRun: true, SignalHolds: true, Views: true}
}

// Observe implements Controller.
func (c *viewController) Observe(g *sched.Gate, e sched.ThreadEvent) {
	if e.Kind == sched.AtomicExecuted {
		t := c.threadOf(e.Thread)
		t.atomic = false
		c.leaveOperation(g, t)
		return
	}
	c.turnController.Observe(g, e)
	if e.Kind == sched.ThreadCreated && c.views.rounds == nil {
		g.Affect(sched.Effect{Kind: sched.BeginView, Thread: e.Thread})
	}
}

// MayRun implements Controller.
func (c *viewController) MayRun(id arch.ThreadID, _ uint64) bool {
	t := c.threads[id]
	return t == nil || !t.leaving && !(t.state == running && c.views.isSerial())
}

// HoldsSignals implements Controller.
func (c *viewController) HoldsSignals(id arch.ThreadID) bool {
	t := c.threads[id]
	return t != nil && t.state != acting
}

// enterAtomic begins an atomic instruction. A thread that a signal has interrupted before it reaches
// it again.
func (c *turnController) enterAtomic(g *sched.Gate, t *turnThread) bool {
	if t.atomic {
		return c.requestTurn(g, t)
	}
	t.atomic = true
	return c.enterOperation(g, t)
}

// begin makes the stores of a thread that has got the turn visible.
func (v *viewTurns) begin(g *sched.Gate, t *turnThread) {
	if v == nil {
		return
	}
	g.Affect(sched.Effect{Kind: sched.CommitView, Thread: t.id})
	v.coarse.begin(t)
	t.checked = t.seen
	if t.long && v.rounds != nil && v.rounds.mixed {
		g.Stall(t.id)
	}
	t.long = false
}

// isSpent reports whether a thread has run all the instructions that it may run in a view.
func (v *viewTurns) isSpent(t *turnThread) bool {
	if v == nil || t.state != running || t.seen-t.checked < v.limit {
		return false
	}
	t.long = true
	return true
}

// enterFromView notes that a thread has reached an operation, a system call or an atomic instruction.
// If its extended turn is used up it is over, as if the thread had stopped before.
func (c *turnController) enterFromView(t *turnThread) {
	over := t.state == acting && t.coarse.extended && t.coarse.left(t) == 0
	c.views.coarse.endChunk(t)
	t.coarse.extended, t.created, t.mark = false, false, t.seen
	if over {
		c.passViewTurn(t)
		t.state = running
	}
}

// passViewTurn passes a thread's turn on.
func (c *turnController) passViewTurn(t *turnThread) {
	t.leaving, t.created, c.acting = false, false, nil
	t.coarse.extended = false
	t.checked = t.seen
	c.order.countInstructions(t, c.views.coarse.end(t))
	c.order.passTurn(t)
}

// leave ends a thread's operation. Under DThreads a thread that holds a lock keeps the turn, and for a
// while one that has created a thread, so that the first of several does not run before the others.
func (v *viewTurns) leave(g *sched.Gate, t *turnThread) {
	switch {
	case t.locks > 0:
	case v.rounds != nil && t.created:
		t.coarse = coarseThread{extended: true, began: t.seen, longest: spinLimit}
	default:
		t.leaving = !v.coarse.extends(t)
	}
	g.Cut() // the next quantum has another budget
}

// leaveTurn passes the turn of a thread on that is leaving, and is held.
func (c *turnController) leaveTurn(g *sched.Gate, t *turnThread) {
	c.passViewTurn(t)
	if c.views.rounds != nil {
		t.state = parked
		return
	}
	t.state = running
	g.Affect(sched.Effect{Kind: sched.BeginView, Thread: t.id})
	g.Release(t.id, 0)
}

// endRound begins the parallel phase of DThreads: all threads that do not ask for a turn continue,
// and see memory as it is now.
func (c *turnController) endRound(g *sched.Gate) {
	r := c.views.rounds
	r.serial = false
	for _, t := range r.line {
		if t.state == asking {
			continue
		}
		t.state = running
		g.Affect(sched.Effect{Kind: sched.BeginView, Thread: t.id})
		g.Release(t.id, c.wakeUpDelay(t))
	}
}

// endView handles the end of a budget in a view. A thread may spin there on a variable that another
// thread is to change, which it can never see. It takes a turn to commit its stores and see those of
// others; but under DThreads, if others have waited for it at their operations, the run ends.
func (c *turnController) endView(g *sched.Gate, t *turnThread) bool {
	v := c.views
	if t.state == acting && t.coarse.extended {
		t.leaving = true
		g.Cut()
		return true
	}
	if !v.isSpent(t) {
		return true
	}
	t.leaving = true
	return c.requestTurn(g, t)
}

// remainingBudget returns the number of instructions that a thread may run in its view, which the
// order may limit further.
func (v *viewTurns) remainingBudget(t *turnThread, left uint64, limited bool) uint64 {
	most := v.limit - min(v.limit, t.seen-t.checked)
	if limited {
		return min(left, most)
	}
	return most
}

// longestTurn returns the number of instructions after which a thread in a turn counts as spinning.
func (c *turnController) longestTurn(t *turnThread) uint64 {
	switch {
	case t.locks > 0:
		return max(spinLimit, c.views.limit)
	case t.coarse.extended:
		return math.MaxInt64
	}
	return spinLimit
}

// isSerial reports whether DThreads' serial phase is on.
func (v *viewTurns) isSerial() bool { return v != nil && v.rounds != nil && v.rounds.serial }

// noteOperation notes an operation's end.
func (v *viewTurns) noteOperation(t *turnThread, e *event.Sync) {
	switch {
	case v == nil || e == nil:
		return
	case v.rounds == nil:
		v.coarse.noteOperation(t, e)
		return
	}
	switch e.Op {
	case event.OpMutexLock, event.OpMutexTryLock, event.OpMutexTimedLock, event.OpMutexClockLock:
		if e.Phase == event.Return && e.Result == 0 {
			t.locks++
		}
	case event.OpMutexUnlock:
		t.locks = max(0, t.locks-1)
	case event.OpCreate, event.OpC11ThrdCreate:
		t.created = true
	}
}

// roundOrder is the order of DThreads (Liu, Curtsinger, Berger: DThreads: efficient deterministic
// multithreading, SOSP 2011). Execution alternates between phases. In the parallel phase
// all threads run, up to their next operation; in the serial phase they have one turn each, in the
// order in which the token passes from one to the next. A new thread comes after the thread that
// created it, and so does a woken one after the thread that woke it. As all locks are guarded by the
// token, a thread keeps it until it holds none.
type roundOrder struct {
	uncountedOrder
	line   threadQueue // in the order of the token
	left   threadQueue // of this serial phase
	serial bool
	mixed  bool        // the phase is not only of threads whose views are as long as they may be
	after  *turnThread // the last that was added in this turn
}

func (r *roundOrder) addRunnable(t, by *turnThread) {
	if r.after == nil {
		r.after = by
	}
	i := len(r.line)
	if at := slices.Index(r.line, r.after); at >= 0 && r.after != nil {
		i = at + 1
	}
	r.line = slices.Insert(r.line, i, t)
	if by != nil {
		r.after = t
	}
}

func (r *roundOrder) removeThread(t *turnThread) {
	r.line.removeThread(t)
	r.left.removeThread(t)
	if r.after == t {
		r.after = nil
	}
}

func (*roundOrder) addRequest(*turnThread) {}
func (r *roundOrder) passTurn(*turnThread) { r.after = nil }

func (r *roundOrder) nextInTurn() *turnThread {
	if !r.serial {
		if len(r.line) == 0 || slices.ContainsFunc(r.line, func(t *turnThread) bool { return t.state != asking }) {
			return nil
		}
		r.serial, r.left = true, slices.Clone(r.line)
		r.mixed = slices.ContainsFunc(r.line, func(t *turnThread) bool { return !t.long })
	}
	if len(r.left) == 0 {
		return nil
	}
	t := r.left[0]
	r.left = r.left[1:]
	return t
}
