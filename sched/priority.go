package sched

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// priority runs, of the threads that can run, the one that comes first in an
// order, on one core, until it cannot continue or one before it can (Frost section
// 3.1). A thread that yields, with sched_yield or the PAUSE of a spin loop, or that runs
// longer than the patience, lets all others go first once: its spinning may end by one
// of them. Timers fire when no thread can run.
//
// It does not keep invariant 5: without patience, a thread that spins for a later one
// without yielding spins for ever. Whoever uses it bounds the run.
type priority struct {
	ranks    map[arch.ThreadID]int
	threads  []orderedThread // that can run, in order
	core     arch.CoreID
	patience uint64 // instructions; 0: without end
	running  arch.ThreadID
	ran      uint64 // instructions of running since another thread has run
}

// orderedThread is a thread that can run, and whether it has yielded since all others
// could not continue.
type orderedThread struct {
	rank    int
	thread  arch.ThreadID
	yielded bool
}

// NewPriority is the policy of an order of threads. Threads that are not in it
// follow, by their numbers. A thread that has executed more than patience instructions while
// others can run is taken to spin; 0: none is.
func NewPriority(order []arch.ThreadID, patience uint64) Policy {
	p := &priority{ranks: map[arch.ThreadID]int{}, patience: patience}
	for i, t := range order {
		p.ranks[t] = i
	}
	return p
}

func (p *priority) rankOf(t arch.ThreadID) int {
	if r, ok := p.ranks[t]; ok {
		return r
	}
	return len(p.ranks) + int(t)
}

// Ready implements Policy, and so do the other methods.
func (p *priority) Ready(_ *Cluster, t arch.ThreadID, _ arch.Cycles) {
	r := p.rankOf(t)
	i, _ := slices.BinarySearchFunc(p.threads, r, func(x orderedThread, r int) int { return x.rank - r })
	p.threads = slices.Insert(p.threads, i, orderedThread{rank: r, thread: t})
}

func (p *priority) Block(_ *Cluster, t arch.ThreadID) {
	p.threads = slices.DeleteFunc(p.threads, func(x orderedThread) bool { return x.thread == t })
}

func (p *priority) Exit(*Cluster, arch.ThreadID) {}

func (p *priority) Yield(_ *Cluster, t arch.ThreadID) {
	for i := range p.threads {
		if p.threads[i].thread == t {
			p.threads[i].yielded = true
		}
	}
}

func (p *priority) Next(c *Cluster, _ arch.Cycles, _ bool) (Quantum, Verdict) {
	t := p.firstToRun()
	if !c.PlaceOn(t, p.core) {
		p.core = c.Place(t) // its affinity is for another one
	}
	return Quantum{Core: p.core, Thread: t, Instructions: prioritySlice, StopAtPause: len(p.threads) > 1}, Run
}

// prioritySlice bounds a slice, in instructions, so that whoever drives the
// machine sees a thread that does not stop by itself.
const prioritySlice = 100_000

// firstToRun is the first thread that has not yielded. When all have, all are asked
// anew.
func (p *priority) firstToRun() arch.ThreadID {
	i := slices.IndexFunc(p.threads, func(x orderedThread) bool { return !x.yielded })
	if i < 0 {
		for j := range p.threads {
			p.threads[j].yielded = false
		}
		i = 0
	}
	return p.threads[i].thread
}

func (p *priority) Ran(c *Cluster, q Quantum, instructions uint64, _ arch.Cycles) {
	if q.Thread != p.running {
		p.running, p.ran = q.Thread, 0
	}
	if p.ran += instructions; p.patience > 0 && p.ran > p.patience {
		p.ran = 0
		p.Yield(c, q.Thread)
	}
}

// SwitchPolicy lets another policy decide from now on; the runnable threads are reported to it.
func (c *Cluster) SwitchPolicy(p Policy) {
	for s := c.order.firstSlot; s != noSlot; s = c.order.successorOf(s) {
		c.vacateCore(s)
	}
	c.policy = p
	for s := c.order.firstSlot; s != noSlot; s = c.order.successorOf(s) {
		p.Ready(c, c.threads[s].id, c.threads[s].readyAt)
	}
}
