package windows

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched"
)

// Place is an instruction that a thread executes in a window. Turns cut a thread's instructions into
// segments: one begins with each turn, and another one with the end of it.
type Place struct {
	Thread string
	// Cuts is the number of the segment, from 0 at the begin of the window. Occurrence counts the times that
	// the thread reaches PC in it, from 1. PC 0 stands for what the kernel does for the thread in the segment, and
	// Occurrence is then 0.
	Cuts       int
	PC         arch.Addr
	Occurrence int
}

// Constraint orders two instructions that race: First is executed before Second (PEREGRINE, section 3.1).
type Constraint struct{ First, Second Place }

// Schedule is how the server's threads are ordered in a window: the order of their turns, and the
// constraints on instructions that the turns leave unordered. It is for windows whose input has the hash Exact, and, if
// it has a precondition, for the inputs that this admits.
type Schedule struct {
	Exact uint64
	Precondition
	Turns       []Point
	Constraints []Constraint
}

// arrivals counts how often a thread reaches instructions of constraints in its present segment.
type arrivals struct {
	counts map[arch.Addr]int
	// last is the instruction of the last arrival, and after the thread's instructions then, plus one.
	last  arch.Addr
	after uint64
	// crossing reports that the thread executes the instruction there, which is the first of a constraint.
	crossing bool
}

// constraintSet is the constraints that are followed in a window.
type constraintSet struct {
	list []Constraint
	// posted reports of each that its first instruction was executed.
	posted          []bool
	firsts, seconds map[string][]int // by thread
}

func newConstraintSet(list []Constraint) constraintSet {
	s := constraintSet{list: list, posted: make([]bool, len(list)), firsts: map[string][]int{}, seconds: map[string][]int{}}
	for i := range list {
		first, second := list[i].First.Thread, list[i].Second.Thread
		s.firsts[first] = append(s.firsts[first], i)
		s.seconds[second] = append(s.seconds[second], i)
	}
	return s
}

