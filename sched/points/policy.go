package points

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/rand"
	"github.com/heddle-dmt/heddle/sched"
)

// Bounds keep threads from waiting for ever, whatever the strategy chooses: the numbers of points
// and of instructions after which a thread that has run alone while others could is to yield.
type Bounds struct {
	Points, Instructions uint64
}

// longestQuantum bounds a quantum, in instructions, so that a thread that reaches no point is seen.
const longestQuantum = 50_000

// fairTurn is the number of points after which a thread's turn ends in a run whose end is fair.
const fairTurn = 40

// Policy is the sched.Policy that asks a Strategy at points. Timers fire when the furthest clock has
// reached them, and a core's clock is lifted to the furthest when its thread gets its turn, so that
// virtual time shows the order of the turns.
//
// At an instruction that is a load and then a store without a LOCK prefix there are two points:
// before it, and between its accesses.
type Policy struct {
	strategy Strategy
	bounds   Bounds
	choice   Choice
	observer *rff // the strategy, if it is RFF: it sees all operations
	fair     bool

	next    arch.ThreadID               // that was chosen at the last point, or NoThread
	inside  bool                        // the current thread is to run to the place between the accesses first
	between map[arch.ThreadID]Operation // of threads that are to be asked about inside their instruction
	ended   bool                        // the last quantum reached its budget, which is no point

	early early
	again bool // the thread at a point is to be asked about although its quantum has just ended

	asked        uint64
	switches     uint64
	alonePoints  uint64 // since the current thread's turn began
	aloneRetired uint64
}

// NewPolicy makes the policy of one run.
func NewPolicy(s Strategy, b Bounds) *Policy {
	observer, _ := s.(*rff)
	return &Policy{
		strategy: s, observer: observer, bounds: b, next: arch.NoThread, between: map[arch.ThreadID]Operation{},
		choice: Choice{Current: arch.NoThread, Next: map[arch.ThreadID]Operation{}},
	}
}

// SharedInSnapshot marks that copies of a machine's state share the policy: a run from a snapshot
// gets one of its own (sched.Cluster.SwitchPolicy).
func (p *Policy) SharedInSnapshot() {}

// Points returns the number of points so far.
func (p *Policy) Points() uint64 { return p.asked }

// Switches returns how often another thread than the one before has run.
func (p *Policy) Switches() uint64 { return p.switches }

// BeFair has threads take short turns from now on, so that none of them waits by spinning for one
// that does not run.
func (p *Policy) BeFair() { p.fair = true }

// Ready implements sched.Policy, and so do the other methods.
func (p *Policy) Ready(*sched.Cluster, arch.ThreadID, arch.Cycles) {}

func (p *Policy) Block(*sched.Cluster, arch.ThreadID) {}

func (p *Policy) Exit(_ *sched.Cluster, t arch.ThreadID) {
	delete(p.choice.Next, t)
	delete(p.between, t)
}

func (p *Policy) Yield(_ *sched.Cluster, t arch.ThreadID) { p.yield(t) }

func (p *Policy) yield(t arch.ThreadID) {
	p.strategy.Yield(t)
	p.ended = false
	p.alonePoints, p.aloneRetired = 0, 0
	if p.fair {
		p.alonePoints = fairTurn
	}
}

func (p *Policy) Ran(_ *sched.Cluster, _ sched.Quantum, instructions uint64, _ arch.Cycles) {
	p.aloneRetired += instructions
}

// FireEarly has timers fire before other threads have run that long, as if these had been kept from running meanwhile:
// with a chance at each point, timers that are due within a time.
func (p *Policy) FireEarly(draw rand.Stream, chance rand.Share, within arch.Cycles) {
	p.early = early{draw: draw, chance: chance, within: within}
}

// FireWithin changes the time within which timers fire early.
func (p *Policy) FireWithin(time arch.Cycles) { p.early.within = time }

// early decides which timers fire early.
type early struct {
	draw   rand.Stream
	chance rand.Share
	within arch.Cycles
	near   bool // a timer is due within the time
	due    bool // it fires at the end of the quantum
	fired  int
}

// mostEarly is the number of timers of a run that fire early, at most: some programs sleep again and again.
const mostEarly = 64

// isDue is asked at a point, and reports whether the quantum ends for a timer.
func (e *early) isDue() bool {
	e.due = e.due || e.near && e.fired < mostEarly && e.draw.Chance(e.chance)
	return e.due
}

// fires reports whether a timer that is due after a time fires now.
func (e *early) fires(left arch.Cycles) bool {
	e.near = left <= e.within
	fires := e.due && e.near
	e.due = false
	if fires {
		e.fired++
	}
	return fires
}

