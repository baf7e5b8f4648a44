package sched

import (
	"math"
	"math/bits"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/rand"
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
// the rest of each core, by SetRealtimeShare.
type timed struct {
	Noise
	quantum   uint64
	timeSlice uint64

	queue slotList      // runnable threads without a core
	ends  []arch.Cycles // by core, the end of its thread's time slice
	began []arch.Cycles // by core, when its thread's time slice began
	// changed reports that a core may have become free for a queued thread.
	changed bool
	// realtime is by core, once there is a thread with a rank.
	realtime []realtimeUse
}

// realtimeUse is how much threads with a rank have had of a core.
type realtimeUse struct {
	since arch.Cycles // the start of the period
	used  arch.Cycles // since then
	until arch.Cycles // until when the core is for ordinary threads
}

func newTimed(cores int, seed uint64, o Options) *timed {
	return &timed{
		Noise: NewNoise(rand.NewStream(seed, 'T'), o), quantum: o.Quantum, timeSlice: o.TimeSlice,
		queue: newSlotList(), ends: make([]arch.Cycles, cores), began: make([]arch.Cycles, cores),
	}
}

func (p *timed) Ready(c *Cluster, t arch.ThreadID, _ arch.Cycles) {
	s := c.slotOf(t)
	if p.jitter > 0 {
		c.threads[s].readyAt += arch.Cycles(p.random.Below(p.quantum))
	}
	p.enqueueThread(c, s)
}

func (p *timed) Block(c *Cluster, t arch.ThreadID) {
	p.queue.removeSlot(c.slotOf(t))
	p.changed = true
}

func (p *timed) Exit(*Cluster, arch.ThreadID) {}

func (p *timed) Yield(c *Cluster, t arch.ThreadID) {
	core := c.CoreOf(t)
	if core == arch.NoCore {
		return
	}
	th := &c.threads[c.slotOf(t)]
	th.spendRuntime(th.left)
	p.rotateThread(c, core)
}

func (p *timed) Next(c *Cluster, timer arch.Cycles, hasTimer bool) (Quantum, Verdict) {
	for {
		p.dispatchQueued(c)
		if c.ranked > 0 {
			p.preemptCores(c)
		}
		core, second := slowestCore(c)
		clock := c.cores[core].clock
		switch {
		case hasTimer && timer <= clock:
			return Quantum{}, FireTimer
		case clock < p.ends[core]:
			if !hasTimer {
				timer = math.MaxUint64
			}
			return p.nextQuantum(c, core, second, timer), Run
		case !p.rotateThread(c, core):
			p.renewTimeSlice(c, core)
		}
	}
}

func (p *timed) Ran(c *Cluster, s Quantum, _ uint64, cycles arch.Cycles) {
	p.AddTo(c, s.Core, cycles)
	if c.ranked > 0 {
		p.noteCoreUse(c, s.Core, cycles)
	}
}

// Noise is the seeded noise of the cores' speed, and injected delays.
type Noise struct {
	random    rand.Stream
	jitter    rand.Share
	delayRate rand.Share
	delay     uint64
}

func NewNoise(random rand.Stream, o Options) Noise {
	return Noise{random, rand.NewShare(*o.Jitter), rand.NewShare(o.DelayRate), o.DelayCycles}
}

// AddTo adds the noise of a slice to its core's clock.
func (n *Noise) AddTo(c *Cluster, core arch.CoreID, cycles arch.Cycles) {
	if n.jitter > 0 {
		c.Charge(core, arch.Cycles(n.random.UpToShare(n.jitter, uint64(cycles))))
	}
	if n.delayRate > 0 && n.random.Chance(n.delayRate) {
		c.Charge(core, arch.Cycles(1+n.random.Below(n.delay)))
	}
}

// slowestCore returns the busy core with the smallest clock, the lowest-numbered of
// several, and the smallest clock of the other busy ones, or the greatest
// possible value if no other core is busy. At least one core must be busy.
func slowestCore(c *Cluster) (core arch.CoreID, second arch.Cycles) {
	first := arch.Cycles(math.MaxUint64)
	second = first
	for busy := c.all &^ c.idle; busy != 0; busy &= busy - 1 {
		k := bits.TrailingZeros64(busy)
		switch clock := c.cores[k].clock; {
		case clock < first:
			core, first, second = arch.CoreID(k), clock, first
		case clock < second:
			second = clock
		}
	}
	return core, second
}

// nextQuantum returns the slice of a core whose clock is before the timer and before
// the end of its time slice.
func (p *timed) nextQuantum(c *Cluster, core arch.CoreID, second, timer arch.Cycles) Quantum {
	clock := c.cores[core].clock
	budget := arch.Cycles(p.timeSlice)
	exact := false
	if second != math.MaxUint64 {
		budget = second - clock + p.nextLead()
		exact = p.jitter > 0 && p.random.Below(exactOneIn) == 0
	}
	if !p.queue.isEmpty() {
		budget = min(budget, p.ends[core]-clock)
	}
	if c.ranked > 0 {
		budget = min(budget, p.longestRun(c, core))
	}
	out := Quantum{Core: core, Thread: c.On(core), Cycles: min(budget, timer-clock), Exact: exact}
	if from, waits := p.nextReadyTime(c, core); waits {
		out.StopAtPause = true
		out.PauseAfter = uint64(max(from, p.began[core]+pauseAfter) - clock)
	}
	return out
}

// nextReadyTime is the time, not before the core's, from which a queued thread may have a core when
// the thread on it gives it away.
func (p *timed) nextReadyTime(c *Cluster, core arch.CoreID) (from arch.Cycles, waits bool) {
	clock := c.cores[core].clock
	from = math.MaxUint64
	for s := p.queue.firstSlot; s != noSlot && from > clock; s = p.queue.successorOf(s) {
		th := &c.threads[s]
		if th.affinity&coreMask(core) != 0 && (c.ranked == 0 || p.mayFollow(c, s, core)) {
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

// nextLead returns by how much a core may run ahead this time.
func (p *timed) nextLead() arch.Cycles {
	if p.jitter == 0 {
		return arch.Cycles(p.quantum)
	}
	return arch.Cycles(1 + p.random.Below(p.quantum))
}

// dispatchQueued puts queued threads on idle cores.
func (p *timed) dispatchQueued(c *Cluster) {
	if !p.changed {
		return
	}
	p.changed = false
	for c.idle != 0 {
		s, core := p.firstToStart(c)
		if s == noSlot {
			return
		}
		p.startOnCore(c, s, core)
	}
}

// firstToStart returns the first thread in the queue that can start at once on
// an idle core, else the one that can start first, else none.
func (p *timed) firstToStart(c *Cluster) (found slot, on arch.CoreID) {
	found = noSlot
	var best arch.Cycles
	for s := p.queue.firstSlot; s != noSlot; s = p.queue.successorOf(s) {
		th := &c.threads[s]
		if c.idle&th.affinity == 0 {
			continue
		}
		core := p.chooseIdleCore(c, th)
		clock := c.cores[core].clock
		if th.readyAt <= clock {
			return s, core
		}
		if found == noSlot || th.readyAt < best {
			found, on, best = s, core, th.readyAt
		}
	}
	return found, on
}

// chooseIdleCore returns the idle core for a thread: its last one if that is idle, and
// not only because it has run ahead, else the one on which it starts first.
func (p *timed) chooseIdleCore(c *Cluster, th *threadRecord) arch.CoreID {
	among := c.idle & th.affinity
	if th.last != arch.NoCore && among&coreMask(th.last) != 0 &&
		c.cores[th.last].clock <= th.readyAt+arch.Cycles(p.quantum) {
		return th.last
	}
	return c.earliestCore(among, th.readyAt)
}

// rotateThread puts a core's thread at the end of the queue and the first one that
// can start there now on the core. It returns false, and does nothing, if no queued
// thread can.
func (p *timed) rotateThread(c *Cluster, core arch.CoreID) bool {
	clock := c.cores[core].clock
	for s := p.queue.firstSlot; s != noSlot; s = p.queue.successorOf(s) {
		th := &c.threads[s]
		if th.affinity&coreMask(core) == 0 || th.readyAt > clock || c.ranked > 0 && !p.mayFollow(c, s, core) {
			continue
		}
		out := c.cores[core].thread
		c.vacateCore(out)
		p.enqueueThread(c, out)
		p.startOnCore(c, s, core)
		return true
	}
	return false
}

// enqueueThread puts s after all that do not come after it.
func (p *timed) enqueueThread(c *Cluster, s slot) {
	p.changed = true
	if c.ranked > 0 {
		for at := p.queue.firstSlot; at != noSlot; at = p.queue.successorOf(at) {
			if c.precedes(s, at) {
				p.queue.insertBefore(s, at)
				return
			}
		}
	}
	p.queue.appendSlot(s)
}

// startOnCore takes s from the queue and puts it on a core for a time slice.
func (p *timed) startOnCore(c *Cluster, s slot, core arch.CoreID) {
	p.queue.removeSlot(s)
	c.placeOnCore(s, core)
	p.renewTimeSlice(c, core)
}

// renewTimeSlice begins a new time slice on a core.
func (p *timed) renewTimeSlice(c *Cluster, core arch.CoreID) {
	length := p.timeSlice
	if spread := p.jitter.Of(length); spread > 0 {
		length = length - spread + p.random.Below(2*spread+1)
	}
	p.began[core] = c.cores[core].clock
	p.ends[core] = c.cores[core].clock + arch.Cycles(max(length, 1))
	if th := &c.threads[c.cores[core].thread]; th.precedence.Rank > 0 {
		p.ends[core] = math.MaxUint64
		if th.precedence.Slice > 0 {
			p.ends[core] = c.cores[core].clock + th.precedence.Slice
		}
	}
}
