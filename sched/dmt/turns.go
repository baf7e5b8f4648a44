package dmt

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched"
)

// turnController is the common part of the controllers: at any time at most one thread is in a
// synchronization operation or a system call, and a turnOrder decides whose turn it is. As the code
// of operations is unmodified, a thread that has to wait in one waits in the kernel: it gives its
// turn away then, and needs another to continue after it was woken (TERN, section 5.1: it waits in
// a queue of TERN's own). A thread that spins in an operation gives its turn away after spinLimit
// instructions.
//
// System calls without an effect that other threads can observe (SyncPoint.Private) do not need a
// turn. For some, timing decides whether they are made at all: malloc requests memory under locks
// of its own, and waits for a futex if one is contended. A thread that waits in such a call keeps
// its place in the order, unless nothing else can run.
type turnController struct {
	sched.Pass
	order   turnOrder
	prices  turnCosts
	threads map[arch.ThreadID]*turnThread
	acting  *turnThread // whose turn it is, or nil
	views   *viewTurns  // nil unless threads have views of memory
}

// turnCosts are the costs of turns.
type turnCosts struct {
	// free is for a turn without waiting.
	free arch.Cycles
	// wake is the time from the end of a turn until the thread that waited for it continues, and
	// awake the time for a thread that the kernel has just woken, which checks for its turn before
	// it would sleep again.
	wake, awake arch.Cycles
}

// turnOrder decides whose turn it is. It hears of threads that can take part and of their
// operations.
type turnOrder interface {
	// addRunnable adds a thread that can run: it is new, or was woken, by the given thread if that
	// is not nil.
	addRunnable(t, by *turnThread)
	// removeThread removes a thread that waits in the kernel, or has ended.
	removeThread(t *turnThread)
	// addRequest is called when a thread has reached an operation.
	addRequest(t *turnThread)
	// passTurn is called when a thread has finished its turn.
	passTurn(t *turnThread)
	// nextInTurn is the thread that may have the turn now, which is asking, or nil.
	nextInTurn() *turnThread
	// countInstructions is called when t has run n instructions outside of operations.
	countInstructions(t *turnThread, n uint64)
	// remainingBudget returns the number of instructions that t may run outside of operations,
	// after the one that it is in, if that is limited.
	remainingBudget(t *turnThread) (left uint64, limited bool)
	// hasSpentBudget reports whether t has run all of them, and needs a turn.
	hasSpentBudget(t *turnThread) bool
}

// turnState is the state of a thread with regard to turns.
type turnState uint8

const (
	running turnState = iota // outside of operations, or about to ask
	asking                   // for a turn
	acting                   // it has the turn
	away                     // in the kernel
	parked                   // it has had its turn and waits for the others of the round
)

// turnThread is a thread that takes turns.
type turnThread struct {
	id    arch.ThreadID
	state turnState
	depth int  // operations that it is in: once routines have their own
	idle  bool // it asks for a turn only to pass it on
	own   bool // its system call has no effect that other threads can observe
	heap  bool // it is in an allocator
	awake bool // the kernel has just woken it

	free bool         // it is in a performance-critical section of PARROT
	soft *softBarrier // that it has come to last

	// With views:
	leaving bool   // its turn is over when it has taken its signals
	long    bool   // it asks for a turn because its view is as long as views may be
	atomic  bool   // it is before an atomic instruction
	locks   int    // that it holds, under dthreads
	created bool   // its last operation has created a thread, under dthreads
	checked uint64 // its instructions when its view began, or was found to be long
	coarse  coarseThread

	seen    uint64 // its instructions when they were counted last
	mark    uint64 // its instructions when it got the turn
	total   uint64 // its instructions at the end of its last quantum
	budgets uint64 // its instructions at its last AtBudget
	clock   uint64 // Kendo's logical clock
}

// spinLimit is after how many instructions in an operation a thread gives its
// turn away: it spins. An operation of a C library has some hundreds.
const spinLimit = 20_000

func newTurnController(o turnOrder, p turnCosts) *turnController {
	return &turnController{order: o, prices: p, threads: map[arch.ThreadID]*turnThread{}}
}

// OrdersOperations reports whether a policy orders synchronization operations: NewTurnController
// makes its controller.
func OrdersOperations(policy string) bool {
	switch policy {
	case sched.RRSync, sched.FCFSSync, sched.Kendo, sched.Parrot:
		return true
	}
	return Isolates(policy)
}

