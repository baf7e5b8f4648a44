package sched

import (
	"math"
	"math/bits"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Precedence is how a thread comes before others, as its scheduling class says
// (sched(7)). timed follows it strictly, and pct chooses among the threads that would
// have a core; the others have orders of their own.
type Precedence struct {
	// Rank is 0 for an ordinary thread. A runnable thread has a core before all those
	// with a smaller rank.
	Rank int
	// Slice is after how many cycles on a core another thread of the same rank has its
	// turn; 0: when this one blocks or yields. Ordinary threads have slices of the
	// policy's.
	Slice arch.Cycles
	// Deadline, unless 0, orders threads of one rank by the time at which each is to be
	// done: Deadline after it became runnable, and a Period later after each Runtime
	// that it has used up.
	Runtime, Deadline, Period arch.Cycles
}

// SetPrecedence says how a thread, which may be new, comes before others. It is queued
// anew if it waits for a core.
func (c *Cluster) SetPrecedence(t arch.ThreadID, p Precedence) {
	s := c.slotOrNew(t)
	th := &c.threads[s]
	c.ranked += hasRank(p) - hasRank(th.precedence)
	waits := th.index >= 0 && th.core == arch.NoCore
	if waits {
		c.Block(t)
	}
	th.precedence, th.changed = p, true
	if waits {
		c.Ready(t, th.readyAt)
	}
}

// hasRank is 1 if threads of a precedence come before ordinary ones.
func hasRank(p Precedence) int {
	if p.Rank > 0 {
		return 1
	}
	return 0
}

// SetRealtimeShare bounds, for timed, the cycles that threads with a rank may take of a
// core in each period while ordinary ones wait for it. There is no bound at first.
func (c *Cluster) SetRealtimeShare(runtime, period arch.Cycles) {
	c.share, c.period = runtime, period
}

// precedes reports whether a comes strictly before b.
func (c *Cluster) precedes(a, b slot) bool {
	x, y := &c.threads[a], &c.threads[b]
	if x.precedence.Rank != y.precedence.Rank {
		return x.precedence.Rank > y.precedence.Rank
	}
	return x.precedence.Deadline > 0 && y.precedence.Deadline > 0 && x.due < y.due
}

// startDeadline gives a thread that becomes runnable a deadline, unless the rest of its
// runtime until its current one is no more than its share.
func (th *threadRecord) startDeadline(at arch.Cycles) {
	p := &th.precedence
	if p.Deadline == 0 {
		return
	}
	if th.due > at {
		leftHigh, leftLow := bits.Mul64(uint64(th.left), uint64(p.Period))
		roomHigh, roomLow := bits.Mul64(uint64(th.due-at), uint64(p.Runtime))
		if leftHigh < roomHigh || leftHigh == roomHigh && leftLow <= roomLow {
			return
		}
	}
	th.due, th.left = at+p.Deadline, p.Runtime
}

// spendRuntime takes cycles from the runtime of a thread with a deadline, which is put off when
// the runtime is used up.
func (th *threadRecord) spendRuntime(cycles arch.Cycles) {
	p := &th.precedence
	if p.Deadline == 0 {
		return
	}
	for cycles >= th.left {
		cycles -= th.left
		th.due, th.left = th.due+p.Period, max(p.Runtime, 1)
	}
	th.left -= cycles
}

// entitledThreads returns the runnable threads that strict precedence would give a core, as a
// set in terms of their places in Cluster.runnable.
func (c *Cluster) entitledThreads(set []bool) []bool {
	set = append(set[:0], make([]bool, len(c.runnable))...)
	free := c.all
	for rank := math.MaxInt; free != 0; {
		next := -1
		for _, s := range c.runnable {
			if r := c.threads[s].precedence.Rank; r < rank {
				next = max(next, r)
			}
		}
		if next < 0 {
			return set
		}
		rank = next
		level := free
		for i, s := range c.runnable {
			th := &c.threads[s]
			if th.precedence.Rank != rank || th.affinity&level == 0 {
				continue
			}
			set[i] = true
			free &^= th.affinity & free & -(th.affinity & free)
		}
	}
	return set
}
