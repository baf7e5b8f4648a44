package sched

import (
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// coredet is a quantum algorithm in the style of CoreDet (Bergan, Anderson,
// Devietti, Ceze, Grossman: CoreDet: a compiler and runtime system for
// deterministic multithreaded execution, ASPLOS 2010) and DMP (Devietti, Lucia,
// Ceze, Oskin, ASPLOS 2009). Time goes in rounds of two phases. In the parallel
// phase each thread runs a quantum of instructions, or less, to its next atomic
// instruction or fence, system call or late PAUSE. When all have, those that stopped
// early go on by one instruction, one thread after the other: the serial phase.
//
// The variant is DMP-TM with perfect speculation: the quanta of a parallel phase
// take effect one after the other, in the order of thread ids, as if each were a
// transaction that never has to be rolled back. So memory is sequentially
// consistent and every load and store, racy or not, has its place in one order
// that depends on nothing but the program, its input and the quantum. CoreDet's
// own DMP-O and DMP-B reach the same determinism by ownership of pages and by
// private store buffers; what those cost at each access is not modelled.
//
// The clocks do model the phases: the quanta of a round overlap on the cores,
// the round's end is a barrier, and the serial phase is a chain. The seed, by
// jitter and injected delays, moves clocks alone. It can change the order only
// through timers, which fire between rounds.
//
// The bound for invariant 5: every other runnable thread has one quantum and one
// instruction in each round.
type coredet struct {
	noise
	quantum uint64

	members []member // of the round, by thread id
	next    int      // the member whose turn it is
	serial  bool     // the phase
}

// member is a thread in a round.
type member struct {
	id    event.ThreadID
	left  uint64 // instructions of its quantum
	early bool   // it stopped before the quantum's end
}

func newCoredet(seed uint64, o Options) *coredet {
	return &coredet{noise: newNoise(newStream(seed, 'C'), o), quantum: o.Quantum}
}

// Ready has nothing to do: a thread that becomes runnable takes part from the
// next round on.
func (*coredet) Ready(*Cluster, event.ThreadID, event.Cycles) {}

func (p *coredet) Block(_ *Cluster, t event.ThreadID) { p.leave(t) }
func (p *coredet) Exit(_ *Cluster, t event.ThreadID)  { p.leave(t) }

// Yield has nothing to do: the thread's quantum has ended with its slice.
func (*coredet) Yield(*Cluster, event.ThreadID) {}

// leave takes a thread out of the round.
func (p *coredet) leave(t event.ThreadID) {
	for i := range p.members {
		if m := &p.members[i]; m.id == t {
			m.left, m.early = 0, false
		}
	}
}

func (p *coredet) Next(c *Cluster, timer event.Cycles, hasTimer bool) (Slice, Verdict) {
	for {
		if s, ok := p.slice(c); ok {
			return s, Run
		}
		p.meet(c)
		if !p.serial && len(p.members) > 0 {
			p.serial, p.next = true, 0
			continue
		}
		p.members = p.members[:0]
		if hasTimer && timer <= c.furthest {
			return Slice{}, FireTimer
		}
		p.begin(c)
	}
}

// begin begins a round with all runnable threads.
func (p *coredet) begin(c *Cluster) {
	for _, s := range c.runnable {
		p.members = append(p.members, member{id: c.threads[s].id, left: p.quantum})
	}
	slices.SortFunc(p.members, func(a, b member) int { return int(a.id) - int(b.id) })
	p.serial, p.next = false, 0
}

// slice is the next slice of the phase, if there is one.
func (p *coredet) slice(c *Cluster) (Slice, bool) {
	for ; p.next < len(p.members); p.next++ {
		m := &p.members[p.next]
		out := Slice{
			Thread: m.id, Exact: true, Instructions: m.left, StopAtSync: true, StopAtPause: len(p.members) > 1,
			PauseAfter: 4 * pauseAfter, // more than in other policies: each thread has a slice in the serial phase, too
		}
		switch {
		case p.serial && m.early:
			out.Instructions = 1
		case p.serial || m.left == 0:
			continue
		}
		out.Core = p.place(c, m.id)
		if p.serial {
			c.Lift(out.Core, c.furthest)
			c.Charge(out.Core, c.costs.Sync+c.costs.SpinCheck)
		}
		return out, true
	}
	return Slice{}, false
}

// place puts a thread on the core where it starts first, its last one if that is
// among those. Whoever is there is between two slices.
func (p *coredet) place(c *Cluster, t event.ThreadID) event.CoreID {
	s := c.slot(t)
	th := &c.threads[s]
	core := c.earliest(th.affinity, th.readyAt)
	if last := th.last; last != event.NoCore && th.affinity&bit(last) != 0 &&
		c.cores[last].clock <= max(c.cores[core].clock, th.readyAt) {
		core = last
	}
	c.PlaceOn(t, core)
	return core
}

func (p *coredet) Ran(c *Cluster, s Slice, instructions uint64, cycles event.Cycles) {
	m := &p.members[p.next]
	p.ran(c, s.Core, cycles)
	if p.serial {
		m.early = false
		return
	}
	m.early = instructions < m.left
	if m.left -= min(m.left, instructions); m.early {
		m.left = 0
	}
}

// meet is the barrier at the end of a phase: nobody goes on before the last has
// come.
func (p *coredet) meet(c *Cluster) {
	at := c.furthest
	if len(p.members) > 1 {
		at += c.costs.SpinCheck
	}
	for i := range p.members {
		s, ok := c.slots.Get(p.members[i].id)
		if !ok {
			continue
		}
		if th := &c.threads[s]; th.core != event.NoCore {
			c.Lift(th.core, at)
		} else {
			th.readyAt = max(th.readyAt, at)
		}
	}
}
