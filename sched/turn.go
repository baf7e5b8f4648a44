package sched

import "github.com/heddle-dmt/heddle/recorder/event"

// turns is what the controllers of DMT algorithms have in common: at any time at
// most one thread is in a synchronization operation or a system call, and an
// ordering says whose turn it is. As the operations' own code is unmodified, a
// thread that has to wait in one waits in the kernel: it gives its turn away
// then, and needs another to go on when it was woken (TERN, section 5.1: it waits
// in a queue of TERN's own). One that spins in an operation gives its turn away
// after spinLimit instructions.
//
// System calls that are none to other threads (Visit.Own) do not need a turn. For
// some, timing says whether they are made at all: malloc asks for memory under
// locks of its own, and waits for a futex if one is contended. A thread that waits
// in such a call keeps its place in the order, unless nothing else can go on.
type turns struct {
	Pass
	order   ordering
	prices  prices
	threads map[event.ThreadID]*taker
	acting  *taker // whose turn it is, or nil
}

// prices are what turns cost.
type prices struct {
	// free is for a turn without waiting.
	free event.Cycles
	// wake is from the end of a turn until the thread that waited for it goes on,
	// and awake that of a thread that the kernel has just woken, which looks for
	// its turn before it would sleep again.
	wake, awake event.Cycles
}

// ordering decides whose turn it is. It is told of threads that can take part
// and of what they do.
type ordering interface {
	// joins tells that t can run: it is new, or was woken. By is the thread that
	// did it, or nil.
	joins(t, by *taker)
	// leaves tells that t waits in the kernel, or is gone.
	leaves(t *taker)
	// asks tells that t has come to an operation.
	asks(t *taker)
	// passes tells that t is done with its turn.
	passes(t *taker)
	// next is the thread that may have the turn now, which is asking, or nil.
	next() *taker
	// ran tells that t has run n instructions outside of operations.
	ran(t *taker, n uint64)
	// budget is how many more instructions t may run outside of operations, after
	// the one that it is in, if that is limited; spent tells that it has run those.
	budget(t *taker) (left uint64, limited bool)
	// spent tells that it has run as many. True: it needs a turn.
	spent(t *taker) bool
}

// takerState is what a thread does, as far as turns go.
type takerState uint8

const (
	running takerState = iota // outside of operations, or about to ask
	asking                    // for a turn
	acting                    // it has the turn
	away                      // in the kernel
)

// taker is a thread that takes turns.
type taker struct {
	id    event.ThreadID
	state takerState
	depth int  // operations that it is in: once routines have their own
	idle  bool // it asks for a turn only to pass it on
	own   bool // its system call is none to other threads
	heap  bool // it is in an allocator
	awake bool // the kernel has just woken it

	seen    uint64 // its instructions when they were counted last
	mark    uint64 // its instructions when it got the turn
	total   uint64 // its instructions at the end of its last slice
	budgets uint64 // its instructions at its last AtBudget
	clock   uint64 // Kendo's logical clock
}

// spinLimit is after how many instructions in an operation a thread gives its
// turn away: it spins. An operation of a C library has some hundreds.
const spinLimit = 20_000

// Orderer is a Controller that gives threads places in an order from when they
// are made on, and is asked about one that was woken (AtWake) before that looks
// again at what it waited for.
type Orderer interface {
	Controller
	// Made tells that there is a new thread: Ask(AtStart) follows when it has a
	// core.
	Made(g *Gate, t event.ThreadID)
}

// ScheduleController is a Controller that makes or follows schedules.
type ScheduleController interface {
	Controller
	// Schedules tells whether it is asked about calls of malloc and its kin
	// (event.OpAllocate) and about returns of the routines that threads were made for
	// (event.OpThreadReturn).
	Schedules() bool
}

// HeapController is a Controller that is told when threads are in a function of
// an allocator.
type HeapController interface {
	Controller
	// CountsHeap tells whether it wants to be told.
	CountsHeap() bool
	// Allocates tells that a thread that has retired so many instructions enters
	// such a function, or has left it.
	Allocates(t event.ThreadID, instructions uint64, inside bool)
}

