package minimize

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/follow"
)

// Follower is the policy that carries out a schedule. Where the schedule cannot be followed
// exactly, these rules apply:
//
//   - A step whose thread is at its end already, or has exited, is left out.
//   - While the thread of a step waits (it is not runnable, does not exist yet, or
//     makes rounds of waiting), others help, one after the other in the order of
//     their ids, beginning with the id after the thread's: each runs until it waits,
//     or is where its own next step ends. Then the step continues.
//   - When no thread can help any more, the step is abandoned.
//   - After the last step the running thread continues until it waits or has run
//     patience instructions, and the next by id follows. No store is held back.
//   - When all threads wait, the running thread continues alone.
//
// Timers fire when the furthest clock is past them. A core's clock is lifted to the furthest when
// it takes over, so that virtual time shows the order of the steps.
type Follower struct {
	*Tracker
	plan Schedule
	next int // the step that is under way

	running      arch.ThreadID          // the thread of the last quantum
	helper       arch.ThreadID          // that runs in place of the step's thread, or NoThread
	tried        map[arch.ThreadID]bool // helpers that came no further
	exited       map[arch.ThreadID]bool
	began        uint64          // the running thread's progress when its turn began
	spent        uint64          // instructions of its turn
	alone        bool            // all wait
	quantumEnded bool            // Ended was called for the last quantum
	distance     follow.Distance // of the last quantum
	tail         uint64          // see Single
	drifted      int             // see Drifted
	probe        *probe          // see Probe
}

// patience is how many instructions a thread may run at a time where no schedule
// says how long.
const patience = 200_000

// NewFollower makes the policy. The known waiting is copied.
func NewFollower(plan Schedule, known Waits) *Follower {
	return &Follower{
		Tracker: NewTracker(known), plan: plan, running: arch.NoThread, helper: arch.NoThread,
		tried: map[arch.ThreadID]bool{}, exited: map[arch.ThreadID]bool{}, quantumEnded: true, drifted: -1,
	}
}

// Single makes each of the last n instructions of a step a quantum of its own, so that their
// effects have exact times. It changes nothing else.
func (f *Follower) Single(n uint64) { f.tail = n }

// Ready implements sched.Policy.
func (f *Follower) Ready(_ *sched.Cluster, t arch.ThreadID, _ arch.Cycles) {
	f.progressOf(t).forgetWait()
	f.noteMovement()
}

// Block implements sched.Policy.
func (f *Follower) Block(*sched.Cluster, arch.ThreadID) {}

// Exit implements sched.Policy.
func (f *Follower) Exit(_ *sched.Cluster, t arch.ThreadID) {
	f.exited[t] = true
	f.noteMovement()
}

// Yield implements sched.Policy. Ended has reported it already.
func (f *Follower) Yield(*sched.Cluster, arch.ThreadID) {}

// Ran implements sched.Policy.
func (f *Follower) Ran(_ *sched.Cluster, _ sched.Quantum, instructions uint64, _ arch.Cycles) {
	f.spent += instructions
}

// Ended records how the quantum ended, like Tracker.Ended; it is called before Ran.
func (f *Follower) Ended(how How, pc arch.Addr, instructions uint64, inside uint8) {
	f.quantumEnded = true
	f.Tracker.Ended(how, pc, instructions, inside)
	f.progressOf(f.running).refused = how == AtBudget && f.distance.AccessesOnly() && inside < f.distance.Accesses
	f.compareWithStep(how, pc)
}

// noteMovement notes that something has happened that others may have waited for.
func (f *Follower) noteMovement() {
	clear(f.tried)
	f.alone = false
}

// Next implements sched.Policy.
func (f *Follower) Next(c *sched.Cluster, timer arch.Cycles, hasTimer bool) (sched.Quantum, sched.Verdict) {
	if hasTimer && timer <= c.Makespan() {
		return sched.Quantum{}, sched.FireTimer
	}
	f.applyLastQuantum()
	t, w := f.chooseThread(c)
	core := f.placeThread(c, t)
	if t != f.running {
		c.Lift(core, c.Makespan())
		f.running, f.began, f.spent = t, f.progressOf(t).at, 0
	}
	f.quantumEnded = false
	if f.tail > 0 && w.Instructions > f.tail {
		w = follow.Distance{Instructions: w.Instructions - f.tail}
	} else if f.tail > 0 && w.Instructions > 0 {
		w = follow.Distance{Instructions: 1}
	}
	f.distance = w
	out := w.Quantum(core, t)
	if hasTimer {
		out.Cycles = max(1, timer-min(timer, c.Now(core)))
	}
	return out, sched.Run
}

// applyLastQuantum records the effects of the last quantum.
func (f *Follower) applyLastQuantum() {
	if f.running == arch.NoThread {
		return
	}
	p := f.progressOf(f.running)
	if !f.quantumEnded {
		p.acted = true // the kernel was busy with the thread
	}
	if p.at > f.began {
		f.began = p.at
		f.noteMovement()
	}
}

// Held returns the number of a thread's stores to an address that stay in their buffer during the
// quantum that Next returned: the newest ones. Stores of the running thread itself stay if they do
// in the next step of another thread, since that thread's quanta may end elsewhere than the
// recorded ones did.
func (f *Follower) Held(x Store) int {
	for i := f.next; i < len(f.plan); i++ {
		if x.Thread != f.running || f.plan[i].Thread != f.running {
			return f.plan[i].heldStores(x)
		}
	}
	return 0
}

