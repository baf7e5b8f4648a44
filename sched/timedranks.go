package sched

import (
	"math"
	"math/bits"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// The acts of timed while there are threads with a rank.

// preemptCores gives queued threads the cores of threads that come after them.
func (p *timed) preemptCores(c *Cluster) {
	if p.realtime == nil {
		p.realtime = make([]realtimeUse, len(c.cores))
	}
	for busy := c.all &^ c.idle; busy != 0; busy &= busy - 1 {
		core := arch.CoreID(bits.TrailingZeros64(busy))
		if th := &c.threads[c.cores[core].thread]; th.changed {
			th.changed = false
			p.renewTimeSlice(c, core)
		}
		p.relieveRealtime(c, core)
	}
	for s := p.queue.firstSlot; s != noSlot; {
		next := p.queue.successorOf(s)
		if core := p.coreToPreempt(c, s); core != arch.NoCore {
			out := c.cores[core].thread
			c.vacateCore(out)
			p.enqueueFirst(c, out)
			p.startOnCore(c, s, core)
			next = p.queue.firstSlot
		}
		s = next
	}
}

// coreToPreempt is the core that s takes now: of those whose threads come after s the one with
// the last of them, its own one first, and then the one with the smallest clock.
func (p *timed) coreToPreempt(c *Cluster, s slot) arch.CoreID {
	th, found := &c.threads[s], arch.NoCore
	for busy := c.all &^ c.idle & th.affinity; busy != 0; busy &= busy - 1 {
		core := arch.CoreID(bits.TrailingZeros64(busy))
		k := &c.cores[core]
		if !c.precedes(s, k.thread) || th.readyAt > k.clock || p.isRelieved(c, core) {
			continue
		}
		switch {
		case found == arch.NoCore || c.precedes(c.cores[found].thread, k.thread):
			found = core
		case c.precedes(k.thread, c.cores[found].thread) || found == th.last:
		case core == th.last || k.clock < c.cores[found].clock:
			found = core
		}
	}
	return found
}

// enqueueFirst puts s, which has lost its core, before all that do not come before it.
func (p *timed) enqueueFirst(c *Cluster, s slot) {
	p.changed = true
	for at := p.queue.firstSlot; at != noSlot; at = p.queue.successorOf(at) {
		if !c.precedes(at, s) {
			p.queue.insertBefore(s, at)
			return
		}
	}
	p.queue.appendSlot(s)
}

// mayFollow reports whether s may have a core when the thread on it gives it away.
func (p *timed) mayFollow(c *Cluster, s slot, core arch.CoreID) bool {
	if p.isRelieved(c, core) && c.threads[s].precedence.Rank > 0 {
		return false
	}
	return !c.precedes(c.cores[core].thread, s)
}

// isRelieved reports whether a core is for ordinary threads now.
func (p *timed) isRelieved(c *Cluster, core arch.CoreID) bool {
	return p.realtime != nil && c.cores[core].clock < p.realtime[core].until
}

// noteCoreUse notes that the thread of a core has run.
func (p *timed) noteCoreUse(c *Cluster, core arch.CoreID, cycles arch.Cycles) {
	th := &c.threads[c.cores[core].thread]
	th.spendRuntime(cycles)
	if p.realtime == nil || th.precedence.Rank == 0 {
		return
	}
	u := &p.realtime[core]
	if clock := c.cores[core].clock; clock >= u.since+c.period {
		u.since, u.used = clock, 0
	}
	u.used += cycles
}

// relieveRealtime gives an ordinary thread that waits for a core its part, when those with a
// rank have had theirs.
func (p *timed) relieveRealtime(c *Cluster, core arch.CoreID) {
	u, k := &p.realtime[core], &c.cores[core]
	if c.share == 0 || u.used < c.share || c.threads[k.thread].precedence.Rank == 0 {
		return
	}
	s := p.waitingOrdinary(c, core)
	if s == noSlot || c.threads[s].readyAt > k.clock {
		return
	}
	u.until = k.clock + c.period - c.share
	u.since, u.used = u.until, 0
	out := k.thread
	c.vacateCore(out)
	p.enqueueFirst(c, out)
	p.startOnCore(c, s, core)
}

// waitingOrdinary is the first ordinary thread that waits for a core, or none.
func (p *timed) waitingOrdinary(c *Cluster, core arch.CoreID) slot {
	for s := p.queue.firstSlot; s != noSlot; s = p.queue.successorOf(s) {
		if th := &c.threads[s]; th.precedence.Rank == 0 && th.affinity&coreMask(core) != 0 {
			return s
		}
	}
	return noSlot
}

// longestRun bounds a slice of a core: until a thread that comes before its own may have
// it, and until an ordinary one has its part.
func (p *timed) longestRun(c *Cluster, core arch.CoreID) arch.Cycles {
	k, most := &c.cores[core], arch.Cycles(math.MaxUint64)
	for s := p.queue.firstSlot; s != noSlot; s = p.queue.successorOf(s) {
		th := &c.threads[s]
		if !c.precedes(s, k.thread) {
			break
		}
		if th.affinity&coreMask(core) != 0 && th.readyAt > k.clock {
			most = min(most, th.readyAt-k.clock)
		}
	}
	u := &p.realtime[core]
	if u.until > k.clock {
		most = min(most, u.until-k.clock)
	}
	if c.share > 0 && c.threads[k.thread].precedence.Rank > 0 && p.waitingOrdinary(c, core) != noSlot {
		most = min(most, max(c.share-min(u.used, c.share), 1))
	}
	if th := &c.threads[k.thread]; th.precedence.Deadline > 0 {
		most = min(most, max(th.left, 1))
	}
	return most
}