// Addresses are those of the instructions of the constraints that the window may follow, in ascending order.
func (c *Controller) Addresses() (list []arch.Addr) {
	for _, i := range c.candidate {
		for _, o := range c.store.schedules[i].Constraints {
			for _, p := range []Place{o.First, o.Second} {
				if p.PC != 0 {
					list = append(list, p.PC)
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// follow has the constraints of the first candidate followed. In a window that has begun, those are
// posted whose first instruction was executed.
func (c *Controller) follow() {
	c.set = constraintSet{}
	if len(c.candidate) == 0 {
		return
	}
	c.set = newConstraintSet(c.store.schedules[c.candidate[0]].Constraints)
	for _, t := range c.threads {
		for _, i := range c.set.firsts[t.name] {
			p := &c.set.list[i].First
			c.set.posted[i] = p.Cuts < t.cuts || p.Cuts == t.cuts && p.PC != 0 && t.arrivals.counts[p.PC] >= p.Occurrence
		}
	}
}

// awaited is a constraint that holds a thread at an arrival, or -1.
func (c *Controller) awaited(t *serverThread, cuts int, pc arch.Addr, occurrence int) int {
	for _, i := range c.set.seconds[t.name] {
		if p := &c.set.list[i].Second; p.Cuts == cuts && p.PC == pc && p.Occurrence == occurrence && !c.set.posted[i] {
			return i
		}
	}
	return -1
}

// arrive handles a thread that is at an instruction of constraints.
func (c *Controller) arrive(g *sched.Gate, t *serverThread, v *sched.SyncPoint) bool {
	a := &t.arrivals
	if len(c.set.list) == 0 || a.crossing {
		return true
	}
	switch again := a.last == v.PC && a.after > 0; {
	case again && a.after == v.Instructions+1:
		// It was held here, or its quantum ended here.
	case again && a.after == v.Instructions:
		a.after++ // a repeated instruction continues
	default:
		if a.counts == nil {
			a.counts = map[arch.Addr]int{}
		}
		a.counts[v.PC]++
		a.last, a.after = v.PC, v.Instructions+1
	}
	if i := c.awaited(t, t.cuts, v.PC, a.counts[v.PC]); i >= 0 {
		t.awaits, t.resumed, t.state = i, t.state, stalled
		c.result.Stalled++
		return false
	}
	for _, i := range c.set.firsts[t.name] {
		if !c.set.posted[i] && c.isAt(t, &c.set.list[i].First) {
			a.crossing = true
			g.Cut()
			break
		}
	}
	return true
}

// isAt reports whether the last arrival of a thread is at a place.
func (c *Controller) isAt(t *serverThread, p *Place) bool {
	return p.Cuts == t.cuts && p.PC == t.arrivals.last && p.Occurrence == t.arrivals.counts[p.PC]
}

// cross handles a thread that has executed an instruction of a constraint, or a round of it.
func (c *Controller) cross(g *sched.Gate, t *serverThread, pc arch.Addr) {
	if !t.arrivals.crossing {
		return
	}
	if pc == t.arrivals.last {
		t.arrivals.after++
		return
	}
	c.completeCrossing(g, t)
}

// completeCrossing posts the constraints whose first instruction a thread has executed.
func (c *Controller) completeCrossing(g *sched.Gate, t *serverThread) {
	t.arrivals.crossing = false
	for _, i := range c.set.firsts[t.name] {
		if c.isAt(t, &c.set.list[i].First) {
			c.post(g, i)
		}
	}
}

// post lets the threads continue that a constraint holds.
func (c *Controller) post(g *sched.Gate, i int) {
	if c.set.posted[i] {
		return
	}
	c.set.posted[i] = true
	c.result.Enforced++
	for _, t := range c.sorted() {
		if t.state == stalled && t.awaits == i {
			t.state = t.resumed
			g.Release(t.id, c.costs.SpinCheck)
		}
	}
}

// sorted lists the server's threads in the order of their ids.
func (c *Controller) sorted() []*serverThread {
	list := make([]*serverThread, 0, len(c.threads))
	for _, t := range c.threads {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *serverThread) int { return int(a.id) - int(b.id) })
	return list
}

// cut begins the next segment of a thread. What the thread was to do in earlier ones precedes all that the
// others do after a later turn; a constraint that it did not reach there was missed.
func (c *Controller) cut(g *sched.Gate, t *serverThread) {
	if t.arrivals.crossing {
		c.completeCrossing(g, t)
	}
	t.cuts++
	t.arrivals = arrivals{}
	c.postUpTo(g, t, t.cuts)
	if c.Cut != nil {
		c.Cut(t.id, t.name)
	}
}

// postUpTo posts the constraints whose first instruction is in an earlier segment of a thread.
func (c *Controller) postUpTo(g *sched.Gate, t *serverThread, cuts int) {
	for _, i := range c.set.firsts[t.name] {
		if p := &c.set.list[i].First; !c.set.posted[i] && p.Cuts < cuts {
			if p.PC != 0 {
				c.result.Missed++
			}
			c.post(g, i)
		}
	}
}

// releaseStalled gives up the constraint that holds a thread, when all threads wait, and reports whether
// there was one.
func (c *Controller) releaseStalled(g *sched.Gate) bool {
	for _, t := range c.sorted() {
		if t.state == stalled {
			c.result.Missed++
			c.post(g, t.awaits)
			return true
		}
	}
	return false
}

// releaseTurn gives up a constraint that holds the turn, when all threads wait, and reports whether there was one.
func (c *Controller) releaseTurn(g *sched.Gate) bool {
	for _, t := range c.queue {
		if len(c.candidate) > 0 && c.isItsTurn(t) {
			if i := c.awaited(t, t.cuts+1, 0, 0); i >= 0 {
				c.result.Missed++
				c.post(g, i)
				return true
			}
		}
	}
	return false
}

// StopDistance implements sched.Controller: a thread that executes the first instruction of a constraint
// stops after it.
func (c *Controller) StopDistance(id arch.ThreadID, done uint64) (soon, exactly uint64, accesses uint8) {
	t := c.threads[id]
	if t == nil || !t.arrivals.crossing {
		return sched.NoStop, sched.NoStop, 0
	}
	return sched.NoStop, t.arrivals.after - min(t.arrivals.after, done), 0
}
