package minimize

import (
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// Follower is the policy that carries out a schedule. Where the schedule cannot be
// followed exactly, these rules go on:
//
//   - A step whose thread is at its end already, or has exited, is left out.
//   - While the thread of a step waits (it is not runnable, does not exist yet, or
//     makes rounds of waiting), others help, one after the other in the order of
//     their ids, beginning behind the thread's: each runs until it waits, or is
//     where its own next step ends. Then the step goes on.
//   - When nobody can help any more, the step is given up.
//   - After the last step the thread that runs goes on until it waits or has run
//     patience instructions, and the next by id follows. No store is held back.
//   - When all wait, whoever runs goes on alone.
//
// Timers fire when the furthest clock is past them. A core's clock is lifted to the
// furthest when it takes over, so that virtual time shows the order of the steps.
type Follower struct {
	*Tracker
	plan Schedule
	next int // the step that is under way

	running event.ThreadID          // that the last slice was given to
	helper  event.ThreadID          // that runs in place of the step's thread, or NoThread
	tried   map[event.ThreadID]bool // helpers that came no further
	exited  map[event.ThreadID]bool
	began   uint64 // the running thread's progress when its turn began
	spent   uint64 // instructions of its turn
	alone   bool   // all wait
	told    bool   // the last slice's end was told
	way     way    // of the last slice
	tail    uint64 // see Single
	drifted int    // see Drifted
	probe   *probe // see Probe
}

// patience is how many instructions a thread may run at a time where no schedule
// says how long.
const patience = 200_000

// NewFollower makes the policy. What is known of waiting is copied.
func NewFollower(plan Schedule, known Waits) *Follower {
	return &Follower{
		Tracker: NewTracker(known), plan: plan, running: event.NoThread, helper: event.NoThread,
		tried: map[event.ThreadID]bool{}, exited: map[event.ThreadID]bool{}, told: true, drifted: -1,
	}
}

// Single makes each of the last n instructions of a step a slice of its own, so that
// what they do has exact times. It changes nothing else.
func (f *Follower) Single(n uint64) { f.tail = n }

// Ready implements sched.Policy.
func (f *Follower) Ready(_ *sched.Cluster, t event.ThreadID, _ event.Cycles) {
	f.thread(t).fresh()
	f.moved()
}

// Block implements sched.Policy.
func (f *Follower) Block(*sched.Cluster, event.ThreadID) {}

// Exit implements sched.Policy.
func (f *Follower) Exit(_ *sched.Cluster, t event.ThreadID) {
	f.exited[t] = true
	f.moved()
}

// Yield implements sched.Policy. Ended has told of it.
func (f *Follower) Yield(*sched.Cluster, event.ThreadID) {}

// Ran implements sched.Policy.
func (f *Follower) Ran(_ *sched.Cluster, _ sched.Slice, instructions uint64, _ event.Cycles) {
	f.spent += instructions
}

// Ended takes in how the slice ended, as Tracker.Ended does; it comes before Ran.
func (f *Follower) Ended(how How, pc event.Addr, instructions uint64, inside uint8) {
	f.told = true
	f.Tracker.Ended(how, pc, instructions, inside)
	f.thread(f.running).refused = how == AtBudget && f.way.immediately() && inside < f.way.inside
	f.compare(how, pc)
}

// moved notes that something has happened that others may have waited for.
func (f *Follower) moved() {
	clear(f.tried)
	f.alone = false
}

// Next implements sched.Policy.
func (f *Follower) Next(c *sched.Cluster, timer event.Cycles, hasTimer bool) (sched.Slice, sched.Verdict) {
	if hasTimer && timer <= c.Makespan() {
		return sched.Slice{}, sched.FireTimer
	}
	f.settle()
	t, w := f.choose(c)
	core := f.place(c, t)
	if t != f.running {
		c.Lift(core, c.Makespan())
		f.running, f.began, f.spent = t, f.thread(t).at, 0
	}
	f.told = false
	if f.tail > 0 && w.instructions > f.tail {
		w = way{instructions: w.instructions - f.tail}
	} else if f.tail > 0 && w.instructions > 0 {
		w = way{instructions: 1}
	}
	f.way = w
	out := sched.Slice{
		Core: core, Thread: t, Instructions: w.instructions, Exact: true, After: w.inside, Immediately: w.immediately(),
		StopAtPause: true,
	}
	if hasTimer {
		out.Cycles = max(1, timer-min(timer, c.Now(core)))
	}
	return out, sched.Run
}

// settle takes in what came of the last slice.
func (f *Follower) settle() {
	if f.running == event.NoThread {
		return
	}
	p := f.thread(f.running)
	if !f.told {
		p.acted = true // the kernel was busy with the thread
	}
	if p.at > f.began {
		f.began = p.at
		f.moved()
	}
}

// Held is how many of a thread's stores to an address stay in their buffer during
// the slice that Next returned: the newest. Those of the thread that runs itself stay if they
// do in the next step of another, whose slices may end elsewhere than the recorded ones did.
func (f *Follower) Held(x Store) int {
	for i := f.next; i < len(f.plan); i++ {
		if x.Thread != f.running || f.plan[i].Thread != f.running {
			return f.plan[i].held(x)
		}
	}
	return 0
}

// way is how far a thread runs: so many instructions, and then so many accesses of the next.
type way struct {
	instructions uint64
	inside       uint8
}

// immediately reports whether a thread only does more accesses of the instruction that it is at.
func (w way) immediately() bool { return w.instructions == 0 && w.inside > 0 }

// atMost is the way, or so many instructions if that is less.
func (w way) atMost(instructions uint64) way {
	if w.instructions >= instructions {
		return way{instructions: instructions}
	}
	return w
}

// choose returns who runs next, and how far.
func (f *Follower) choose(c *sched.Cluster) (event.ThreadID, way) {
	for f.next < len(f.plan) {
		if t, w, ok := f.step(c, &f.plan[f.next]); ok {
			return t, w
		}
		f.abandon(&f.plan[f.next])
		f.helper = event.NoThread
		clear(f.tried)
		if f.next++; f.next < len(f.plan) {
			// Rounds of waiting before the step are none of it.
			f.thread(f.plan[f.next].Thread).fresh()
		}
	}
	return f.free(c), way{instructions: patience}
}

// step goes on with a step, or returns false when it is done or given up.
func (f *Follower) step(c *sched.Cluster, s *Step) (event.ThreadID, way, bool) {
	p := f.thread(s.Thread)
	if f.exited[s.Thread] || reached(p, s) && !f.probes() {
		return 0, way{}, false
	}
	if f.helper != event.NoThread {
		if h := f.thread(f.helper); runnable(c, f.helper) && !h.waits && f.spent < patience {
			if w := f.room(f.helper); w != (way{}) {
				return f.helper, w, true
			}
		}
		f.helper = event.NoThread
		if runnable(c, s.Thread) {
			p.fresh()
		}
	}
	if runnable(c, s.Thread) && !p.waits {
		return s.Thread, f.probed(left(p, s)), true
	}
	f.tried[s.Thread] = true
	if f.helper = f.help(c, s.Thread); f.helper == event.NoThread {
		return 0, way{}, false
	}
	f.tried[f.helper] = true
	f.thread(f.helper).fresh()
	return f.helper, f.room(f.helper), true
}

// reached tells whether a thread is at the end of a step, or past it.
func reached(p *Progress, s *Step) bool {
	return p.reached > s.To || p.reached == s.To && (!s.Acts || p.acted) && (p.inside >= s.Inside || p.refused)
}

// left is what is left of a step. One instruction more than there are lets the thread act.
func left(p *Progress, s *Step) way {
	w := way{s.To - min(s.To, p.at), s.Inside}
	if s.Acts {
		w.instructions++
	}
	return w
}

// help returns the next helper of a thread, or NoThread.
func (f *Follower) help(c *sched.Cluster, of event.ThreadID) event.ThreadID {
	best := event.NoThread
	for i := range c.Runnable() {
		t := c.RunnableThread(i)
		if t != of && !f.tried[t] && f.room(t) != (way{}) && (best == event.NoThread || sooner(t, best, of)) {
			best = t
		}
	}
	return best
}

// sooner tells whether a comes before b in the order of ids that begins behind of
// and goes on with the lowest.
func sooner(a, b, of event.ThreadID) bool {
	if (a > of) != (b > of) {
		return a > of
	}
	return a < b
}

// room is how far a helper may run: to where its own next step ends.
func (f *Follower) room(t event.ThreadID) way {
	p := f.thread(t)
	for i := f.next; i < len(f.plan); i++ {
		if s := &f.plan[i]; s.Thread == t {
			if reached(p, s) {
				return way{}
			}
			return left(p, s).atMost(patience)
		}
	}
	return way{instructions: patience}
}

// free chooses where no step is left.
func (f *Follower) free(c *sched.Cluster) event.ThreadID {
	t := f.running
	if runnable(c, t) && (f.alone || !f.thread(t).waits && f.spent < patience) {
		return t
	}
	if runnable(c, t) && !f.thread(t).waits {
		f.spent = 0 // its patience is over, and it may be alone
	}
	if t != event.NoThread {
		f.tried[t] = true
	}
	best := event.NoThread
	for i := range c.Runnable() {
		o := c.RunnableThread(i)
		if o != t && !f.tried[o] && (best == event.NoThread || sooner(o, best, t)) {
			best = o
		}
	}
	if best != event.NoThread {
		return best
	}
	f.alone = true
	if runnable(c, t) {
		return t
	}
	return c.RunnableThread(0)
}

// runnable tells whether a thread can run.
func runnable(c *sched.Cluster, t event.ThreadID) bool {
	for i := range c.Runnable() {
		if c.RunnableThread(i) == t {
			return true
		}
	}
	return false
}

// place puts a thread on the core of its present or next step, else where it was,
// else where there is room.
func (f *Follower) place(c *sched.Cluster, t event.ThreadID) event.CoreID {
	core := c.LastCoreOf(t)
	for i := f.next; i < len(f.plan); i++ {
		if s := &f.plan[i]; s.Thread == t {
			core = s.Core
			break
		}
	}
	if core != event.NoCore && int(core) < c.Cores() && c.PlaceOn(t, core) {
		return core
	}
	return c.Place(t)
}
