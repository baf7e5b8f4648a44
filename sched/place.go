package sched

import (
	"math/bits"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Cores returns the number of cores.
func (c *Cluster) Cores() int { return len(c.cores) }

// Now returns a core's clock.
func (c *Cluster) Now(core event.CoreID) event.Cycles { return c.cores[core].clock }

// Makespan returns the greatest clock of all cores.
func (c *Cluster) Makespan() event.Cycles { return c.furthest }

// Worked returns for how long cores ran or were charged, all together: their clocks
// without the time in which they stood still.
func (c *Cluster) Worked() event.Cycles { return c.worked }

// Switches returns how often a core went from one thread to another.
func (c *Cluster) Switches() uint64 { return c.switches }

// Instructions returns how many instructions all threads have run together.
func (c *Cluster) Instructions() uint64 { return c.instructions }

// On returns the thread that is placed on a core, or event.NoThread.
func (c *Cluster) On(core event.CoreID) event.ThreadID {
	if s := c.cores[core].thread; s != none {
		return c.threads[s].id
	}
	return event.NoThread
}

// CoreOf returns the core that a thread is placed on, or event.NoCore: only
// runnable threads are placed, and not all of those when they are more than the
// cores.
func (c *Cluster) CoreOf(t event.ThreadID) event.CoreID {
	if s, ok := c.slots.Get(t); ok {
		return c.threads[s].core
	}
	return event.NoCore
}

// LastCoreOf returns the core that a thread is placed on or was last, or
// event.NoCore if it never was.
func (c *Cluster) LastCoreOf(t event.ThreadID) event.CoreID {
	if s, ok := c.slots.Get(t); ok {
		return c.threads[s].last
	}
	return event.NoCore
}

// Runnable returns how many threads are runnable.
func (c *Cluster) Runnable() int { return len(c.runnable) }

// RunnableThread returns one of the runnable threads, i from 0 to Runnable()-1.
// Their order means nothing, but is repeatable and stays the same until a
// thread becomes runnable or stops being so.
func (c *Cluster) RunnableThread(i int) event.ThreadID { return c.threads[c.runnable[i]].id }

// LongestWaiting returns the runnable thread that has not run for longest, and
// how many instructions have run since it did or became runnable. At least one
// thread must be runnable.
func (c *Cluster) LongestWaiting() (event.ThreadID, uint64) {
	s := c.order.first
	return c.threads[s].id, c.waited(s)
}

// Place puts a runnable thread on a core if it is on none, and returns the
// core. It takes, of the cores that the thread may use, the one it was on last
// if that is idle, else the idle core with the smallest clock, else the core
// with the smallest clock, whose thread then waits.
func (c *Cluster) Place(t event.ThreadID) event.CoreID { return c.place(c.slot(t)) }

// PlaceOn puts a runnable thread on a core, whatever core it is on and whatever
// thread is there. It returns false, and does nothing, if the thread is not
// runnable or may not use the core.
func (c *Cluster) PlaceOn(t event.ThreadID, core event.CoreID) bool {
	s := c.slot(t)
	th := &c.threads[s]
	if th.index < 0 || th.affinity&bit(core) == 0 {
		return false
	}
	if th.core == core {
		return true
	}
	c.vacate(s)
	c.put(s, core)
	return true
}

func (c *Cluster) place(s slot) event.CoreID {
	th := &c.threads[s]
	if th.core != event.NoCore {
		return th.core
	}
	core := th.last
	if core == event.NoCore || c.idle&th.affinity&bit(core) == 0 {
		among := c.idle & th.affinity
		if among == 0 {
			among = th.affinity
		}
		core = c.earliest(among, 0)
	}
	c.put(s, core)
	return core
}

// earliest returns the core of the mask, which is not empty, on which a thread
// that is ready at a time can start first; the lowest-numbered of several.
func (c *Cluster) earliest(mask uint64, readyAt event.Cycles) event.CoreID {
	best := event.CoreID(bits.TrailingZeros64(mask))
	for rest := mask & (mask - 1); rest != 0; rest &= rest - 1 {
		k := event.CoreID(bits.TrailingZeros64(rest))
		if max(c.cores[k].clock, readyAt) < max(c.cores[best].clock, readyAt) {
			best = k
		}
	}
	return best
}

// put puts s, which is on no core, on one, whose thread, if any, then waits.
// The core's clock passes to the time at which s can go on.
func (c *Cluster) put(s slot, core event.CoreID) {
	k := &c.cores[core]
	if k.thread != none {
		c.vacate(k.thread)
	}
	th := &c.threads[s]
	c.Lift(core, th.readyAt)
	if k.last != event.NoThread && k.last != th.id {
		c.switches++
		c.Charge(core, c.switchCost)
	}
	c.settle(s, core)
}

// settle notes that s is on a core which had no thread.
func (c *Cluster) settle(s slot, core event.CoreID) {
	k, th := &c.cores[core], &c.threads[s]
	k.thread, k.last = s, th.id
	th.core, th.last = core, core
	c.idle &^= bit(core)
}

// vacate takes s off its core, if it is on one.
func (c *Cluster) vacate(s slot) {
	th := &c.threads[s]
	if th.core == event.NoCore {
		return
	}
	k := &c.cores[th.core]
	th.readyAt = max(th.readyAt, k.clock)
	c.idle |= bit(th.core)
	k.thread = none
	th.core = event.NoCore
}
