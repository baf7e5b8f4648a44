package follow

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched"
)

// A Distance is how far a thread runs in a step of a schedule: a number of instructions, and then a
// number of memory accesses of the next instruction.
type Distance struct {
	Instructions uint64
	Accesses     uint8
}

// AccessesOnly reports whether the thread only does further accesses of the instruction that it is at.
func (d Distance) AccessesOnly() bool { return d.Instructions == 0 && d.Accesses > 0 }

// IsZero reports whether there is nothing to run.
func (d Distance) IsZero() bool { return d == Distance{} }

// LimitTo returns the distance, or the given number of instructions if that is not more.
func (d Distance) LimitTo(instructions uint64) Distance {
	if d.Instructions >= instructions {
		return Distance{Instructions: instructions}
	}
	return d
}

// Quantum returns the decision to run a thread exactly that far on a core. A PAUSE ends it earlier.
func (d Distance) Quantum(core arch.CoreID, thread arch.ThreadID) sched.Quantum {
	return sched.Quantum{
		Core: core, Thread: thread, Instructions: d.Instructions, Exact: true, Accesses: d.Accesses, AccessesOnly: d.AccessesOnly(),
		StopAtPause: true,
	}
}

// IsRunnable reports whether a thread is runnable.
func IsRunnable(c *sched.Cluster, t arch.ThreadID) bool {
	for i := range c.Runnable() {
		if c.RunnableThread(i) == t {
			return true
		}
	}
	return false
}

// PlaceOn puts a runnable thread on the core that a schedule names, or elsewhere if that is impossible,
// and returns the core.
func PlaceOn(c *sched.Cluster, t arch.ThreadID, core arch.CoreID) arch.CoreID {
	if core != arch.NoCore && int(core) < c.Cores() && c.PlaceOn(t, core) {
		return core
	}
	return c.Place(t)
}
