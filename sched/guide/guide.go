// Package guide carries out a schedule that was computed, not recorded: who goes on
// up to which place in its own code, and which stores wait meanwhile.
//
// A Plan names places by calls: how many calls of functions that are taken as a whole
// (operations on locks, output) a thread has behind it, and how many instructions it
// has executed since. What happens within such a call depends on the schedule; how
// many instructions are between two calls does not, as long as the thread takes the
// path that the plan is made for.
//
// A plan may begin at a checkpoint: behind decisions of a recorded run, which somebody
// else carries out (sched.NewContinued). Places are counted from there.
//
// A Guide is a scheduling policy. It knows the program by what it is told at the ends
// of slices.
//
// Invariants:
//
//  1. A run that is guided and comes to every place has the plan's order. Otherwise
//     Why says the first place that it did not come to.
//  2. What a Guide decides depends on its plan and the calls made so far.
package guide

import (
	"fmt"

	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/minimize"
)

// Call is a call that a thread makes.
type Call struct {
	// After is how many instructions are before it since the call before.
	After uint64 `json:"after"`
	// Entry is the first instruction of the function, 0 for what is not called, and
	// Return the one behind the call, 0 if there is none.
	Entry  event.Addr `json:"entry,omitempty"`
	Return event.Addr `json:"return,omitempty"`
	Name   string     `json:"name"`
}

// Until says where a step ends.
type Until string

// Ends of steps.
const (
	// Place: the thread has so many calls behind it, and so many instructions since.
	Place Until = "place"
	// Waits: it waits in the call, or has left it.
	Waits Until = "waits"
	// Exits: it is gone.
	Exits Until = "exits"
)

// Step lets a thread go on.
type Step struct {
	Thread event.ThreadID `json:"thread"`
	Core   event.CoreID   `json:"core"`
	Calls  int            `json:"calls"`
	Since  uint64         `json:"since"`
	Until  Until          `json:"until"`
	// Accesses is how many accesses of the next instruction come before a Place, besides.
	Accesses uint8 `json:"accesses,omitempty"`
	// Hold are stores of other threads that wait during the step.
	Hold []minimize.Hold `json:"hold,omitempty"`
}

// Thread is a thread of a plan.
type Thread struct {
	ID    event.ThreadID `json:"id"`
	Calls []Call         `json:"calls"`
}

// Plan is a schedule.
type Plan struct {
	// Behind is how many decisions of the recorded run are before the first step: those
	// up to the checkpoint at which the plan begins. 0: it begins with the program.
	Behind  uint64   `json:"behind,omitempty"`
	Threads []Thread `json:"threads"`
	Steps   []Step   `json:"steps"`
	// Last are the threads that go on behind the last step, the first as long as it
	// can.
	Last []event.ThreadID `json:"last"`
}

// progress is how far a thread has come.
type progress struct {
	calls   []Call
	done    int // calls behind it
	since   uint64
	inside  bool
	blocked bool
	exited  bool
	pc      event.Addr
	// accesses is how many accesses of the next instruction are done; refused: the last slice
	// was to end after more of them, and did not. Then the step ends after the instruction.
	accesses uint8
	refused  bool
}

// Guide is the policy that carries out a plan.
type Guide struct {
	plan    *Plan
	threads map[event.ThreadID]*progress // for look-up only
	next    int
	running event.ThreadID
	before  event.ThreadID // the thread of the slice before
	slice   way            // that is under way
	detours int
	why     string
}

// New makes the policy of a plan.
func New(p *Plan) *Guide {
	g := &Guide{plan: p, threads: map[event.ThreadID]*progress{}, running: event.NoThread, before: event.NoThread}
	for i := range p.Threads {
		calls := p.Threads[i].Calls
		g.threads[p.Threads[i].ID] = &progress{calls: calls, inside: p.Behind > 0 && len(calls) > 0 && calls[0].underWay()}
	}
	return g
}

// underWay tells of a call that the thread has begun before the plan's checkpoint.
func (c *Call) underWay() bool { return c.After == 0 && c.Entry == 0 }

