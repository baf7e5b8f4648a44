package dmt

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/rand"
	"github.com/heddle-dmt/heddle/sched"
)

// coredet is a quantum algorithm in the style of CoreDet (Bergan, Anderson, Devietti, Ceze,
// Grossman: CoreDet: a compiler and runtime system for deterministic multithreaded execution,
// ASPLOS 2010) and DMP (Devietti, Lucia, Ceze, Oskin, ASPLOS 2009). Time is divided into rounds of
// two phases. In the parallel phase each thread runs a quantum of instructions, or less, to its
// next atomic instruction or fence, system call or late PAUSE. In the serial phase the threads that
// stopped early run one more instruction each, one thread after the other.
//
// The variant is DMP-TM with perfect speculation: the quanta of a parallel phase take effect one
// after the other, in the order of thread ids, like transactions that never have to be rolled back.
// So memory is sequentially consistent, and every load and store, racy or not, has its place in one
// order that depends only on the program, its input and the quantum. CoreDet's own DMP-O and DMP-B
// reach the same determinism by ownership of pages and by private store buffers; their costs at
// each access are not modelled.
//
// The clocks do model the phases: the quanta of a round overlap on the cores, the round's end is a
// barrier, and the serial phase is a chain. The seed, by jitter and injected delays, moves clocks
// alone. It can change the order only through timers, which fire between rounds.
//
// The bound for invariant 5: every other runnable thread has one quantum and one instruction in
// each round.
type coredet struct {
	sched.Noise
	quantum uint64

	members []member // of the round, by thread id
	next    int      // the member whose turn it is
	serial  bool     // the phase
}

// coredetPauseAfter is the number of instructions that a thread runs before PAUSE gives its turn away:
// more than in other policies, since each thread has a quantum in the serial phase, too.
const coredetPauseAfter = 16_000

// member is a thread in a round.
type member struct {
	id    arch.ThreadID
	left  uint64 // instructions of its quantum
	early bool   // it stopped before the quantum's end
}

func newCoredet(seed uint64, o sched.Options) *coredet {
	return &coredet{Noise: sched.NewNoise(rand.NewStream(seed, 'C'), o), quantum: o.Quantum}
}

// Ready has nothing to do: a thread that becomes runnable takes part from the
// next round on.
func (*coredet) Ready(*sched.Cluster, arch.ThreadID, arch.Cycles) {}

func (p *coredet) Block(_ *sched.Cluster, t arch.ThreadID) { p.removeMember(t) }
func (p *coredet) Exit(_ *sched.Cluster, t arch.ThreadID)  { p.removeMember(t) }

// Yield does nothing: the thread's turn has ended already.
func (*coredet) Yield(*sched.Cluster, arch.ThreadID) {}

// removeMember takes a thread out of the round.
func (p *coredet) removeMember(t arch.ThreadID) {
	for i := range p.members {
		if m := &p.members[i]; m.id == t {
			m.left, m.early = 0, false
		}
	}
}

func (p *coredet) Next(c *sched.Cluster, timer arch.Cycles, hasTimer bool) (sched.Quantum, sched.Verdict) {
	for {
		if s, ok := p.phaseQuantum(c); ok {
			return s, sched.Run
		}
		p.passBarrier(c)
		if !p.serial && len(p.members) > 0 {
			p.serial, p.next = true, 0
			continue
		}
		p.members = p.members[:0]
		if hasTimer && timer <= c.Makespan() {
			return sched.Quantum{}, sched.FireTimer
		}
		p.beginRound(c)
	}
}

// beginRound begins a round with all runnable threads.
func (p *coredet) beginRound(c *sched.Cluster) {
	for i := range c.Runnable() {
		p.members = append(p.members, member{id: c.RunnableThread(i), left: p.quantum})
	}
	slices.SortFunc(p.members, func(a, b member) int { return int(a.id) - int(b.id) })
	p.serial, p.next = false, 0
}

// phaseQuantum returns the next quantum of the phase, if there is one.
func (p *coredet) phaseQuantum(c *sched.Cluster) (sched.Quantum, bool) {
	for ; p.next < len(p.members); p.next++ {
		m := &p.members[p.next]
		out := sched.Quantum{
			Thread: m.id, Exact: true, Instructions: m.left, StopAtSync: true, StopAtPause: len(p.members) > 1,
			PauseAfter: coredetPauseAfter,
		}
		switch {
		case p.serial && m.early:
			out.Instructions = 1
		case p.serial || m.left == 0:
			continue
		}
		out.Core = p.placeMember(c, m.id)
		if p.serial {
			c.Lift(out.Core, c.Makespan())
			c.Charge(out.Core, c.Costs().Sync+c.Costs().SpinCheck)
		}
		return out, true
	}
	return sched.Quantum{}, false
}

// placeMember leaves a thread on its core if it is on one, where it can go on at once. Otherwise it puts it on the
// core where it starts first, the change of threads included: on its last core, unless another one is earlier by
// more than that. In the serial phase, where all wait for the one before, no core is early.
func (p *coredet) placeMember(c *sched.Cluster, t arch.ThreadID) arch.CoreID {
	affinity := c.Affinity(t)
	if core := c.CoreOf(t); core != arch.NoCore && affinity&(1<<core) != 0 {
		return core
	}
	from := c.ReadyAt(t)
	if p.serial {
		from = c.Makespan()
	}
	core := c.EarliestCore(affinity, from)
	if last := c.LastCoreOf(t); last != arch.NoCore && affinity&(1<<last) != 0 && max(c.Now(last), from) <= max(c.Now(core), from)+c.SwitchCost() {
		core = last
	}
	c.PlaceOn(t, core)
	return core
}

func (p *coredet) Ran(c *sched.Cluster, s sched.Quantum, instructions uint64, cycles arch.Cycles) {
	m := &p.members[p.next]
	p.AddTo(c, s.Core, cycles)
	if p.serial {
		m.early = false
		return
	}
	m.early = instructions < m.left
	if m.left -= min(m.left, instructions); m.early {
		m.left = 0
	}
}

// passBarrier is the barrier at the end of a phase: no thread continues before the last has
// arrived.
func (p *coredet) passBarrier(c *sched.Cluster) {
	at := c.Makespan()
	if len(p.members) > 1 {
		at += c.Costs().SpinCheck
	}
	for i := range p.members {
		c.Delay(p.members[i].id, at)
	}
}
