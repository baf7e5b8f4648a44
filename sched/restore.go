package sched

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Methods for policies that repeat a recorded run: they put threads and clocks where the record
// has them, without the cost of a decision of the cluster's own.

// An IdlePolicy is a Policy whose Next is also called while no thread is runnable. Its verdicts
// may be any, Idle included.
type IdlePolicy interface {
	Policy
	// DecidesWhenIdle reports whether that is so now.
	DecidesWhenIdle() bool
}

// Policy returns the policy that decides now.
func (c *Cluster) Policy() Policy { return c.policy }

// ContinueWith lets another policy decide from now on, which knows all threads
// already. See SwitchPolicy for one that does not.
func (c *Cluster) ContinueWith(p Policy) { c.policy = p }

// RestoreCores gives cores the threads and clocks of the list. It returns false, and the thread
// and core of the first entry that is impossible, if a thread is not runnable or may not use its
// core; the entries before have taken effect then.
func (c *Cluster) RestoreCores(list []event.CoreState) (impossible event.CoreState, ok bool) {
	for _, s := range list {
		if k := &c.cores[s.Core]; k.thread != noSlot && c.threads[k.thread].id != s.Thread {
			c.vacateCore(k.thread)
		}
	}
	for _, s := range list {
		c.RestoreClock(s.Core, s.Clock)
		if s.Thread == arch.NoThread || c.On(s.Core) == s.Thread {
			continue
		}
		t, known := c.slots.Get(s.Thread)
		if !known || c.threads[t].index < 0 || c.threads[t].affinity&coreMask(s.Core) == 0 {
			return s, false
		}
		c.vacateCore(t)
		c.occupyCore(t, s.Core)
	}
	return event.CoreState{}, true
}

// RestoreClock sets a core's clock, backwards too.
func (c *Cluster) RestoreClock(core arch.CoreID, clock arch.Cycles) {
	c.cores[core].clock = clock
	c.furthest = max(c.furthest, clock)
}

// RestoreTotals sets the greatest clock and the number of switches between threads.
func (c *Cluster) RestoreTotals(makespan arch.Cycles, switches uint64) {
	c.furthest, c.switches = makespan, switches
}
