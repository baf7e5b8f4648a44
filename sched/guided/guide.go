// Package guided carries out a schedule that was computed, not recorded: the order in which threads
// run, each up to a place in its own code, and the stores that wait meanwhile.
//
// A Plan names places by calls: the number of calls that a thread has completed of functions that
// are treated as units (operations on locks, output), and the number of instructions that it has
// executed since. The number of instructions within such a call depends on the schedule; the number
// between two calls does not, as long as the thread takes the path that the plan is made for.
//
// A plan may begin at a checkpoint: after decisions of a recorded run, which are repeated first
// (package sched/replay). Places are counted from there.
//
// A Guide is a scheduling policy. It knows the program only by the reports at the ends of quanta.
//
// Invariants:
//
//  1. A guided run that reaches every place has the plan's order. Otherwise Why names the first
//     place that was not reached.
//  2. The decisions of a Guide depend on its plan and the calls made so far.
package guided

import (
	"fmt"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/follow"
	"github.com/heddle-dmt/heddle/sched/minimize"
)

// Call is a call that a thread makes.
type Call struct {
	// After is how many instructions are before it since the call before.
	After uint64 `json:"after"`
	// Entry is the first instruction of the function, 0 without a call, and Return the
	// instruction after the call, 0 without one.
	Entry  arch.Addr `json:"entry,omitempty"`
	Return arch.Addr `json:"return,omitempty"`
	Name   string    `json:"name"`
}

// Until says where a step ends.
type Until string

// Ends of steps.
const (
	// Place: the thread has completed a number of calls, and executed a number of instructions
	// since.
	Place Until = "place"
	// Waits: it waits in the call, or has left it.
	Waits Until = "waits"
	// Exits: it is gone.
	Exits Until = "exits"
)

// Step lets a thread continue.
type Step struct {
	Thread arch.ThreadID `json:"thread"`
	Core   arch.CoreID   `json:"core"`
	Calls  int           `json:"calls"`
	Since  uint64        `json:"since"`
	Until  Until         `json:"until"`
	// Accesses is how many accesses of the next instruction come before a Place, besides.
	Accesses uint8 `json:"accesses,omitempty"`
	// First are stores that are committed before the step, in this order, if the order matters; of each Newest still wait.
	First []minimize.Hold `json:"first,omitempty"`
	// Stored, unless nil, is the store with which the step ends, to memory that has another address in each run: its address
	// here is the name that First and Hold have for it.
	Stored *minimize.Store `json:"stored,omitempty"`
	// Hold are stores of other threads that wait during the step.
	Hold []minimize.Hold `json:"hold,omitempty"`
}

// Thread is a thread of a plan.
type Thread struct {
	ID    arch.ThreadID `json:"id"`
	Calls []Call        `json:"calls"`
}

// Plan is a schedule.
type Plan struct {
	// PriorDecisions is the number of decisions of the recorded run before the first step: the decisions up
	// to the checkpoint at which the plan begins. 0: it begins with the program.
	PriorDecisions uint64   `json:"behind,omitempty"`
	Threads        []Thread `json:"threads"`
	Steps          []Step   `json:"steps"`
	// Last are the threads that continue after the last step, the first as long as it can.
	Last []arch.ThreadID `json:"last"`
}

// threadProgress is how far a thread has come.
type threadProgress struct {
	calls   []Call
	done    int // completed calls
	since   uint64
	inside  bool
	blocked bool
	exited  bool
	pc      arch.Addr
	// accesses is the number of accesses of the next instruction that are done. refused reports
	// that the last quantum was to end after more of them, and did not; then the step ends after
	// the instruction.
	accesses uint8
	refused  bool
}

// Guide is the policy that carries out a plan.
type Guide struct {
	plan    *Plan
	threads map[arch.ThreadID]*threadProgress // for look-up only
	next    int
	running arch.ThreadID
	before  arch.ThreadID   // the thread of the quantum before
	slice   follow.Distance // that is under way
	detours int
	fired   int // timers, since a thread has run
	ordered int // steps before which First was committed
	// places are the addresses of stores that have names; unnamed are those of steps that are over and whose addresses are
	// not known yet.
	places  map[minimize.Store]arch.Addr
	unnamed []minimize.Store
	why     string
}

// New makes the policy of a plan.
func New(p *Plan) *Guide {
	g := &Guide{plan: p, threads: map[arch.ThreadID]*threadProgress{}, places: map[minimize.Store]arch.Addr{}, running: arch.NoThread, before: arch.NoThread}
	for i := range p.Threads {
		calls := p.Threads[i].Calls
		g.threads[p.Threads[i].ID] = &threadProgress{calls: calls, inside: p.PriorDecisions > 0 && len(calls) > 0 && calls[0].isUnderWay()}
	}
	return g
}

// isUnderWay reports whether the thread has begun a call before the plan's checkpoint.
func (c *Call) isUnderWay() bool { return c.After == 0 && c.Entry == 0 }

// PriorDecisions returns the number of decisions of the recorded run before the plan.
func (g *Guide) PriorDecisions() uint64 { return g.plan.PriorDecisions }