// chooseThread returns the thread that runs next, and how far it runs.
func (f *Follower) chooseThread(c *sched.Cluster) (arch.ThreadID, follow.Distance) {
	for f.next < len(f.plan) {
		if t, w, ok := f.continueStep(c, &f.plan[f.next]); ok {
			return t, w
		}
		f.noteUnreached(&f.plan[f.next])
		f.helper = arch.NoThread
		clear(f.tried)
		if f.next++; f.next < len(f.plan) {
			// Rounds of waiting before the step do not count.
			f.progressOf(f.plan[f.next].Thread).forgetWait()
		}
	}
	return f.chooseAfterEnd(c), follow.Distance{Instructions: patience}
}

// continueStep continues a step. It returns false when the step is done or abandoned.
func (f *Follower) continueStep(c *sched.Cluster, s *Step) (arch.ThreadID, follow.Distance, bool) {
	p := f.progressOf(s.Thread)
	if f.exited[s.Thread] || hasReached(p, s) && !f.isProbing() {
		return 0, follow.Distance{}, false
	}
	if f.helper != arch.NoThread {
		if h := f.progressOf(f.helper); follow.IsRunnable(c, f.helper) && !h.waits && f.spent < patience {
			if w := f.helperDistance(f.helper); w != (follow.Distance{}) {
				return f.helper, w, true
			}
		}
		f.helper = arch.NoThread
		if follow.IsRunnable(c, s.Thread) {
			p.forgetWait()
		}
	}
	if follow.IsRunnable(c, s.Thread) && !p.waits {
		return s.Thread, f.limitForProbe(remainingDistance(p, s)), true
	}
	f.tried[s.Thread] = true
	if f.helper = f.nextHelper(c, s.Thread); f.helper == arch.NoThread {
		return 0, follow.Distance{}, false
	}
	f.tried[f.helper] = true
	f.progressOf(f.helper).forgetWait()
	return f.helper, f.helperDistance(f.helper), true
}

// hasReached reports whether a thread is at the end of a step, or past it.
func hasReached(p *Progress, s *Step) bool {
	return p.reached > s.To || p.reached == s.To && (!s.Acts || p.acted) && (p.inside >= s.Inside || p.refused)
}

// remainingDistance returns the rest of a step. One additional instruction lets the thread act.
func remainingDistance(p *Progress, s *Step) follow.Distance {
	w := follow.Distance{Instructions: s.To - min(s.To, p.at), Accesses: s.Inside}
	if s.Acts {
		w.Instructions++
	}
	return w
}

// nextHelper returns the next helper of a thread, or NoThread.
func (f *Follower) nextHelper(c *sched.Cluster, of arch.ThreadID) arch.ThreadID {
	best := arch.NoThread
	for i := range c.Runnable() {
		t := c.RunnableThread(i)
		if t != of && !f.tried[t] && f.helperDistance(t) != (follow.Distance{}) && (best == arch.NoThread || comesSooner(t, best, of)) {
			best = t
		}
	}
	return best
}

// comesSooner reports whether a comes before b in the cyclic order of ids that begins after the id
// of.
func comesSooner(a, b, of arch.ThreadID) bool {
	if (a > of) != (b > of) {
		return a > of
	}
	return a < b
}

// helperDistance is how far a helper may run: to where its own next step ends.
func (f *Follower) helperDistance(t arch.ThreadID) follow.Distance {
	p := f.progressOf(t)
	for i := f.next; i < len(f.plan); i++ {
		if s := &f.plan[i]; s.Thread == t {
			if hasReached(p, s) {
				return follow.Distance{}
			}
			return remainingDistance(p, s).LimitTo(patience)
		}
	}
	return follow.Distance{Instructions: patience}
}

// chooseAfterEnd chooses where no step is left.
func (f *Follower) chooseAfterEnd(c *sched.Cluster) arch.ThreadID {
	t := f.running
	if follow.IsRunnable(c, t) && (f.alone || !f.progressOf(t).waits && f.spent < patience) {
		return t
	}
	if follow.IsRunnable(c, t) && !f.progressOf(t).waits {
		f.spent = 0 // its patience is used up, and it may be alone
	}
	if t != arch.NoThread {
		f.tried[t] = true
	}
	best := arch.NoThread
	for i := range c.Runnable() {
		o := c.RunnableThread(i)
		if o != t && !f.tried[o] && (best == arch.NoThread || comesSooner(o, best, t)) {
			best = o
		}
	}
	if best != arch.NoThread {
		return best
	}
	f.alone = true
	if follow.IsRunnable(c, t) {
		return t
	}
	return c.RunnableThread(0)
}

// placeThread puts a thread on the core of its present or next step, else where it was,
// else where there is room.
func (f *Follower) placeThread(c *sched.Cluster, t arch.ThreadID) arch.CoreID {
	core := c.LastCoreOf(t)
	for i := f.next; i < len(f.plan); i++ {
		if s := &f.plan[i]; s.Thread == t {
			core = s.Core
			break
		}
	}
	return follow.PlaceOn(c, t, core)
}