// NewTurnController makes the controller of a policy that orders synchronization
// operations; nil for other policies. The options are complete and valid.
func NewTurnController(o sched.Options, costs sched.Costs) sched.Controller {
	spin, semaphore := costs.Sync+costs.SpinCheck, costs.Sync+costs.SemaphoreWait
	switch o.Policy {
	case sched.RRSync: // a turn may be long in coming: threads sleep
		return newTurnController(&roundRobinOrder{fairness: o.Fairness}, turnCosts{semaphore, costs.Sync + costs.SemaphoreWake, spin})
	case sched.FCFSSync: // no thread has it for longer than an operation
		return newTurnController(&firstComeOrder{}, turnCosts{semaphore, spin, spin})
	case sched.Kendo:
		return &kendoController{newTurnController(&kendoOrder{}, turnCosts{spin, spin, spin})}
	case sched.Parrot:
		order := &roundRobinOrder{fairness: o.Fairness}
		return &parrotController{turnController: newTurnController(order, turnCosts{spin, spin, spin}), barriers: map[arch.Addr]*softBarrier{}}
	case sched.DThreads:
		order := &roundOrder{}
		return newViewController(order, turnCosts{spin, spin, spin}, &viewTurns{rounds: order, limit: o.Fairness})
	case sched.Consequence:
		return newViewController(&kendoOrder{}, turnCosts{spin, spin, spin}, &viewTurns{limit: o.Fairness, coarse: newCoarsening()})
	}
	return nil
}

// threadOf returns the thread of an id, a new one if it was not heard of.
func (c *turnController) threadOf(id arch.ThreadID) *turnThread {
	t := c.threads[id]
	if t == nil {
		t = &turnThread{id: id}
		c.threads[id] = t
		c.order.addRunnable(t, c.acting)
	}
	return t
}

// Needs implements Controller: a new thread gets its place in the order at once.
func (c *turnController) Needs() sched.Needs { return sched.Needs{Creations: true} }

// Observe implements Controller.
func (c *turnController) Observe(g *sched.Gate, e sched.ThreadEvent) {
	if e.Kind == sched.ThreadCreated {
		c.Woken(g, e.Thread)
	}
}

// Woken implements Controller.
func (c *turnController) Woken(g *sched.Gate, id arch.ThreadID) {
	if t := c.threadOf(id); t.state == away {
		t.state = running
		c.order.addRunnable(t, c.acting)
	}
	c.grantNextTurns(g)
}

// Ask implements Controller.
func (c *turnController) Ask(g *sched.Gate, v *sched.SyncPoint) bool {
	t := c.threadOf(v.Thread)
	c.countInstructions(t, v.Instructions)
	switch v.Kind {
	case sched.AtStart:
		return !c.views.isSerial()
	case sched.AtEnter:
		return c.enterOperation(g, t)
	case sched.AtAtomic:
		return c.enterAtomic(g, t)
	case sched.AtCall:
		t.own = v.Private && c.views == nil
		return t.own && t.state != acting || c.enterOperation(g, t)
	case sched.AtWake:
		t.awake = true
		return t.depth == 0 || c.requestTurn(g, t)
	case sched.AtReturn:
		c.views.noteOperation(t, v.Sync)
		c.leaveOperation(g, t)
	case sched.AtBudget:
		return c.exhaustBudget(g, t)
	}
	return true
}

// kendoController orders turns by numbers of instructions. Instructions in an allocator do not
// count: their number depends on the allocations of other threads meanwhile.
type kendoController struct{ *turnController }

// Needs implements Controller.
func (c *kendoController) Needs() sched.Needs { return sched.Needs{Creations: true, Allocations: true} }

// Observe implements Controller.
func (c *kendoController) Observe(g *sched.Gate, e sched.ThreadEvent) {
	switch e.Kind {
	case sched.AllocatorEntered, sched.AllocatorLeft:
		t := c.threadOf(e.Thread)
		c.countInstructions(t, e.Instructions)
		t.heap = e.Kind == sched.AllocatorEntered
	default:
		c.turnController.Observe(g, e)
	}
}

// countInstructions notes how many instructions a thread has retired.
func (c *turnController) countInstructions(t *turnThread, instructions uint64) {
	if t.state == running && !t.heap && instructions > t.seen {
		c.order.countInstructions(t, instructions-t.seen)
	}
	t.seen = instructions
}

// enterOperation begins an operation. One within another, as in a once routine, is part of
// the turn.
func (c *turnController) enterOperation(g *sched.Gate, t *turnThread) bool {
	if c.views != nil && t.depth == 0 {
		c.enterFromView(t)
	}
	t.depth++
	t.heap = false // it may have left an allocator by a jump
	if t.state == acting {
		return true
	}
	// The budget counts as used up before the operation, and not just now.
	t.idle = c.order.hasSpentBudget(t) || c.views.isSpent(t)
	return c.requestTurn(g, t)
}

// requestTurn asks for a turn; true: it is the thread's at once.
func (c *turnController) requestTurn(g *sched.Gate, t *turnThread) bool {
	if t.state == acting {
		return true
	}
	t.state = asking
	c.order.addRequest(t)
	c.grantTurns(g, t)
	if t.state == asking {
		return false
	}
	t.awake = false
	g.Charge(c.prices.free)
	g.Cut() // the next quantum has the budget of an operation
	return true
}