func (g *Guide) progressOf(t arch.ThreadID) *threadProgress {
	p := g.threads[t]
	if p == nil {
		p = &threadProgress{}
		g.threads[t] = p
	}
	return p
}

// Why describes the first place that the run did not reach; it is empty if it reached all. Detours
// counts how often another thread ran because the one whose turn it was could not.
func (g *Guide) Why() string  { return g.why }
func (g *Guide) Detours() int { return g.detours }

// Complete reports whether all steps were carried out.
func (g *Guide) Complete() bool { return g.why == "" && g.next == len(g.plan.Steps) }

// Step is the number of the step that is under way.
func (g *Guide) Step() int { return g.next }

// Ready implements sched.Policy.
func (g *Guide) Ready(_ *sched.Cluster, t arch.ThreadID, _ arch.Cycles) {
	g.progressOf(t).blocked = false
}

// Block implements sched.Policy.
func (g *Guide) Block(_ *sched.Cluster, t arch.ThreadID) { g.progressOf(t).blocked = true }

// Exit implements sched.Policy.
func (g *Guide) Exit(_ *sched.Cluster, t arch.ThreadID) { g.progressOf(t).exited = true }

// Yield implements sched.Policy.
func (g *Guide) Yield(*sched.Cluster, arch.ThreadID) {}

// Ran implements sched.Policy.
func (g *Guide) Ran(*sched.Cluster, sched.Quantum, uint64, arch.Cycles) {}

// Held is how many of a thread's stores to an address stay in their buffer, the
// newest.
func (g *Guide) Held(x minimize.Store) int {
	if g.next >= len(g.plan.Steps) {
		return 0
	}
	for _, h := range g.plan.Steps[g.next].Hold {
		if h.Thread == x.Thread && g.addressOf(h.Store) == x.Addr {
			return h.Newest
		}
	}
	return 0
}

// First returns, once in each step, the stores that are committed before it.
func (g *Guide) First() []minimize.Hold {
	if g.next >= len(g.plan.Steps) || g.next < g.ordered {
		return nil
	}
	g.ordered = g.next + 1
	list := slices.Clone(g.plan.Steps[g.next].First)
	for i := range list {
		list[i].Addr = g.addressOf(list[i].Store)
	}
	return list
}

// Place finds the addresses of stores with names whose steps are over: newest returns the address of a thread's newest store
// that waits. It is called before each quantum, before First and Held.
func (g *Guide) Place(newest func(arch.ThreadID) (arch.Addr, bool)) {
	for _, x := range g.unnamed {
		if at, waits := newest(x.Thread); waits {
			g.places[x] = at
		}
	}
	g.unnamed = g.unnamed[:0]
}

// addressOf is the address of a store in this run.
func (g *Guide) addressOf(x minimize.Store) arch.Addr {
	if at, named := g.places[x]; named {
		return at
	}
	return x.Addr
}

// Ended is called at the end of a quantum: before the instruction at pc, after a number of
// instructions, and after a number of accesses of the next one.
func (g *Guide) Ended(pc arch.Addr, instructions uint64, accesses uint8) {
	if g.running == arch.NoThread {
		return // the recorded run is still before the checkpoint
	}
	p := g.progressOf(g.running)
	p.pc, p.accesses = pc, accesses
	p.refused = g.slice.AccessesOnly() && instructions == 0 && accesses < g.slice.Accesses
	if p.inside {
		if c := &p.calls[p.done]; pc == c.Return && c.Return != 0 {
			p.inside, p.since = false, 0
			p.done++
			if g.next < len(g.plan.Steps) && g.plan.Steps[g.next].Thread != g.running {
				g.noteDetour(g.running)
			}
		}
	} else {
		p.since += instructions
	}
	g.enterCall(p)
}

// enterCall records that a thread has reached the start of its next call.
func (g *Guide) enterCall(p *threadProgress) {
	if p.inside || p.done >= len(p.calls) || g.next == len(g.plan.Steps) {
		return
	}
	c := &p.calls[p.done]
	if p.since < c.After {
		return
	}
	if (p.since > c.After || c.Entry != 0 && p.pc != c.Entry) && g.why == "" {
		g.why = fmt.Sprintf("thread %d is at %#x after %d instructions, and should reach %s at %#x after %d",
			g.running, uint64(p.pc), p.since, c.Name, uint64(c.Entry), c.After)
	}
	p.inside = true
}

// isStepDone reports whether a step is done.
func (g *Guide) isStepDone(s *Step) bool {
	p := g.progressOf(s.Thread)
	switch {
	case p.exited:
		return true
	case s.Until == Exits: // an exit that waits continues where another thread waits for it
		return p.done >= s.Calls && p.inside && p.blocked
	case p.done > s.Calls || p.done == s.Calls && p.hasReached(s) && s.Until == Place:
		return true
	}
	return s.Until == Waits && p.done == s.Calls && p.inside && p.blocked
}

// hasReached reports whether a thread is at the place of a step, or past it.
func (p *threadProgress) hasReached(s *Step) bool {
	return p.since > s.Since || p.since == s.Since && p.accesses >= s.Accesses
}

