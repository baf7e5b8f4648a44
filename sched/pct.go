package sched

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/rand"
)

// pct is the scheduler of Burckhardt, Kothari, Musuvathi and Nagarakatte, "A
// randomized scheduler with probabilistic guarantees of finding bugs" (ASPLOS
// 2010): every thread gets a random priority, only the runnable thread with the
// highest runs, and at d-1 random points among the first k instructions the
// running thread's priority falls below all initial ones, to a place of its
// own. A bug of depth d then shows in a run with probability at least
// 1/(n k^(d-1)), n being the number of threads. Steps are instructions here.
//
// Two things go beyond the paper, so that strict priorities do not livelock a
// program that spins. A thread that yields falls below all others. And once a
// runnable thread has waited for Fairness instructions it is raised above all
// others, which keeps the bound of untimed (invariant 5); demoting the running
// thread alone would not, since two threads that wake each other never run for
// long. The guarantee holds for runs in which neither happens.
//
// While there are threads with a rank (Precedence), only those take part that would have
// a core, and a thread that has waited for Fairness instructions has a turn.
type pct struct {
	clocklessPolicy
	random rand.Stream
	// points are the change points that are still to come, the next one first,
	// and falls the priorities that they set.
	points []uint64
	falls  []int64
	// priorities has every thread that has not exited; for look-up only.
	priorities map[arch.ThreadID]int64
	// ranked has the runnable threads, the one with the highest priority last.
	ranked   []rankedThread
	entitled []bool // highestEntitled's
	// lowest and highest bound all priorities given so far.
	lowest, highest int64
}

type rankedThread struct {
	priority int64
	thread   arch.ThreadID
}

// Initial priorities lie between these. Change points set lower ones, from 1
// on, yields ones from 0 down, and starvation higher ones.
const (
	lowestInitial  = 1 << 20
	highestInitial = 1 << 61
)

func newPCT(seed uint64, o Options) *pct {
	p := &pct{
		clocklessPolicy: newClocklessPolicy(o), random: rand.NewStream(seed, 'P'),
		priorities: map[arch.ThreadID]int64{}, lowest: 1, highest: highestInitial,
	}
	type change struct {
		at   uint64
		fall int64
	}
	changes := make([]change, o.Depth-1)
	for i := range changes {
		changes[i] = change{1 + p.random.Below(o.Length), int64(i + 1)}
	}
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.fall, a.fall))
	})
	for _, ch := range changes {
		p.points = append(p.points, ch.at)
		p.falls = append(p.falls, ch.fall)
	}
	return p
}

func (p *pct) Ready(_ *Cluster, t arch.ThreadID, _ arch.Cycles) {
	priority, ok := p.priorities[t]
	if !ok {
		priority = lowestInitial + int64(p.random.Below(highestInitial-lowestInitial))
		p.priorities[t] = priority
	}
	p.insertRanked(rankedThread{priority, t})
}

func (p *pct) Block(_ *Cluster, t arch.ThreadID) {
	i, _ := p.findRanked(rankedThread{p.priorities[t], t})
	p.ranked = slices.Delete(p.ranked, i, i+1)
}

func (p *pct) Exit(_ *Cluster, t arch.ThreadID) { delete(p.priorities, t) }

func (p *pct) Yield(_ *Cluster, t arch.ThreadID) {
	p.lowest--
	p.setPriority(t, p.lowest)
}

func (p *pct) Next(c *Cluster, timer arch.Cycles, hasTimer bool) (Quantum, Verdict) {
	if p.timerIsDue(c, timer, hasTimer) {
		return Quantum{}, FireTimer
	}
	s := p.starvingThread(c)
	switch {
	case c.ranked > 0:
		if s == noSlot {
			s = p.highestEntitled(c)
		}
	case s != noSlot:
		p.highest++
		p.setPriority(c.threads[s].id, p.highest)
		fallthrough
	default:
		s = c.slotOf(p.ranked[len(p.ranked)-1].thread)
	}
	out := p.quantumWithoutBudget(c, s, timer, hasTimer)
	out.Instructions = p.longestQuantum(c, s)
	if len(p.points) > 0 && p.points[0]-c.instructions <= out.Instructions {
		out.Instructions, out.Exact = p.points[0]-c.instructions, true
	}
	return out, Run
}

func (p *pct) Ran(c *Cluster, s Quantum, _ uint64, _ arch.Cycles) {
	for len(p.points) > 0 && p.points[0] <= c.instructions {
		p.setPriority(s.Thread, p.falls[0])
		p.points, p.falls = p.points[1:], p.falls[1:]
	}
}

// highestEntitled is the thread with the highest priority among the threads that would have a
// core by their precedence.
func (p *pct) highestEntitled(c *Cluster) slot {
	p.entitled = c.entitledThreads(p.entitled)
	for i := len(p.ranked) - 1; ; i-- {
		if s := c.slotOf(p.ranked[i].thread); p.entitled[c.threads[s].index] {
			return s
		}
	}
}

// setPriority gives a thread another priority.
func (p *pct) setPriority(t arch.ThreadID, priority int64) {
	i, runnable := p.findRanked(rankedThread{p.priorities[t], t})
	p.priorities[t] = priority
	if runnable {
		p.ranked = slices.Delete(p.ranked, i, i+1)
		p.insertRanked(rankedThread{priority, t})
	}
}

func (p *pct) insertRanked(r rankedThread) {
	i, _ := p.findRanked(r)
	p.ranked = slices.Insert(p.ranked, i, r)
}

func (p *pct) findRanked(r rankedThread) (int, bool) {
	return slices.BinarySearchFunc(p.ranked, r, func(a, b rankedThread) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.thread, b.thread))
	})
}