// Behind is how many decisions of the recorded run come before the plan.
func (g *Guide) Behind() uint64 { return g.plan.Behind }

func (g *Guide) thread(t event.ThreadID) *progress {
	p := g.threads[t]
	if p == nil {
		p = &progress{}
		g.threads[t] = p
	}
	return p
}

// Why is the first place that the run did not come to, or empty. Detours is how
// often another thread went on because the one whose turn it was could not.
func (g *Guide) Why() string  { return g.why }
func (g *Guide) Detours() int { return g.detours }

// Complete tells that all steps were carried out.
func (g *Guide) Complete() bool { return g.why == "" && g.next == len(g.plan.Steps) }

// Step is the number of the step that is under way.
func (g *Guide) Step() int { return g.next }

// Ready implements sched.Policy.
func (g *Guide) Ready(_ *sched.Cluster, t event.ThreadID, _ event.Cycles) {
	g.thread(t).blocked = false
}

// Block implements sched.Policy.
func (g *Guide) Block(_ *sched.Cluster, t event.ThreadID) { g.thread(t).blocked = true }

// Exit implements sched.Policy.
func (g *Guide) Exit(_ *sched.Cluster, t event.ThreadID) { g.thread(t).exited = true }

// Yield implements sched.Policy.
func (g *Guide) Yield(*sched.Cluster, event.ThreadID) {}

// Ran implements sched.Policy.
func (g *Guide) Ran(*sched.Cluster, sched.Slice, uint64, event.Cycles) {}

// Held is how many of a thread's stores to an address stay in their buffer, the
// newest.
func (g *Guide) Held(x minimize.Store) int {
	if g.next >= len(g.plan.Steps) {
		return 0
	}
	for _, h := range g.plan.Steps[g.next].Hold {
		if h.Store == x {
			return h.Newest
		}
	}
	return 0
}

// Ended takes in how the slice ended: before which instruction, after how many, and how many
// accesses of the next are done.
func (g *Guide) Ended(pc event.Addr, instructions uint64, accesses uint8) {
	if g.running == event.NoThread {
		return // the recorded run is still before the checkpoint
	}
	p := g.thread(g.running)
	p.pc, p.accesses = pc, accesses
	p.refused = g.slice.immediately() && instructions == 0 && accesses < g.slice.accesses
	if p.inside {
		if c := &p.calls[p.done]; pc == c.Return && c.Return != 0 {
			p.inside, p.since = false, 0
			p.done++
			if g.next < len(g.plan.Steps) && g.plan.Steps[g.next].Thread != g.running {
				g.stray(g.running)
			}
		}
	} else {
		p.since += instructions
	}
	g.enters(p)
}

// enters notes that a thread is at the begin of its next call.
func (g *Guide) enters(p *progress) {
	if p.inside || p.done >= len(p.calls) || g.next == len(g.plan.Steps) {
		return
	}
	c := &p.calls[p.done]
	if p.since < c.After {
		return
	}
	if (p.since > c.After || c.Entry != 0 && p.pc != c.Entry) && g.why == "" {
		g.why = fmt.Sprintf("thread %d is at %#x behind %d instructions, and should come to %s at %#x behind %d",
			g.running, uint64(p.pc), p.since, c.Name, uint64(c.Entry), c.After)
	}
	p.inside = true
}

// reached tells that a step is over.
func (g *Guide) reached(s *Step) bool {
	p := g.thread(s.Thread)
	switch {
	case p.exited:
		return true
	case s.Until == Exits: // an exit that waits goes on where somebody waits for it
		return p.done >= s.Calls && p.inside && p.blocked
	case p.done > s.Calls || p.done == s.Calls && !p.inside && p.isAt(s) && s.Until == Place:
		return true
	}
	return s.Until == Waits && p.done == s.Calls && p.inside && p.blocked
}

// isAt reports whether a thread is at the place of a step, or past it.
func (p *progress) isAt(s *Step) bool {
	return p.since > s.Since || p.since == s.Since && p.accesses >= s.Accesses
}

// way is how far a thread runs: so many instructions, and then so many accesses of the next.
type way struct {
	instructions uint64
	accesses     uint8
}