// Next implements sched.Policy.
func (g *Guide) Next(c *sched.Cluster, timer arch.Cycles, hasTimer bool) (sched.Quantum, sched.Verdict) {
	for g.next < len(g.plan.Steps) && g.isStepDone(&g.plan.Steps[g.next]) {
		if x := g.plan.Steps[g.next].Stored; x != nil {
			g.unnamed = append(g.unnamed, *x)
		}
		g.next++
	}
	if hasTimer && (timer <= c.Makespan() || g.awaitsTimer(c)) {
		return sched.Quantum{}, sched.FireTimer
	}
	g.fired = 0
	t, w, core := g.chooseThread(c)
	g.running, g.slice = t, w
	core = follow.PlaceOn(c, t, core)
	if t != g.before {
		c.Lift(core, c.Makespan())
		g.before = t
	}
	return w.Quantum(core, t), sched.Run
}

// maxFired is how many timers may fire while no thread runs.
const maxFired = 64

// awaitsTimer reports whether time is to pass: the thread of the step waits, maybe because it
// sleeps, and threads could run only out of their turn.
func (g *Guide) awaitsTimer(c *sched.Cluster) bool {
	if g.next == len(g.plan.Steps) || g.fired == maxFired || follow.IsRunnable(c, g.plan.Steps[g.next].Thread) || g.threadInCall(c) != arch.NoThread {
		return false
	}
	g.fired++
	return true
}

// threadInCall is a thread that can continue within a call, or NoThread.
func (g *Guide) threadInCall(c *sched.Cluster) arch.ThreadID {
	for i := range g.plan.Threads {
		if t := g.plan.Threads[i].ID; follow.IsRunnable(c, t) && g.progressOf(t).inside {
			return t
		}
	}
	return arch.NoThread
}

// chooseThread returns the thread that runs next, how far, and where. While the thread of a step
// waits in a call (glibc's pthread_cond_signal waits for the threads that it woke before), other
// threads that are in calls continue within them; without any, others take their own next steps.
func (g *Guide) chooseThread(c *sched.Cluster) (arch.ThreadID, follow.Distance, arch.CoreID) {
	if g.next == len(g.plan.Steps) {
		return g.chooseLast(c), follow.Distance{Instructions: patience}, arch.NoCore
	}
	if s := &g.plan.Steps[g.next]; follow.IsRunnable(c, s.Thread) {
		return s.Thread, g.remainingDistance(s), s.Core
	}
	g.detours++
	if t := g.threadInCall(c); t != arch.NoThread {
		return t, follow.Distance{Instructions: 1}, arch.NoCore
	}
	for i := g.next + 1; i < len(g.plan.Steps); i++ {
		if s := &g.plan.Steps[i]; follow.IsRunnable(c, s.Thread) && !g.isStepDone(s) && !g.hasEarlierStep(i) {
			g.noteDetour(s.Thread)
			return s.Thread, g.remainingDistance(s), s.Core
		}
	}
	g.noteDetour(arch.NoThread)
	return g.chooseLast(c), follow.Distance{Instructions: patience}, arch.NoCore
}

// noteDetour records that a thread runs out of its turn.
func (g *Guide) noteDetour(t arch.ThreadID) {
	if s := &g.plan.Steps[g.next]; g.why == "" {
		g.why = fmt.Sprintf("step %d: thread %d waits in its call %d, and thread %d continues", g.next+1, s.Thread, g.progressOf(s.Thread).done, t)
	}
}

// hasEarlierStep reports whether a step's thread has an earlier one to do.
func (g *Guide) hasEarlierStep(i int) bool {
	for k := g.next; k < i; k++ {
		if g.plan.Steps[k].Thread == g.plan.Steps[i].Thread && !g.isStepDone(&g.plan.Steps[k]) {
			return true
		}
	}
	return false
}

// patience is the number of instructions that a thread runs at a time after the last step.
const patience = 100_000

// remainingDistance is how far a thread may run in a step: up to its next call or to the step's end, and
// one by one in calls, so that their ends are seen.
func (g *Guide) remainingDistance(s *Step) follow.Distance {
	p := g.progressOf(s.Thread)
	g.running = s.Thread
	g.enterCall(p)
	if p.inside {
		return follow.Distance{Instructions: 1}
	}
	left := uint64(patience)
	if p.done < len(p.calls) {
		left = p.calls[p.done].After - p.since
	}
	if s.Until == Place && p.done == s.Calls && s.Since >= p.since && s.Since-p.since <= left {
		if w := (follow.Distance{Instructions: s.Since - p.since, Accesses: s.Accesses}); !w.IsZero() && !p.refused {
			return w
		}
	}
	return follow.Distance{Instructions: max(1, left)}
}

// chooseLast returns the thread that runs after the last step.
func (g *Guide) chooseLast(c *sched.Cluster) arch.ThreadID {
	for _, t := range g.plan.Last {
		if follow.IsRunnable(c, t) {
			return t
		}
	}
	best := c.RunnableThread(0)
	for i := range c.Runnable() {
		best = min(best, c.RunnableThread(i))
	}
	return best
}
