package sched

import (
	"math"
	"math/bits"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// What timed does while there are threads with a rank.

// preempt gives queued threads the cores of threads that come after them.
func (p *timed) preempt(c *Cluster) {
	if p.realtime == nil {
		p.realtime = make([]realtimeUse, len(c.cores))
	}
	for busy := c.all &^ c.idle; busy != 0; busy &= busy - 1 {
		core := event.CoreID(bits.TrailingZeros64(busy))
		if th := &c.threads[c.cores[core].thread]; th.changed {
			th.changed = false
			p.renew(c, core)
		}
		p.relieve(c, core)
	}
	for s := p.queue.first; s != none; {
		next := p.queue.after(s)
		if core := p.victim(c, s); core != event.NoCore {
			out := c.cores[core].thread
			c.vacate(out)
			p.enqueueFirst(c, out)
			p.start(c, s, core)
			next = p.queue.first
		}
		s = next
	}
}

// victim is the core that s takes now: of those whose threads come after s the one with
// the last of them, its own one first, and then the one that is behind.
func (p *timed) victim(c *Cluster, s slot) event.CoreID {
	th, found := &c.threads[s], event.NoCore
	for busy := c.all &^ c.idle & th.affinity; busy != 0; busy &= busy - 1 {
		core := event.CoreID(bits.TrailingZeros64(busy))
		k := &c.cores[core]
		if !c.before(s, k.thread) || th.readyAt > k.clock || p.isRelieved(c, core) {
			continue
		}
		switch {
		case found == event.NoCore || c.before(c.cores[found].thread, k.thread):
			found = core
		case c.before(k.thread, c.cores[found].thread) || found == th.last:
		case core == th.last || k.clock < c.cores[found].clock:
			found = core
		}
	}
	return found
}

// enqueueFirst puts s, which has lost its core, before all that do not come before it.
func (p *timed) enqueueFirst(c *Cluster, s slot) {
	p.changed = true
	for at := p.queue.first; at != none; at = p.queue.after(at) {
		if !c.before(at, s) {
			p.queue.insert(s, at)
			return
		}
	}
	p.queue.append(s)
}

// mayFollow tells whether s may have a core when the thread on it gives it away.
func (p *timed) mayFollow(c *Cluster, s slot, core event.CoreID) bool {
	if p.isRelieved(c, core) && c.threads[s].precedence.Rank > 0 {
		return false
	}
	return !c.before(c.cores[core].thread, s)
}

// isRelieved tells whether a core is for ordinary threads now.
func (p *timed) isRelieved(c *Cluster, core event.CoreID) bool {
	return p.realtime != nil && c.cores[core].clock < p.realtime[core].until
}

// use notes that the thread of a core has run.
func (p *timed) use(c *Cluster, core event.CoreID, cycles event.Cycles) {
	th := &c.threads[c.cores[core].thread]
	th.spend(cycles)
	if p.realtime == nil || th.precedence.Rank == 0 {
		return
	}
	u := &p.realtime[core]
	if clock := c.cores[core].clock; clock >= u.since+c.period {
		u.since, u.used = clock, 0
	}
	u.used += cycles
}

// relieve gives an ordinary thread that waits for a core its part, when those with a
// rank have had theirs.
func (p *timed) relieve(c *Cluster, core event.CoreID) {
	u, k := &p.realtime[core], &c.cores[core]
	if c.share == 0 || u.used < c.share || c.threads[k.thread].precedence.Rank == 0 {
		return
	}
	s := p.waiting(c, core)
	if s == none || c.threads[s].readyAt > k.clock {
		return
	}
	u.until = k.clock + c.period - c.share
	u.since, u.used = u.until, 0
	out := k.thread
	c.vacate(out)
	p.enqueueFirst(c, out)
	p.start(c, s, core)
}

// waiting is the first ordinary thread that waits for a core, or none.
func (p *timed) waiting(c *Cluster, core event.CoreID) slot {
	for s := p.queue.first; s != none; s = p.queue.after(s) {
		if th := &c.threads[s]; th.precedence.Rank == 0 && th.affinity&bit(core) != 0 {
			return s
		}
	}
	return none
}

// patience bounds a slice of a core: until a thread that comes before its own may have
// it, and until an ordinary one has its part.
func (p *timed) patience(c *Cluster, core event.CoreID) event.Cycles {
	k, most := &c.cores[core], event.Cycles(math.MaxUint64)
	for s := p.queue.first; s != none; s = p.queue.after(s) {
		th := &c.threads[s]
		if !c.before(s, k.thread) {
			break
		}
		if th.affinity&bit(core) != 0 && th.readyAt > k.clock {
			most = min(most, th.readyAt-k.clock)
		}
	}
	u := &p.realtime[core]
	if u.until > k.clock {
		most = min(most, u.until-k.clock)
	}
	if c.share > 0 && c.threads[k.thread].precedence.Rank > 0 && p.waiting(c, core) != none {
		most = min(most, max(c.share-min(u.used, c.share), 1))
	}
	if th := &c.threads[k.thread]; th.precedence.Deadline > 0 {
		most = min(most, max(th.left, 1))
	}
	return most
}
