package sched

import (
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// priority runs, of the threads that can run, the one that comes first in an
// order, on one core, until it cannot go on or one before it can (Frost section
// 3.1). A thread that yields, with sched_yield or the PAUSE of a spin loop, lets
// all others go first once: what it spins for may be theirs. Timers fire when no
// thread can run.
//
// It does not keep invariant 5: a thread that spins for another behind it without
// yielding spins for ever. Whoever uses it bounds the run.
type priority struct {
	ranks   map[event.ThreadID]int
	threads []ranked // that can run, in order
	core    event.CoreID
}

// ranked is a thread that can run, and whether it has yielded since all others
// could not go on.
type ranked struct {
	rank    int
	thread  event.ThreadID
	yielded bool
}

// NewPriority is the policy of an order of threads. Those that are not in it come
// behind, by their numbers.
func NewPriority(order []event.ThreadID) Policy {
	p := &priority{ranks: map[event.ThreadID]int{}}
	for i, t := range order {
		p.ranks[t] = i
	}
	return p
}

func (p *priority) rank(t event.ThreadID) int {
	if r, ok := p.ranks[t]; ok {
		return r
	}
	return len(p.ranks) + int(t)
}

// Ready implements Policy, and so do the other methods.
func (p *priority) Ready(_ *Cluster, t event.ThreadID, _ event.Cycles) {
	r := p.rank(t)
	i, _ := slices.BinarySearchFunc(p.threads, r, func(x ranked, r int) int { return x.rank - r })
	p.threads = slices.Insert(p.threads, i, ranked{rank: r, thread: t})
}

func (p *priority) Block(_ *Cluster, t event.ThreadID) {
	p.threads = slices.DeleteFunc(p.threads, func(x ranked) bool { return x.thread == t })
}

func (p *priority) Exit(*Cluster, event.ThreadID) {}

func (p *priority) Yield(_ *Cluster, t event.ThreadID) {
	for i := range p.threads {
		if p.threads[i].thread == t {
			p.threads[i].yielded = true
		}
	}
}

func (p *priority) Next(c *Cluster, _ event.Cycles, _ bool) (Slice, Verdict) {
	t := p.first()
	if !c.PlaceOn(t, p.core) {
		p.core = c.Place(t) // its affinity is for another one
	}
	return Slice{Core: p.core, Thread: t, Instructions: prioritySlice, StopAtPause: len(p.threads) > 1}, Run
}

// prioritySlice bounds a slice, in instructions, so that whoever drives the
// machine sees a thread that does not stop by itself.
const prioritySlice = 100_000

// first is the first thread that has not yielded. When all have, all are asked
// anew.
func (p *priority) first() event.ThreadID {
	i := slices.IndexFunc(p.threads, func(x ranked) bool { return !x.yielded })
	if i < 0 {
		for j := range p.threads {
			p.threads[j].yielded = false
		}
		i = 0
	}
	return p.threads[i].thread
}

func (p *priority) Ran(*Cluster, Slice, uint64, event.Cycles) {}

// Follow has another policy decide from now on. Its threads are those that can
// run.
func (c *Cluster) Follow(p Policy) {
	for s := c.order.first; s != none; s = c.order.after(s) {
		c.vacate(s)
	}
	c.policy = p
	for s := c.order.first; s != none; s = c.order.after(s) {
		p.Ready(c, c.threads[s].id, c.threads[s].readyAt)
	}
}

// FollowOptions is Follow with the policy of a seed and of options, which must be
// valid.
func (c *Cluster) FollowOptions(seed uint64, o Options) {
	c.Follow(newPolicy(len(c.cores), seed, o.WithDefaults()))
}