func newTurns(o ordering, p prices) *turns {
	return &turns{order: o, prices: p, threads: map[event.ThreadID]*taker{}}
}

// OrdersOperations tells whether a policy orders synchronization operations: it
// has a SyncController.
func OrdersOperations(policy string) bool {
	return policy == RRSync || policy == FCFSSync || policy == Kendo
}

// SyncController makes the controller of a policy that orders synchronization
// operations; nil for other policies. The options are complete and valid.
func SyncController(o Options, costs Costs) Controller {
	spin, semaphore := costs.Sync+costs.SpinCheck, costs.Sync+costs.SemaphoreWait
	switch o.Policy {
	case RRSync: // a turn may be long in coming: threads sleep
		return newTurns(&roundRobin{fairness: o.Fairness}, prices{semaphore, costs.Sync + costs.SemaphoreWake, spin})
	case FCFSSync: // nobody has it for longer than an operation
		return newTurns(&firstCome{}, prices{semaphore, spin, spin})
	case Kendo:
		return &instructionTurns{newTurns(&kendo{}, prices{spin, spin, spin})}
	}
	return nil
}

// taker returns the thread of an id, a new one if it was not heard of.
func (c *turns) taker(id event.ThreadID) *taker {
	t := c.threads[id]
	if t == nil {
		t = &taker{id: id}
		c.threads[id] = t
		c.order.joins(t, c.acting)
	}
	return t
}

// Made implements Orderer.
func (c *turns) Made(g *Gate, id event.ThreadID) { c.Woken(g, id) }

// Woken implements Controller.
func (c *turns) Woken(g *Gate, id event.ThreadID) {
	if t := c.taker(id); t.state == away {
		t.state = running
		c.order.joins(t, c.acting)
	}
	c.advance(g)
}

// Ask implements Controller.
func (c *turns) Ask(g *Gate, v *Visit) bool {
	t := c.taker(v.Thread)
	c.count(t, v.Instructions)
	switch v.Place {
	case AtEnter:
		return c.enter(g, t)
	case AtCall:
		t.own = v.Own
		return t.own && t.state != acting || c.enter(g, t)
	case AtWake:
		t.awake = true
		return t.depth == 0 || c.request(g, t)
	case AtReturn:
		c.leave(g, t)
	case AtBudget:
		return c.exhausted(g, t)
	}
	return true
}

// instructionTurns are turns by numbers of instructions. Those in an allocator do
// not count: how many they are depends on what others allocate meanwhile.
type instructionTurns struct{ *turns }

// CountsHeap implements HeapController.
func (c *instructionTurns) CountsHeap() bool { return true }

// Allocates implements HeapController.
func (c *instructionTurns) Allocates(id event.ThreadID, instructions uint64, inside bool) {
	t := c.taker(id)
	c.count(t, instructions)
	t.heap = inside
}

// count notes how many instructions a thread has retired.
func (c *turns) count(t *taker, instructions uint64) {
	if t.state == running && !t.heap && instructions > t.seen {
		c.order.ran(t, instructions-t.seen)
	}
	t.seen = instructions
}

// enter begins an operation. One within another, as in a once routine, is part of
// the turn.
func (c *turns) enter(g *Gate, t *taker) bool {
	t.depth++
	t.heap = false // it may have left an allocator by a jump
	if t.state == acting {
		return true
	}
	// As if the end of its budget had come before, and not just now.
	t.idle = c.order.spent(t)
	return c.request(g, t)
}

// request asks for a turn; true: it is the thread's at once.
func (c *turns) request(g *Gate, t *taker) bool {
	if t.state == acting {
		return true
	}
	t.state = asking
	c.order.asks(t)
	c.give(g, t)
	if t.state == asking {
		return false
	}
	t.awake = false
	g.Charge(c.prices.free)
	g.Cut() // the next slice has the budget of an operation
	return true
}

