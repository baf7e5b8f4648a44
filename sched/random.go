package sched

import "github.com/heddle-dmt/heddle/recorder/event"

// random gives each slice to a runnable thread that the seed draws, all being
// equally likely. The length of slices is geometric around Quantum, up to the
// next block boundary; at granularity "instruction" it is exact, and at "sync"
// slices last to the thread's next sync point. A thread that yields is left out
// of the next draw.
//
// The bound for invariant 5 is that of untimed: a starving thread takes
// precedence.
type random struct {
	untimed
	random      stream
	quantum     uint64
	granularity string
	yielded     slot
}

func newRandom(seed uint64, o Options) *random {
	return &random{
		untimed: newUntimed(o), random: newStream(seed, 'R'),
		quantum: o.Quantum, granularity: o.Granularity, yielded: none,
	}
}

func (*random) Ready(*Cluster, event.ThreadID, event.Cycles) {}
func (*random) Exit(*Cluster, event.ThreadID)                {}
func (*random) Ran(*Cluster, Slice, uint64, event.Cycles)    {}

func (p *random) Yield(c *Cluster, t event.ThreadID) { p.yielded = c.slot(t) }

func (p *random) Block(c *Cluster, t event.ThreadID) {
	if p.yielded == c.slot(t) {
		p.yielded = none
	}
}

func (p *random) Next(c *Cluster, timer event.Cycles, hasTimer bool) (Slice, Verdict) {
	if p.due(c, timer, hasTimer) {
		return Slice{}, FireTimer
	}
	s := p.starving(c)
	if s == none {
		s = p.draw(c)
	}
	p.yielded = none
	out := p.slice(c, s, timer, hasTimer)
	out.Instructions = p.patience(c, s)
	if p.granularity == Sync {
		out.StopAtSync, out.PauseAfter = true, 0
		return out, Run
	}
	out.Instructions = min(out.Instructions, p.random.geometric(p.quantum))
	out.Exact = p.granularity == Instruction
	return out, Run
}

// draw returns a runnable thread, not the one that yielded unless it is the
// only one.
func (p *random) draw(c *Cluster) slot {
	n := uint64(len(c.runnable))
	if p.yielded == none || n == 1 {
		return c.runnable[p.random.below(n)]
	}
	if s := c.runnable[p.random.below(n-1)]; s != p.yielded {
		return s
	}
	return c.runnable[n-1]
}
