package sched

import "github.com/heddle-dmt/heddle/emu/arch"

// A Slice is a decision: thread Thread runs next, on core Core. The slice ends
// when it reaches a budget, or earlier when the thread enters the kernel,
// faults or stops for whatever reason of the driver's.
type Quantum struct {
	Core   arch.CoreID
	Thread arch.ThreadID
	// Instructions is the budget in instructions; 0 means none.
	Instructions uint64
	// Cycles is the budget in cycles of the core's clock, from the clock's
	// value at the slice's start; 0 means none.
	Cycles arch.Cycles
	// Exact: stop at the first instruction at or after a budget;
	// otherwise the quantum ends at the first block boundary there.
	Exact bool
	// InsideChoice, unless 0, lets the slice end inside an instruction, between two of its
	// accesses to memory. It is a random number that chooses among the places inside the
	// instruction after the budget of instructions and the one before it
	// (arch.InsideByChance). A budget of cycles ends inside the instruction in which the
	// cycles are used up.
	InsideChoice uint32
	// Accesses, unless 0, has the slice end after that many accesses of the instruction that
	// comes after the budget of instructions. With AccessesOnly that budget is 0, and
	// without accesses the quantum is over before its first instruction.
	Accesses     uint8
	AccessesOnly bool
	// StopAtSync: end the quantum before the next locked instruction or fence;
	// system calls end every slice anyway.
	StopAtSync bool
	// StopAtPause: end the quantum after the first PAUSE with which it has run
	// PauseAfter instructions, and to call Yield: there is another thread that could go first.
	StopAtPause bool
	PauseAfter  uint64
}

// pauseAfter is how many instructions a thread runs before PAUSE gives its turn away. To
// switch costs the host as much as some hundreds of instructions.
const pauseAfter = 4000

// A Verdict is the driver's next act.
type Verdict int

const (
	// Run: run the quantum.
	Run Verdict = iota
	// FireTimer: the earliest timer is due before anything else
	// happens, or that nothing can happen but timers. The driver calls PassTo
	// with the timer's time, and then fires the timer.
	FireTimer
	// Idle: no thread is runnable and no timer is set: the
	// run is over, or deadlocked.
	Idle
	// Diverged: the run differs from the one that is replayed; End:
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
	// Ready reports that t has become runnable, from the virtual time at on. A
	// t that the policy does not know, or that has exited, is a new thread.
	Ready(c *Cluster, t arch.ThreadID, at arch.Cycles)
	// Block reports that t has stopped being runnable.
	Block(c *Cluster, t arch.ThreadID)
	// Exit reports that t has ended. If t was runnable, Block comes first.
	Exit(c *Cluster, t arch.ThreadID)
	// Yield reports that t, still runnable, lets others go first.
	Yield(c *Cluster, t arch.ThreadID)
	// Next decides. At least one thread is runnable. With the verdict Run the
	// slice's thread must be runnable and placed on the slice's core.
	Next(c *Cluster, timer arch.Cycles, hasTimer bool) (Quantum, Verdict)
	// Ran reports the thread's instructions in the quantum. The core's clock includes the cycles.
	Ran(c *Cluster, s Quantum, instructions uint64, cycles arch.Cycles)
}

// NewPolicy makes the policy of complete and valid options. For those with a controller, such as
// rr-sync, that is timed: their controllers order the operations of threads that timed runs. coredet is not of
// this package (dmt.NewPolicy).
func NewPolicy(cores int, seed uint64, o Options) Policy {
	switch o.Policy {
	case RR:
		return newRR(o)
	case Random:
		return newRandom(seed, o)
	case PCT:
		return newPCT(seed, o)
	default:
		return newTimed(cores, seed, o)
	}
}

// clocklessPolicy is the common part of the policies that choose threads whatever the
// clocks say.
//
// Their clocks do advance, so that virtual time passes and has a makespan, but
// they decide two things only: when a timer is due, and which core is taken for
// a thread that has none. A timer is due as soon as the furthest clock has
// reached it, so that sleepers wake though one core lags behind, even for good.
// A core that lags by more than lag when it gets a quantum
// counts as having stalled, and its clock is lifted to that.
type clocklessPolicy struct {
	lag      arch.Cycles
	fairness uint64
}

func newClocklessPolicy(o Options) clocklessPolicy {
	return clocklessPolicy{lag: arch.Cycles(o.TimeSlice), fairness: o.Fairness}
}

// starvingThread returns the thread that has waited for longest if it has waited for
// fairness instructions, or none.
func (u *clocklessPolicy) starvingThread(c *Cluster) slot {
	if oldest := c.order.firstSlot; c.instructionsWaited(oldest) >= u.fairness {
		return oldest
	}
	return noSlot
}

// longestQuantum returns how many instructions s may run at most before another
// thread starves. When one starves already, as others after it may, each gets
// a turn, and all turns together are at most fairness: so no thread waits for
// more than twice fairness, but for quanta that end late at a block boundary.
func (u *clocklessPolicy) longestQuantum(c *Cluster, s slot) uint64 {
	oldest := c.order.firstSlot
	if oldest == s {
		oldest = c.order.successorOf(s)
	}
	if oldest == noSlot {
		return u.fairness
	}
	turn := u.fairShare(c)
	if waited := c.instructionsWaited(oldest); waited+turn < u.fairness {
		return u.fairness - waited
	}
	return turn
}

// fairShare returns the part of fairness that is one of as many threads' as were
// ever runnable at once.
func (u *clocklessPolicy) fairShare(c *Cluster) uint64 {
	return max(1, u.fairness/uint64(c.peak))
}

// quantumWithoutBudget puts s on a core and returns its slice without a budget in
// instructions. One in cycles keeps it from running past a timer.
func (u *clocklessPolicy) quantumWithoutBudget(c *Cluster, s slot, timer arch.Cycles, hasTimer bool) Quantum {
	core := c.placeSlot(s)
	if c.furthest > u.lag {
		c.Lift(core, c.furthest-u.lag)
	}
	out := Quantum{Core: core, Thread: c.threads[s].id, StopAtPause: len(c.runnable) > 1, PauseAfter: pauseAfter}
	if clock := c.Now(core); hasTimer && timer > clock {
		out.Cycles = timer - clock
	} else if hasTimer {
		out.Cycles = 1
	}
	return out
}

// timerIsDue reports whether a timer is due.
func (u *clocklessPolicy) timerIsDue(c *Cluster, timer arch.Cycles, hasTimer bool) bool {
	return hasTimer && timer <= c.furthest
}
