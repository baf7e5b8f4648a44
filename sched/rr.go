package sched

import "github.com/heddle-dmt/heddle/recorder/event"

// rr is round-robin over the runnable threads: the one that has not run for
// longest gets the next turn, whatever the number of cores. A turn ends at the
// first block boundary at or after Quantum instructions; at granularity
// "instruction" it has exactly so many, at "sync" it lasts to the thread's next
// sync point. It also ends when the thread blocks or when a timer becomes due.
//
// The lengths of turns differ by up to a sixteenth, in a fixed sequence: with
// equal ones a thread that takes a lock again and again can be in step with the
// turns, and hold the lock whenever another thread looks.
//
// The seed has no effect. The bound for invariant 5: every other runnable
// thread has one turn; at granularity "sync" turns are cut so that all together
// have at most Fairness instructions.
type rr struct {
	untimed
	quantum     uint64
	granularity string
	turns       uint64
}

func newRR(o Options) *rr {
	return &rr{untimed: newUntimed(o), quantum: o.Quantum, granularity: o.Granularity}
}

func (*rr) Ready(*Cluster, event.ThreadID, event.Cycles) {}
func (*rr) Block(*Cluster, event.ThreadID)               {}
func (*rr) Exit(*Cluster, event.ThreadID)                {}
func (*rr) Ran(*Cluster, Slice, uint64, event.Cycles)    {}

// Yield has nothing to do: the thread's turn has ended, and having just run it
// is the last in line.
func (*rr) Yield(*Cluster, event.ThreadID) {}

func (p *rr) Next(c *Cluster, timer event.Cycles, hasTimer bool) (Slice, Verdict) {
	if p.due(c, timer, hasTimer) {
		return Slice{}, FireTimer
	}
	out := p.slice(c, c.order.first, timer, hasTimer)
	switch p.granularity {
	case Sync:
		out.Instructions, out.StopAtSync, out.PauseAfter = p.turn(c), true, 0
	default:
		out.Instructions, out.Exact = p.length(), p.granularity == Instruction
	}
	return out, Run
}

// length is that of the next turn: multiples of the golden ratio spread evenly
// and have no period.
func (p *rr) length() uint64 {
	p.turns++
	part := p.turns * 0x9e3779b97f4a7c15 >> 32 // of 2^32
	return p.quantum - (p.quantum/16+1)*part>>32
}