// grantTurns gives the turn to the next thread, as long as there is one: threads that only pass it
// on do so. The thread that is at the gate just now is not held yet.
func (c *turnController) grantTurns(g *sched.Gate, here *turnThread) {
	for c.acting == nil {
		t := c.order.nextInTurn()
		switch {
		case t == nil && c.views.isSerial():
			c.endRound(g)
			continue
		case t == nil:
			return
		case t.idle && t.depth > 0:
			t.idle = false
			c.views.begin(g, t)
			c.order.passTurn(t)
			continue
		case t.idle:
			t.idle, t.state = false, running
			c.order.passTurn(t)
		default:
			t.state, t.mark, c.acting = acting, t.seen, t
			c.views.begin(g, t)
		}
		if t != here {
			g.Release(t.id, c.wakeUpDelay(t))
		}
	}
}

// wakeUpDelay returns the time that a held thread takes to continue.
func (c *turnController) wakeUpDelay(t *turnThread) arch.Cycles {
	awake := t.awake
	if t.awake = false; awake {
		return c.prices.awake
	}
	return c.prices.wake
}

func (c *turnController) grantNextTurns(g *sched.Gate) { c.grantTurns(g, nil) }

// leaveOperation ends an operation, and the turn with the outermost.
func (c *turnController) leaveOperation(g *sched.Gate, t *turnThread) {
	if t.depth == 0 {
		return
	}
	if t.depth--; t.depth > 0 || t.state != acting {
		return
	}
	if c.views != nil {
		c.views.leave(g, t)
		return
	}
	t.state, c.acting = running, nil
	c.order.passTurn(t)
	c.grantNextTurns(g)
}

// exhaustBudget handles the end of a budget: a thread spins in an operation, or the
// ordering wants it to take a turn.
func (c *turnController) exhaustBudget(g *sched.Gate, t *turnThread) bool {
	t.budgets = t.total
	if t.state == acting && t.seen-t.mark >= c.longestTurn(t) {
		c.acting = nil
		t.state = running
		c.order.countInstructions(t, spinLimit)
		c.order.passTurn(t)
		return c.requestTurn(g, t)
	}
	if c.views != nil {
		return c.endView(g, t)
	}
	if t.state == running && c.order.hasSpentBudget(t) {
		t.idle = true
		return c.requestTurn(g, t)
	}
	return true
}

// Budget implements Controller.
func (c *turnController) Budget(id arch.ThreadID) uint64 {
	t := c.threads[id]
	if t == nil {
		return 0
	}
	left, limited := c.order.remainingBudget(t)
	if c.views != nil && t.state == running {
		left, limited = c.views.remainingBudget(t, left, limited), true
	}
	if t.state == acting {
		longest := c.longestTurn(t)
		spins := longest - min(longest, t.seen-t.mark)
		if limited {
			spins = min(spins, left)
		}
		left, limited = spins, true
		if t.coarse.extended {
			left = t.coarse.left(t)
		}
	}
	if !limited {
		return 0
	}
	return t.total - t.budgets + left
}

// Called implements Controller.
func (c *turnController) Called(g *sched.Gate, id arch.ThreadID, _ uint64) {
	t := c.threadOf(id)
	if !t.own || t.state == acting {
		c.leaveOperation(g, t)
	}
	t.own = false
}

// Blocked implements Controller.
func (c *turnController) Blocked(g *sched.Gate, id arch.ThreadID, inside bool) {
	t := c.threadOf(id)
	if t.own && !inside && t.depth == 0 {
		return
	}
	if t.state == asking {
		return // a signal has stopped it; it keeps its place
	}
	c.removeFromOrder(t)
	t.state = away
	c.grantNextTurns(g)
}

// removeFromOrder takes a thread out of the order.
func (c *turnController) removeFromOrder(t *turnThread) {
	if c.acting == t {
		c.acting = nil
	}
	if t.state != away {
		c.order.removeThread(t)
	}
}

// Exited implements Controller.
func (c *turnController) Exited(g *sched.Gate, id arch.ThreadID) {
	if t := c.threads[id]; t != nil {
		c.removeFromOrder(t)
		delete(c.threads, id)
		c.grantNextTurns(g)
	}
}

// Stepped implements Controller.
func (c *turnController) Stepped(g *sched.Gate, id arch.ThreadID, instructions uint64, _ arch.Cycles) {
	t := c.threads[id]
	if t == nil {
		return
	}
	t.total += instructions
	c.countInstructions(t, t.total)
	if t.leaving && t.state == acting && g.Holds(id) {
		c.leaveTurn(g, t)
	}
	c.grantNextTurns(g)
}

// Stuck implements Controller: threads that wait in system calls without a turn may hold up the
// threads that they wait for.
func (c *turnController) Stuck(g *sched.Gate) {
	for _, t := range c.threadsByID() {
		if t.state == running {
			c.removeFromOrder(t)
			t.state = away
		}
	}
	c.grantNextTurns(g)
}
