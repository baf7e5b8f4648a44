package dmt

import (
	"cmp"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// parrotController is PARROT (Cui, Simsa, Lin, Li, Blum, Xu, Yang, Gibson, Bryant: Parrot: a practical
// runtime for deterministic, stable, and reliable threads, SOSP 2013). Operations take turns
// round-robin, like those of roundRobinOrder; a thread that waits for its turn spins. Two hints, which
// order nothing, make that fast:
//
//   - A soft barrier has threads wait until as many as it was made for have come, so that
//     their computations overlap, but no longer than a number of turns, and not while all other
//     threads wait.
//   - Threads in a performance-critical section take no turns. The order of their
//     operations depends on timing.
type parrotController struct {
	*turnController
	barriers map[arch.Addr]*softBarrier
	turns    uint64 // that have ended
}

// softBarrier is a soft barrier; count is 0 before it is made.
type softBarrier struct {
	count   int
	longest uint64 // turns
	waiting threadQueue
	since   uint64 // the turn of the first that waits
}

// defaultSoftTurns is the number of turns after which a soft barrier opens for which none was given.
const defaultSoftTurns = 1000

// barrier returns the barrier of an event, which may set its numbers.
func (c *parrotController) barrier(e *event.Sync) *softBarrier {
	b := c.barriers[e.Addr]
	if b == nil {
		b = &softBarrier{}
		c.barriers[e.Addr] = b
	}
	if count := int(uint32(e.Value)); count > 0 {
		b.count, b.longest = count, cmp.Or(e.Value>>32, defaultSoftTurns)
	}
	return b
}

// Ask implements Controller.
func (c *parrotController) Ask(g *sched.Gate, v *sched.SyncPoint) bool {
	t := c.threadOf(v.Thread)
	op := event.OpNone
	if v.Sync != nil {
		op = v.Sync.Op
	}
	if t.free {
		if v.Kind != sched.AtEnter || op != event.OpSectionExit {
			t.seen = v.Instructions
			return true
		}
		t.free, t.state, t.depth = false, running, 0
		c.order.addRunnable(t, nil)
	}
	switch {
	case v.Kind == sched.AtEnter && (op == event.OpSoftBarrierInit || op == event.OpSoftBarrierWait):
		t.soft = c.barrier(v.Sync)
	case v.Kind == sched.AtReturn && op == event.OpSoftBarrierWait && t.state == acting && t.depth == 1:
		if t.soft != nil && t.soft.count > 1 {
			return c.arrive(g, t, t.soft)
		}
	case v.Kind == sched.AtReturn && op == event.OpSectionEnter && t.state == acting && t.depth == 1:
		c.turnController.Ask(g, v)
		c.order.removeThread(t)
		t.free = true
		c.endTurn(g)
		return true
	}
	resumes := c.turnController.Ask(g, v)
	if v.Kind == sched.AtReturn {
		c.endTurn(g)
	}
	return resumes
}

// arrive has a thread wait at a soft barrier at the end of its turn, or opens the barrier. It returns
// whether the thread may continue.
func (c *parrotController) arrive(g *sched.Gate, t *turnThread, b *softBarrier) bool {
	if len(b.waiting) == 0 {
		b.since = c.turns
	}
	if len(b.waiting)+1 >= b.count {
		c.open(g, b)
		c.leaveOperation(g, t)
		c.endTurn(g)
		return true
	}
	b.waiting.addThread(t)
	t.depth, t.state, c.acting = 0, parked, nil
	c.order.removeThread(t)
	c.grantNextTurns(g)
	c.endTurn(g)
	return t.state == running // it has opened at once
}

// open lets the threads that wait at a barrier continue, in the order of their arrival.
func (c *parrotController) open(g *sched.Gate, b *softBarrier) {
	for _, t := range b.waiting {
		t.state = running
		c.order.addRunnable(t, nil)
		g.Release(t.id, c.prices.awake)
	}
	b.waiting = b.waiting[:0]
}

// endTurn counts a turn, and opens the barriers at which threads have waited for long, or the one
// where they have waited for longest if no other thread takes turns.
func (c *parrotController) endTurn(g *sched.Gate) {
	c.turns++
	var oldest *softBarrier
	for _, at := range slices.Sorted(maps.Keys(c.barriers)) {
		b := c.barriers[at]
		switch {
		case len(b.waiting) == 0:
		case c.turns-b.since >= b.longest:
			c.open(g, b)
		case oldest == nil || b.since < oldest.since:
			oldest = b
		}
	}
	if oldest != nil && c.acting == nil && len(c.order.(*roundRobinOrder).line) == 0 {
		c.open(g, oldest)
	}
	c.grantNextTurns(g)
}

// Called implements Controller.
func (c *parrotController) Called(g *sched.Gate, id arch.ThreadID, result uint64) {
	if !c.threadOf(id).free {
		c.turnController.Called(g, id, result)
		c.endTurn(g)
	}
}

// Blocked implements Controller.
func (c *parrotController) Blocked(g *sched.Gate, id arch.ThreadID, inside bool) {
	if t := c.threadOf(id); !t.free && t.state != parked {
		c.turnController.Blocked(g, id, inside)
		c.endTurn(g)
	}
}

// Woken implements Controller.
func (c *parrotController) Woken(g *sched.Gate, id arch.ThreadID) {
	if !c.threadOf(id).free {
		c.turnController.Woken(g, id)
	}
}

// Exited implements Controller.
func (c *parrotController) Exited(g *sched.Gate, id arch.ThreadID) {
	t := c.threads[id]
	if t == nil {
		return
	}
	for _, b := range c.barriers {
		b.waiting.removeThread(t)
	}
	c.turnController.Exited(g, id)
	c.endTurn(g)
}

// Budget implements Controller.
func (c *parrotController) Budget(id arch.ThreadID) uint64 {
	if t := c.threads[id]; t != nil && t.free {
		return 0
	}
	return c.turnController.Budget(id)
}
