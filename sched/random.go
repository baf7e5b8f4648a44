package sched

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/rand"
)

// random gives each quantum to a runnable thread that the seed draws, all being
// equally likely. The length of quanta is geometric around Quantum, up to the
// next block boundary; at granularity "instruction" it is exact, and at "sync"
// quanta last to the thread's next sync point. A thread that yields is left out
// of the next draw.
//
// The bound for invariant 5 is that of untimed: a starving thread takes
// precedence.
type random struct {
	clocklessPolicy
	random      rand.Stream
	quantum     uint64
	granularity string
	yielded     slot
}

func newRandom(seed uint64, o Options) *random {
	return &random{
		clocklessPolicy: newClocklessPolicy(o), random: rand.NewStream(seed, 'R'),
		quantum: o.Quantum, granularity: o.Granularity, yielded: noSlot,
	}
}

func (*random) Ready(*Cluster, arch.ThreadID, arch.Cycles) {}
func (*random) Exit(*Cluster, arch.ThreadID)               {}
func (*random) Ran(*Cluster, Quantum, uint64, arch.Cycles) {}

func (p *random) Yield(c *Cluster, t arch.ThreadID) { p.yielded = c.slotOf(t) }

func (p *random) Block(c *Cluster, t arch.ThreadID) {
	if p.yielded == c.slotOf(t) {
		p.yielded = noSlot
	}
}

func (p *random) Next(c *Cluster, timer arch.Cycles, hasTimer bool) (Quantum, Verdict) {
	if p.timerIsDue(c, timer, hasTimer) {
		return Quantum{}, FireTimer
	}
	s := p.starvingThread(c)
	if s == noSlot {
		s = p.drawThread(c)
	}
	p.yielded = noSlot
	out := p.quantumWithoutBudget(c, s, timer, hasTimer)
	out.Instructions = p.longestQuantum(c, s)
	if p.granularity == Sync {
		out.StopAtSync, out.PauseAfter = true, 0
		return out, Run
	}
	out.Instructions = min(out.Instructions, p.random.Geometric(p.quantum))
	out.Exact = p.granularity == Instruction
	return out, Run
}

// drawThread returns a runnable thread, not the one that yielded unless it is the
// only one.
func (p *random) drawThread(c *Cluster) slot {
	n := uint64(len(c.runnable))
	if p.yielded == noSlot || n == 1 {
		return c.runnable[p.random.Below(n)]
	}
	if s := c.runnable[p.random.Below(n-1)]; s != p.yielded {
		return s
	}
	return c.runnable[n-1]
}
