package sched

import (
	"math/bits"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Cores returns the number of cores.
func (c *Cluster) Cores() int { return len(c.cores) }

// Now returns a core's clock.
func (c *Cluster) Now(core arch.CoreID) arch.Cycles { return c.cores[core].clock }

// Makespan returns the greatest clock of all cores.
func (c *Cluster) Makespan() arch.Cycles { return c.furthest }

// Worked returns for how long cores ran or were charged, all together: their clocks
// without the time in which they stood still.
func (c *Cluster) Worked() arch.Cycles { return c.worked }

// Switches returns how often a core went from one thread to another.
func (c *Cluster) Switches() uint64 { return c.switches }

// Instructions returns how many instructions all threads have run together.
func (c *Cluster) Instructions() uint64 { return c.instructions }

// On returns the thread that is placed on a core, or arch.NoThread.
func (c *Cluster) On(core arch.CoreID) arch.ThreadID {
	if s := c.cores[core].thread; s != noSlot {
		return c.threads[s].id
	}
	return arch.NoThread
}

// CoreOf returns the core that a thread is placed on, or arch.NoCore: only
// runnable threads are placed, and not all of those when they are more than the
// cores.
func (c *Cluster) CoreOf(t arch.ThreadID) arch.CoreID {
	if s, ok := c.slots.Get(t); ok {
		return c.threads[s].core
	}
	return arch.NoCore
}

// LastCoreOf returns the core that a thread is placed on or was last, or
// arch.NoCore if it never was.
func (c *Cluster) LastCoreOf(t arch.ThreadID) arch.CoreID {
	if s, ok := c.slots.Get(t); ok {
		return c.threads[s].last
	}
	return arch.NoCore
}

// ReadyAt returns the virtual time before which a thread cannot continue, 0 for an unknown thread.
func (c *Cluster) ReadyAt(t arch.ThreadID) arch.Cycles {
	if s, ok := c.slots.Get(t); ok {
		return c.threads[s].readyAt
	}
	return 0
}

// Delay keeps a thread from continuing before a virtual time: on the core that it is placed on, or
// wherever it runs next. It does nothing to an unknown thread.
func (c *Cluster) Delay(t arch.ThreadID, until arch.Cycles) {
	s, ok := c.slots.Get(t)
	if !ok {
		return
	}
	if th := &c.threads[s]; th.core != arch.NoCore {
		c.Lift(th.core, until)
	} else {
		th.readyAt = max(th.readyAt, until)
	}
}

// EarliestCore returns the core of the mask, which is not empty, on which a thread that is ready at
// a time can start first; the one with the lowest number of several.
func (c *Cluster) EarliestCore(mask uint64, readyAt arch.Cycles) arch.CoreID {
	return c.earliestCore(mask, readyAt)
}

// MostRunnable is the greatest number of threads that were ever runnable at once.
func (c *Cluster) MostRunnable() int { return c.peak }

// Runnable returns how many threads are runnable.
func (c *Cluster) Runnable() int { return len(c.runnable) }

// RunnableThread returns one of the runnable threads, i from 0 to Runnable()-1.
// Their order means nothing, but is repeatable and stays the same until a
// thread becomes runnable or stops being so.
func (c *Cluster) RunnableThread(i int) arch.ThreadID { return c.threads[c.runnable[i]].id }

// LongestWaiting returns the runnable thread that has not run for longest, and
// how many instructions have run since it did or became runnable. At least one
// thread must be runnable.
func (c *Cluster) LongestWaiting() (arch.ThreadID, uint64) {
	s := c.order.firstSlot
	return c.threads[s].id, c.instructionsWaited(s)
}

// Place puts a runnable thread on a core if it is on none, and returns the
// core. It takes, of the cores that the thread may use, the one it was on last
// if that is idle, else the idle core with the smallest clock, else the core
// with the smallest clock, whose thread then waits.
func (c *Cluster) Place(t arch.ThreadID) arch.CoreID { return c.placeSlot(c.slotOf(t)) }

// PlaceOn puts a runnable thread on a core, whatever core it is on and whatever
// thread is there. It returns false, and does nothing, if the thread is not
// runnable or may not use the core.
func (c *Cluster) PlaceOn(t arch.ThreadID, core arch.CoreID) bool {
	s := c.slotOf(t)
	th := &c.threads[s]
	if th.index < 0 || th.affinity&coreMask(core) == 0 {
		return false
	}
	if th.core == core {
		return true
	}
	c.vacateCore(s)
	c.placeOnCore(s, core)
	return true
}

func (c *Cluster) placeSlot(s slot) arch.CoreID {
	th := &c.threads[s]
	if th.core != arch.NoCore {
		return th.core
	}
	core := th.last
	if core == arch.NoCore || c.idle&th.affinity&coreMask(core) == 0 {
		among := c.idle & th.affinity
		if among == 0 {
			among = th.affinity
		}
		core = c.earliestCore(among, 0)
	}
	c.placeOnCore(s, core)
	return core
}

// earliestCore returns the core of the mask, which is not empty, on which a thread
// that is ready at a time can start first; the lowest-numbered of several.
func (c *Cluster) earliestCore(mask uint64, readyAt arch.Cycles) arch.CoreID {
	best := arch.CoreID(bits.TrailingZeros64(mask))
	for rest := mask & (mask - 1); rest != 0; rest &= rest - 1 {
		k := arch.CoreID(bits.TrailingZeros64(rest))
		if max(c.cores[k].clock, readyAt) < max(c.cores[best].clock, readyAt) {
			best = k
		}
	}
	return best
}

// placeOnCore puts s, which is on no core, on one, whose thread, if any, then waits.
// The core's clock passes to the time at which s can continue.
func (c *Cluster) placeOnCore(s slot, core arch.CoreID) {
	k := &c.cores[core]
	if k.thread != noSlot {
		c.vacateCore(k.thread)
	}
	th := &c.threads[s]
	c.Lift(core, th.readyAt)
	if k.last != arch.NoThread && k.last != th.id {
		c.switches++
		c.Charge(core, c.switchCost)
	}
	c.occupyCore(s, core)
}

// occupyCore notes that s is on a core which had no thread.
func (c *Cluster) occupyCore(s slot, core arch.CoreID) {
	k, th := &c.cores[core], &c.threads[s]
	k.thread, k.last = s, th.id
	th.core, th.last = core, core
	c.idle &^= coreMask(core)
}

// vacateCore takes s off its core, if it is on one.
func (c *Cluster) vacateCore(s slot) {
	th := &c.threads[s]
	if th.core == arch.NoCore {
		return
	}
	k := &c.cores[th.core]
	th.readyAt = max(th.readyAt, k.clock)
	c.idle |= coreMask(th.core)
	k.thread = noSlot
	th.core = arch.NoCore
}