// give gives the turn to the next thread, as long as there is one: those that
// only pass it on do so. The one that is at the gate just now is not held yet.
func (c *turns) give(g *Gate, here *taker) {
	for c.acting == nil {
		t := c.order.next()
		if t == nil {
			return
		}
		switch {
		case t.idle && t.depth > 0:
			t.idle = false
			c.order.passes(t)
			continue
		case t.idle:
			t.idle, t.state = false, running
			c.order.passes(t)
		default:
			t.state, t.mark, c.acting = acting, t.seen, t
		}
		if t != here {
			g.Release(t.id, c.delay(t))
		}
	}
}

// delay is how long it takes a thread that was held to go on.
func (c *turns) delay(t *taker) event.Cycles {
	awake := t.awake
	if t.awake = false; awake {
		return c.prices.awake
	}
	return c.prices.wake
}

func (c *turns) advance(g *Gate) { c.give(g, nil) }

// leave ends an operation, and the turn with the outermost.
func (c *turns) leave(g *Gate, t *taker) {
	if t.depth == 0 {
		return
	}
	if t.depth--; t.depth > 0 || t.state != acting {
		return
	}
	t.state, c.acting = running, nil
	c.order.passes(t)
	c.advance(g)
}

// exhausted handles the end of a budget: a thread spins in an operation, or the
// ordering wants it to take a turn.
func (c *turns) exhausted(g *Gate, t *taker) bool {
	t.budgets = t.total
	if t.state == acting && t.seen-t.mark >= spinLimit {
		c.acting = nil
		t.state = running
		c.order.ran(t, spinLimit)
		c.order.passes(t)
		return c.request(g, t)
	}
	if t.state == running && c.order.spent(t) {
		t.idle = true
		return c.request(g, t)
	}
	return true
}

// Budget implements Controller.
func (c *turns) Budget(id event.ThreadID) uint64 {
	t := c.threads[id]
	if t == nil {
		return 0
	}
	left, limited := c.order.budget(t)
	if t.state == acting {
		spins := spinLimit - min(spinLimit, t.seen-t.mark)
		if limited {
			spins = min(spins, left)
		}
		left, limited = spins, true
	}
	if !limited {
		return 0
	}
	return t.total - t.budgets + left
}

// Called implements Controller.
func (c *turns) Called(g *Gate, id event.ThreadID, _ uint64) {
	t := c.taker(id)
	if !t.own || t.state == acting {
		c.leave(g, t)
	}
	t.own = false
}

// Blocked implements Controller.
func (c *turns) Blocked(g *Gate, id event.ThreadID, inside bool) {
	t := c.taker(id)
	if t.own && !inside && t.depth == 0 {
		return
	}
	if t.state == asking {
		return // a signal has stopped it; it keeps its place
	}
	c.remove(t)
	t.state = away
	c.advance(g)
}

// remove takes a thread out of the order.
func (c *turns) remove(t *taker) {
	if c.acting == t {
		c.acting = nil
	}
	if t.state != away {
		c.order.leaves(t)
	}
}

// Exited implements Controller.
func (c *turns) Exited(g *Gate, id event.ThreadID) {
	if t := c.threads[id]; t != nil {
		c.remove(t)
		delete(c.threads, id)
		c.advance(g)
	}
}

// Stepped implements Controller.
func (c *turns) Stepped(g *Gate, id event.ThreadID, instructions uint64, _ event.Cycles) {
	t := c.threads[id]
	if t == nil {
		return
	}
	t.total += instructions
	c.count(t, t.total)
	c.advance(g)
}

// Stuck implements Controller: threads that wait in system calls without a turn
// stand in the way of those that they wait for.
func (c *turns) Stuck(g *Gate) {
	for _, t := range c.inOrder() {
		if t.state == running {
			c.remove(t)
			t.state = away
		}
	}
	c.advance(g)
}
