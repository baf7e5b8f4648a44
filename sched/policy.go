package sched

import "github.com/heddle-dmt/heddle/recorder/event"

// A Slice is a decision: thread Thread runs next, on core Core. The slice ends
// when it reaches a budget, or earlier when the thread enters the kernel,
// faults or stops for whatever reason of the driver's.
type Slice struct {
	Core   event.CoreID
	Thread event.ThreadID
	// Instructions is the budget in instructions; 0 means none.
	Instructions uint64
	// Cycles is the budget in cycles of the core's clock, from the clock's
	// value at the slice's start; 0 means none.
	Cycles event.Cycles
	// Exact tells to stop at the first instruction at or after a budget;
	// otherwise the slice ends at the first block boundary there.
	Exact bool
	// Inside, unless 0, lets the slice end inside an instruction, between two of its
	// accesses to memory. It is a random number that chooses among the places inside the
	// instruction after the budget of instructions and the one before it
	// (emu.InsideByChance). A budget of cycles ends inside the instruction in which the
	// cycles are used up.
	Inside uint32
	// After, unless 0, has the slice end after that many accesses of the instruction that
	// comes after the budget of instructions. With Immediately that budget is 0.
	After       uint8
	Immediately bool
	// StopAtSync tells to end the slice before the next locked instruction or fence;
	// system calls end every slice anyway.
	StopAtSync bool
	// StopAtPause tells to end the slice after the first PAUSE with which it has run
	// PauseAfter instructions, and to call Yield: there is another thread that could go first.
	StopAtPause bool
	PauseAfter  uint64
}

// pauseAfter is how many instructions a thread runs before PAUSE gives its turn away. To
// switch costs the host as much as some hundreds of instructions.
const pauseAfter = 4000

// A Verdict says what the driver is to do.
type Verdict int

const (
	// Run tells to run the slice.
	Run Verdict = iota
	// FireTimer tells that the earliest timer is due before anything else
	// happens, or that nothing can happen but timers. The driver calls PassTo
	// with the timer's time, and then does what the timer does.
	FireTimer
	// Idle tells that no thread is runnable and that there is no timer: the
	// run is over, or deadlocked.
	Idle
	// Diverged tells that the run is not the one that is replayed, and End that
	// the log of the replayed run is at its end; see NewReplay.
	Diverged
	End
)

func (v Verdict) String() string {
	switch v {
	case Run:
		return "run"
	case FireTimer:
		return "fire timer"
	case Diverged:
		return "diverged"
	case End:
		return "end"
	default:
		return "idle"
	}
}

// A Policy decides which runnable thread runs next, where and for how long. Its
// state must be plain data that a deep copy can copy, its decisions must depend
// on nothing but the calls it gets and its own seed, and it must keep
// invariant 5 (fairness). The Cluster calls it after it has brought its own
// state up to date; a policy may call any method of the Cluster that only
// reads, and besides PlaceOn, Place and Lift.
type Policy interface {
	// Ready tells that t has become runnable, from the virtual time at on. A
	// t that it has not heard of, or that has exited, is a new thread.
	Ready(c *Cluster, t event.ThreadID, at event.Cycles)
	// Block tells that t has stopped being runnable.
	Block(c *Cluster, t event.ThreadID)
	// Exit tells that t is gone for good. If t was runnable, Block comes first.
	Exit(c *Cluster, t event.ThreadID)
	// Yield tells that t, still runnable, lets others go first.
	Yield(c *Cluster, t event.ThreadID)
	// Next decides. At least one thread is runnable. With the verdict Run the
	// slice's thread must be runnable and placed on the slice's core.
	Next(c *Cluster, timer event.Cycles, hasTimer bool) (Slice, Verdict)
	// Ran tells what the slice's thread ran. The core's clock has the cycles.
	Ran(c *Cluster, s Slice, instructions uint64, cycles event.Cycles)
}

// newPolicy makes the policy of complete and valid options.
func newPolicy(cores int, seed uint64, o Options) Policy {
	switch o.Policy {
	case RR:
		return newRR(o)
	case Random:
		return newRandom(seed, o)
	case PCT:
		return newPCT(seed, o)
	case CoreDet:
		return newCoredet(seed, o)
	default: // controllers order operations of threads that timed runs
		return newTimed(cores, seed, o)
	}
}

// untimed is what the policies have in common that choose threads whatever the
// clocks say.
//
// Their clocks do advance, so that virtual time passes and has a makespan, but
// they decide two things only: when a timer is due, and which core is taken for
// a thread that has none. A timer is due as soon as the furthest clock has
// reached it, so that sleepers wake though one core lags behind, even for good.
// A core that is more than lag behind the furthest clock when it gets a slice
// counts as having stalled, and its clock is lifted to that.
type untimed struct {
	lag      event.Cycles
	fairness uint64
}

func newUntimed(o Options) untimed {
	return untimed{lag: event.Cycles(o.TimeSlice), fairness: o.Fairness}
}

// starving returns the thread that has waited for longest if it has waited for
// fairness instructions, or none.
func (u *untimed) starving(c *Cluster) slot {
	if oldest := c.order.first; c.waited(oldest) >= u.fairness {
		return oldest
	}
	return none
}

// patience returns how many instructions s may run at most before another
// thread starves. When one starves already, as others may behind it, each gets
// a turn, and all turns together are at most fairness: so no thread waits for
// more than twice fairness, but for slices that end late at a block boundary.
func (u *untimed) patience(c *Cluster, s slot) uint64 {
	oldest := c.order.first
	if oldest == s {
		oldest = c.order.after(s)
	}
	if oldest == none {
		return u.fairness
	}
	turn := u.turn(c)
	if waited := c.waited(oldest); waited+turn < u.fairness {
		return u.fairness - waited
	}
	return turn
}

// turn returns the part of fairness that is one of as many threads' as were
// ever runnable at once.
func (u *untimed) turn(c *Cluster) uint64 {
	return max(1, u.fairness/uint64(c.peak))
}

// slice puts s on a core and returns its slice without a budget in
// instructions. One in cycles keeps it from running past a timer.
func (u *untimed) slice(c *Cluster, s slot, timer event.Cycles, hasTimer bool) Slice {
	core := c.place(s)
	if c.furthest > u.lag {
		c.Lift(core, c.furthest-u.lag)
	}
	out := Slice{Core: core, Thread: c.threads[s].id, StopAtPause: len(c.runnable) > 1, PauseAfter: pauseAfter}
	if clock := c.Now(core); hasTimer && timer > clock {
		out.Cycles = timer - clock
	} else if hasTimer {
		out.Cycles = 1
	}
	return out
}

// due tells whether a timer is due.
func (u *untimed) due(c *Cluster, timer event.Cycles, hasTimer bool) bool {
	return hasTimer && timer <= c.furthest
}