// Ended reports whether the quantum that has just ended did so by its budget, before Ran.
func (p *Policy) Ended(budget bool) { p.ended = budget }

// AtPoint is asked where the thread of the current quantum is before an operation. It reports whether
// the quantum ends there. Parts says that the instruction is a load and then a store.
func (p *Policy) AtPoint(c *sched.Cluster, t arch.ThreadID, o Operation, parts bool) (ends bool) {
	p.choice.Next[t] = o
	if p.early.isDue() {
		p.next, p.again = arch.NoThread, true
		return true
	}
	if p.next = p.choose(c); p.next != t {
		if parts {
			p.between[t] = o
		}
		return true
	}
	p.next = arch.NoThread
	return parts && p.stopInside(c, t, o)
}

// stopInside asks about the place between the accesses of the instruction that a thread is at, and
// reports whether the thread is to stop there.
func (p *Policy) stopInside(c *sched.Cluster, t arch.ThreadID, o Operation) bool {
	p.choice.Next[t] = o
	if next := p.choose(c); next != t {
		p.next, p.inside = next, true
	}
	return p.inside
}

// Next implements sched.Policy.
func (p *Policy) Next(c *sched.Cluster, timer arch.Cycles, hasTimer bool) (sched.Quantum, sched.Verdict) {
	if hasTimer && (timer <= c.Makespan() || p.early.fires(timer-c.Makespan())) {
		return sched.Quantum{}, sched.FireTimer
	}
	p.early.near = p.early.near && hasTimer
	q := sched.Quantum{Instructions: longestQuantum, StopAtPause: c.Runnable() > 1}
	t := p.chooseThread(c)
	if p.inside {
		p.inside = false
		q = sched.Quantum{Accesses: 1, AccessesOnly: true, Exact: true}
	}
	q.Thread, q.Core = t, p.beginTurn(c, t)
	if hasTimer {
		q.Cycles = max(1, timer-min(timer, c.Now(q.Core)))
	}
	p.ended = false
	return q, sched.Run
}

// beginTurn makes a thread the current one and returns its core.
func (p *Policy) beginTurn(c *sched.Cluster, t arch.ThreadID) arch.CoreID {
	core := c.Place(t)
	if t != p.choice.Current {
		c.Lift(core, c.Makespan())
		p.choice.Current = t
		p.switches++
		p.alonePoints, p.aloneRetired = 0, 0
	}
	return core
}

// chooseThread returns the thread of the next quantum.
func (p *Policy) chooseThread(c *sched.Cluster) arch.ThreadID {
	t := p.choice.Current
	runnable := p.runnable(c)
	if p.inside && slices.Contains(runnable, t) {
		return t
	}
	p.inside = false
	next, ended := p.next, p.ended && !p.again
	p.next, p.again = arch.NoThread, false
	switch {
	case slices.Contains(runnable, next):
		t = next
	case ended && slices.Contains(runnable, t):
		if len(runnable) == 1 || p.aloneRetired < p.bounds.Instructions && !p.fair {
			return t
		}
		p.yield(t)
		t = p.choose(c)
	default:
		t = p.choose(c)
	}
	if o, between := p.between[t]; between {
		delete(p.between, t)
		p.beginTurn(c, t)
		p.stopInside(c, t, o)
	}
	return t
}

// runnable lists the threads that can run, in the order of their ids.
func (p *Policy) runnable(c *sched.Cluster) []arch.ThreadID {
	list := p.choice.Runnable[:0]
	for i := range c.Runnable() {
		list = append(list, c.RunnableThread(i))
	}
	slices.Sort(list)
	p.choice.Runnable = list
	return list
}

// choose is a point.
func (p *Policy) choose(c *sched.Cluster) arch.ThreadID {
	runnable := p.runnable(c)
	t := runnable[0]
	if len(runnable) > 1 {
		p.asked++
		p.alonePoints++
		t = p.chooseAmong(runnable)
	} else if p.observer != nil {
		p.observer.execute(p.choice.Next[t])
	}
	delete(p.choice.Next, t)
	return t
}

func (p *Policy) chooseAmong(runnable []arch.ThreadID) arch.ThreadID {
	if p.fair {
		return p.chooseFairly(runnable)
	}
	if p.alonePoints > p.bounds.Points {
		p.yield(p.choice.Current)
	}
	return p.strategy.Choose(&p.choice)
}

// chooseFairly has threads take turns.
func (p *Policy) chooseFairly(runnable []arch.ThreadID) arch.ThreadID {
	if p.alonePoints < fairTurn && slices.Contains(runnable, p.choice.Current) {
		return p.choice.Current
	}
	p.alonePoints = 0
	return successor(runnable, p.choice.Current)
}
