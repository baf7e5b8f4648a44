package sched

import (
	"math"
	"math/bits"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// timed is the discrete-event simulation of cores that run in parallel: the
// busy core with the smallest clock steps, until its clock is ahead of the
// second smallest by its lead.
//
// A thread keeps its core until it blocks, yields, or has had it for a time
// slice while others wait; those wait in one queue for all cores, first in,
// first out. A woken thread takes the core it was on last if that is idle.
// Hence its bound for invariant 5: each thread ahead in the queue has one time
// slice.
//
// A thread with a rank comes before others (Precedence): it stands before them in the
// queue and takes a core from the last of them. Ordinary threads that wait meanwhile have
// what SetRealtimeShare leaves them of each core.
type timed struct {
	noise
	quantum   uint64
	timeSlice uint64

	queue list           // runnable threads without a core
	ends  []event.Cycles // by core, the end of its thread's time slice
	began []event.Cycles // by core, when its thread's time slice began
	// changed tells that a core may have become free for a queued thread.
	changed bool
	// realtime is by core, once there is a thread with a rank.
	realtime []realtimeUse
}

// realtimeUse is how much threads with a rank have had of a core.
type realtimeUse struct {
	since event.Cycles // the start of the period
	used  event.Cycles // since then
	until event.Cycles // until when the core is for ordinary threads
}

func newTimed(cores int, seed uint64, o Options) *timed {
	return &timed{
		noise: newNoise(newStream(seed, 'T'), o), quantum: o.Quantum, timeSlice: o.TimeSlice,
		queue: newList(), ends: make([]event.Cycles, cores), began: make([]event.Cycles, cores),
	}
}

func (p *timed) Ready(c *Cluster, t event.ThreadID, _ event.Cycles) {
	s := c.slot(t)
	if p.jitter > 0 {
		c.threads[s].readyAt += event.Cycles(p.random.below(p.quantum))
	}
	p.enqueue(c, s)
}

func (p *timed) Block(c *Cluster, t event.ThreadID) {
	p.queue.remove(c.slot(t))
	p.changed = true
}

func (p *timed) Exit(*Cluster, event.ThreadID) {}

func (p *timed) Yield(c *Cluster, t event.ThreadID) {
	core := c.CoreOf(t)
	if core == event.NoCore {
		return
	}
	th := &c.threads[c.slot(t)]
	th.spend(th.left)
	p.rotate(c, core)
}

func (p *timed) Next(c *Cluster, timer event.Cycles, hasTimer bool) (Slice, Verdict) {
	for {
		p.dispatch(c)
		if c.ranked > 0 {
			p.preempt(c)
		}
		core, second := slowest(c)
		clock := c.cores[core].clock
		switch {
		case hasTimer && timer <= clock:
			return Slice{}, FireTimer
		case clock < p.ends[core]:
			if !hasTimer {
				timer = math.MaxUint64
			}
			return p.slice(c, core, second, timer), Run
		case !p.rotate(c, core):
			p.renew(c, core)
		}
	}
}

func (p *timed) Ran(c *Cluster, s Slice, _ uint64, cycles event.Cycles) {
	p.ran(c, s.Core, cycles)
	if c.ranked > 0 {
		p.use(c, s.Core, cycles)
	}
}

// noise is the seeded noise of the cores' speed, and injected delays.
type noise struct {
	random    stream
	jitter    share
	delayRate share
	delay     uint64
}

func newNoise(random stream, o Options) noise {
	return noise{random, newShare(*o.Jitter), newShare(o.DelayRate), o.DelayCycles}
}

// ran adds the noise of a slice to its core's clock.
func (n *noise) ran(c *Cluster, core event.CoreID, cycles event.Cycles) {
	if n.jitter > 0 {
		c.Charge(core, event.Cycles(n.random.upToShare(n.jitter, uint64(cycles))))
	}
	if n.delayRate > 0 && n.random.chance(n.delayRate) {
		c.Charge(core, event.Cycles(1+n.random.below(n.delay)))
	}
}

// slowest returns the busy core with the smallest clock, the lowest-numbered of
// several, and the smallest clock of the other busy ones, or the greatest
// possible value if there is none. At least one core must be busy.
func slowest(c *Cluster) (core event.CoreID, second event.Cycles) {
	first := event.Cycles(math.MaxUint64)
	second = first
	for busy := c.all &^ c.idle; busy != 0; busy &= busy - 1 {
		k := bits.TrailingZeros64(busy)
		switch clock := c.cores[k].clock; {
		case clock < first:
			core, first, second = event.CoreID(k), clock, first
		case clock < second:
			second = clock
		}
	}
	return core, second
}

// slice returns the slice of a core whose clock is before the timer and before
// the end of its time slice.
func (p *timed) slice(c *Cluster, core event.CoreID, second, timer event.Cycles) Slice {
	clock := c.cores[core].clock
	budget := event.Cycles(p.timeSlice)
	exact := false
	if second != math.MaxUint64 {
		budget = second - clock + p.lead()
		exact = p.jitter > 0 && p.random.below(exactOneIn) == 0
	}
	if !p.queue.empty() {
		budget = min(budget, p.ends[core]-clock)
	}
	if c.ranked > 0 {
		budget = min(budget, p.patience(c, core))
	}
	out := Slice{Core: core, Thread: c.On(core), Cycles: min(budget, timer-clock), Exact: exact}
	if from, waits := p.nextFrom(c, core); waits {
		out.StopAtPause = true
		out.PauseAfter = uint64(max(from, p.began[core]+pauseAfter) - clock)
	}
	return out
}

// nextFrom is the time, not before the core's, from which a queued thread may have a core when
// the thread on it gives it away.
func (p *timed) nextFrom(c *Cluster, core event.CoreID) (from event.Cycles, waits bool) {
	clock := c.cores[core].clock
	from = math.MaxUint64
	for s := p.queue.first; s != none && from > clock; s = p.queue.after(s) {
		th := &c.threads[s]
		if th.affinity&bit(core) != 0 && (c.ranked == 0 || p.mayFollow(c, s, core)) {
			from, waits = min(from, max(th.readyAt, clock)), true
		}
	}
	return from, waits
}

// exactOneIn is how seldom a slice ends within a block: with jitter one in so
// many does, so that an update that another thread's can be lost between two
// instructions of a block is lost under some seeds. An exact end costs the
// engine more than a block boundary.
const exactOneIn = 8

// lead returns by how much a core may run ahead this time.
func (p *timed) lead() event.Cycles {
	if p.jitter == 0 {
		return event.Cycles(p.quantum)
	}
	return event.Cycles(1 + p.random.below(p.quantum))
}

// dispatch puts queued threads on idle cores.
func (p *timed) dispatch(c *Cluster) {
	if !p.changed {
		return
	}
	p.changed = false
	for c.idle != 0 {
		s, core := p.firstToStart(c)
		if s == none {
			return
		}
		p.start(c, s, core)
	}
}

// firstToStart returns the first thread in the queue that can start at once on
// an idle core, else the one that can start first, else none.
func (p *timed) firstToStart(c *Cluster) (found slot, on event.CoreID) {
	found = none
	var best event.Cycles
	for s := p.queue.first; s != none; s = p.queue.after(s) {
		th := &c.threads[s]
		if c.idle&th.affinity == 0 {
			continue
		}
		core := p.choose(c, th)
		clock := c.cores[core].clock
		if th.readyAt <= clock {
			return s, core
		}
		if found == none || th.readyAt < best {
			found, on, best = s, core, th.readyAt
		}
	}
	return found, on
}

// choose returns the idle core for a thread: its last one if that is idle, and
// not only because it has run ahead, else the one on which it starts first.
func (p *timed) choose(c *Cluster, th *thread) event.CoreID {
	among := c.idle & th.affinity
	if th.last != event.NoCore && among&bit(th.last) != 0 &&
		c.cores[th.last].clock <= th.readyAt+event.Cycles(p.quantum) {
		return th.last
	}
	return c.earliest(among, th.readyAt)
}

// rotate puts a core's thread at the end of the queue and the first one that
// can start there now on the core. It returns false, and does nothing, if there
// is none.
func (p *timed) rotate(c *Cluster, core event.CoreID) bool {
	clock := c.cores[core].clock
	for s := p.queue.first; s != none; s = p.queue.after(s) {
		th := &c.threads[s]
		if th.affinity&bit(core) == 0 || th.readyAt > clock || c.ranked > 0 && !p.mayFollow(c, s, core) {
			continue
		}
		out := c.cores[core].thread
		c.vacate(out)
		p.enqueue(c, out)
		p.start(c, s, core)
		return true
	}
	return false
}

// enqueue puts s behind all that do not come after it.
func (p *timed) enqueue(c *Cluster, s slot) {
	p.changed = true
	if c.ranked > 0 {
		for at := p.queue.first; at != none; at = p.queue.after(at) {
			if c.before(s, at) {
				p.queue.insert(s, at)
				return
			}
		}
	}
	p.queue.append(s)
}

// start takes s from the queue and puts it on a core for a time slice.
func (p *timed) start(c *Cluster, s slot, core event.CoreID) {
	p.queue.remove(s)
	c.put(s, core)
	p.renew(c, core)
}

// renew begins a new time slice on a core.
func (p *timed) renew(c *Cluster, core event.CoreID) {
	length := p.timeSlice
	if spread := p.jitter.of(length); spread > 0 {
		length = length - spread + p.random.below(2*spread+1)
	}
	p.began[core] = c.cores[core].clock
	p.ends[core] = c.cores[core].clock + event.Cycles(max(length, 1))
	if th := &c.threads[c.cores[core].thread]; th.precedence.Rank > 0 {
		p.ends[core] = math.MaxUint64
		if th.precedence.Slice > 0 {
			p.ends[core] = c.cores[core].clock + th.precedence.Slice
		}
	}
}
