package sched

import "github.com/heddle-dmt/heddle/emu/arch"

// rr is round-robin over the runnable threads: the one that has not run for
// longest gets the next turn, whatever the number of cores. A turn ends at the
// first block boundary at or after Quantum instructions; at granularity
// "instruction" it has exactly this many, at "sync" it lasts to the thread's next
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
	clocklessPolicy
	quantum     uint64
	granularity string
	turns       uint64
}

func newRR(o Options) *rr {
	return &rr{clocklessPolicy: newClocklessPolicy(o), quantum: o.Quantum, granularity: o.Granularity}
}

func (*rr) Ready(*Cluster, arch.ThreadID, arch.Cycles) {}
func (*rr) Block(*Cluster, arch.ThreadID)              {}
func (*rr) Exit(*Cluster, arch.ThreadID)               {}
func (*rr) Ran(*Cluster, Quantum, uint64, arch.Cycles) {}

// Yield has nothing to do: the thread's turn has ended, and having just run it
// is the last in line.
func (*rr) Yield(*Cluster, arch.ThreadID) {}

func (p *rr) Next(c *Cluster, timer arch.Cycles, hasTimer bool) (Quantum, Verdict) {
	if p.timerIsDue(c, timer, hasTimer) {
		return Quantum{}, FireTimer
	}
	out := p.quantumWithoutBudget(c, c.order.firstSlot, timer, hasTimer)
	switch p.granularity {
	case Sync:
		out.Instructions, out.StopAtSync, out.PauseAfter = p.fairShare(c), true, 0
	default:
		out.Instructions, out.Exact = p.nextTurnLength(), p.granularity == Instruction
	}
	return out, Run
}

// nextTurnLength is that of the next turn: multiples of the golden ratio spread evenly
// and have no period.
func (p *rr) nextTurnLength() uint64 {
	p.turns++
	part := p.turns * 0x9e3779b97f4a7c15 >> 32 // of 2^32
	return p.quantum - (p.quantum/16+1)*part>>32
}