// immediately reports whether a thread only does more accesses of the instruction that it is at.
func (w way) immediately() bool { return w.instructions == 0 && w.accesses > 0 }

// Next implements sched.Policy.
func (g *Guide) Next(c *sched.Cluster, timer event.Cycles, hasTimer bool) (sched.Slice, sched.Verdict) {
	for g.next < len(g.plan.Steps) && g.reached(&g.plan.Steps[g.next]) {
		g.next++
	}
	if hasTimer && timer <= c.Makespan() {
		return sched.Slice{}, sched.FireTimer
	}
	t, w, core := g.choose(c)
	g.running, g.slice = t, w
	if core == event.NoCore || int(core) >= c.Cores() || !c.PlaceOn(t, core) {
		core = c.Place(t)
	}
	if t != g.before {
		c.Lift(core, c.Makespan())
		g.before = t
	}
	return sched.Slice{
		Core: core, Thread: t, Instructions: w.instructions, Exact: true, After: w.accesses, Immediately: w.immediately(),
		StopAtPause: true,
	}, sched.Run
}

// choose returns who goes on, how far, and where. While the thread
// of a step waits in a call (glibc's pthread_cond_signal does, for those that it woke
// before), others that are in calls go on within them; and if there are none, others
// take their own next steps.
func (g *Guide) choose(c *sched.Cluster) (event.ThreadID, way, event.CoreID) {
	if g.next == len(g.plan.Steps) {
		return g.last(c), way{instructions: patience}, event.NoCore
	}
	if s := &g.plan.Steps[g.next]; runnable(c, s.Thread) {
		return s.Thread, g.way(s), s.Core
	}
	g.detours++
	for i := range g.plan.Threads {
		if t := g.plan.Threads[i].ID; runnable(c, t) && g.thread(t).inside {
			return t, way{instructions: 1}, event.NoCore
		}
	}
	for i := g.next + 1; i < len(g.plan.Steps); i++ {
		if s := &g.plan.Steps[i]; runnable(c, s.Thread) && !g.reached(s) && !g.earlier(i) {
			g.stray(s.Thread)
			return s.Thread, g.way(s), s.Core
		}
	}
	g.stray(event.NoThread)
	return g.last(c), way{instructions: patience}, event.NoCore
}

// stray notes that a thread goes on out of its turn.
func (g *Guide) stray(t event.ThreadID) {
	if s := &g.plan.Steps[g.next]; g.why == "" {
		g.why = fmt.Sprintf("step %d: thread %d waits in its call %d, and thread %d goes on", g.next+1, s.Thread, g.thread(s.Thread).done, t)
	}
}

// earlier tells that a step's thread has an earlier one to do.
func (g *Guide) earlier(i int) bool {
	for k := g.next; k < i; k++ {
		if g.plan.Steps[k].Thread == g.plan.Steps[i].Thread && !g.reached(&g.plan.Steps[k]) {
			return true
		}
	}
	return false
}

// patience is how many instructions a thread runs at a time behind the last step.
const patience = 100_000

// way is how far a thread may run in a step: up to its next call or to the step's end, and
// one by one in calls, so that their ends are seen.
func (g *Guide) way(s *Step) way {
	p := g.thread(s.Thread)
	g.running = s.Thread
	g.enters(p)
	if p.inside {
		return way{instructions: 1}
	}
	left := uint64(patience)
	if p.done < len(p.calls) {
		left = p.calls[p.done].After - p.since
	}
	if s.Until == Place && p.done == s.Calls && s.Since >= p.since && s.Since-p.since <= left {
		if w := (way{s.Since - p.since, s.Accesses}); w != (way{}) && !p.refused {
			return w
		}
	}
	return way{instructions: max(1, left)}
}

// last is who goes on behind the last step.
func (g *Guide) last(c *sched.Cluster) event.ThreadID {
	for _, t := range g.plan.Last {
		if runnable(c, t) {
			return t
		}
	}
	best := c.RunnableThread(0)
	for i := range c.Runnable() {
		best = min(best, c.RunnableThread(i))
	}
	return best
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
