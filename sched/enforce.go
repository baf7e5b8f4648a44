package sched

import (
	"fmt"

	"github.com/heddle-dmt/heddle/internal/nearmap"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// The forms of relay, as EnforceOptions.Relay takes them (PEREGRINE section 3.2).
const (
	// SemaphoreRelay wakes the next thread by its semaphore.
	SemaphoreRelay = "semaphore"
	// FlagRelay lets threads spin on a flag.
	FlagRelay = "flag"
)

// RelayCosts are what enforcement costs in virtual time; emu.Costs says what each
// one is.
type RelayCosts struct {
	Sync, SemaphoreWait, SemaphoreWake, SpinCheck, BranchCount, SlotCall event.Cycles
}

// EnforceOptions say how a schedule is enforced.
type EnforceOptions struct {
	// Relay is "semaphore" or "flag"; empty means "semaphore".
	Relay string
	// SkipWait leaves out waits at barriers, and sleeps: the order holds without.
	SkipWait bool
	// SyncOnly leaves out the constraints.
	SyncOnly bool
	// BreakOut is how many cycles may pass without the next event of the schedule
	// until it is left, as in TERN (section 5.4); 0: any number.
	BreakOut event.Cycles
	// Free lets the run go on without the schedule when it is left; otherwise the
	// run is stopped.
	Free bool
	// Loose are the numbers of constraints that are watched and not enforced:
	// EnforceCounts.Flipped tells whether they held all the same.
	Loose []int
	Costs RelayCosts
}

// Validate returns what is wrong as a *FieldError.
func (o EnforceOptions) Validate() error {
	if o.Relay == "" {
		return nil
	}
	if err := oneOf("relay", o.Relay, []string{SemaphoreRelay, FlagRelay}); err != nil {
		return err
	}
	return nil
}

// Enforcer is the Controller that makes a run follow a schedule.
//
// Operations happen one at a time, in their order: a thread that comes to one is
// held until all before it are done. The part of a wait up to where the thread
// blocks is an operation of its own, and so is the rest: the thread goes on from
// its wait when it is that one's turn, not when it is woken. A lock that is taken
// in the schedule's order is free; what times out is what did so in the recorded
// run. Calls that wait for a futex, sleep or tell the time are answered with what
// they returned then.
//
// Invariants:
//
//  1. What a thread does before its operation at position p comes before what
//     any thread does behind an operation at a later position.
//  2. Unless constraints are left out, the first instruction of each is executed
//     before the second.
//  3. While the schedule is followed, the results of operations and the threads'
//     instructions depend on the schedule and the program alone, if the program's
//     other accesses do not race and it reads no cycle counter.
//  4. A schedule for other inputs may be left where one thread is alone, since the
//     others have been waited for: that is no deviation.
//  5. It never waits for ever: when nothing can run, or nothing of the schedule
//     has happened for BreakOut cycles, the schedule is left, with the first
//     operation that does not match or did not come.
type Enforcer struct {
	Pass
	plan *Plan
	o    EnforceOptions

	next    int  // the position whose turn it is
	acting  bool // the operation there is under way
	helper  int  // the thread that runs for the sake of that, or -1
	since   event.Cycles
	now     event.Cycles
	threads []follower
	numbers nearmap.Map[event.ThreadID, int]
	posted  []bool
	ago     uint64                        // how many instructions before the end of the slice a point is that is posted
	bound   map[event.ObjectID]event.Addr // where the objects of the schedule are
	left    string                        // why the schedule was left, if it was
	alone   bool                          // it was left by a thread that was alone
	place   int                           // where
	counts  EnforceCounts
}

// EnforceCounts is what an Enforcer has done.
type EnforceCounts struct {
	// Operations and Constraints are those that were enforced; Waited are the
	// operations, and Stalled the constraints, for which a thread was held.
	Operations  uint64 `json:"operations"`
	Waited      uint64 `json:"waited"`
	Constraints uint64 `json:"constraints"`
	Stalled     uint64 `json:"stalled"`
	// Slots are the instructions that were executed while their thread's
	// instrumentation was on (RelayCosts.SlotCall each).
	Slots uint64 `json:"slots"`
	// Answered are system calls that were not carried out, Skipped the waits at
	// barriers and sleeps that were left out.
	Answered uint64 `json:"answered"`
	Skipped  uint64 `json:"skipped"`
	// Flipped are loose constraints whose second point came before their first.
	Flipped uint64 `json:"flipped,omitempty"`
}

// follower is a thread of the schedule.
type follower struct {
	id   event.ThreadID // NoThread before it starts, and after it has ended
	gone bool
	done int // operations that it has behind it
	// held tells that it is held at place, waiting for a constraint, or for one of
	// forTurn, forHelp and forGood.
	held    bool
	place   Place
	waiting int
	blocked bool // in the kernel
	waits   bool // within an operation whose end has not had its turn
	handles bool // it was woken for a signal, and goes on in the handler
	helped  int  // the position of the operation that it last ran for
	// total is what the thread had retired when it was last asked about, base
	// what behind its last operation. actions are how many of its instructions
	// with actions are behind it.
	total, base uint64
	actions     int
	issued      event.Cycles // when it made the system call that it is at
	given       []uint64     // the arguments of that, for schedules for other inputs
	heap        bool         // it is in a function of an allocator, for those, too
	allocations int64        // calls of malloc and its kin behind its last operation, for others
	arrivals    arrivals
}

// NewEnforcer makes the controller of a run that has not begun.
func NewEnforcer(s *event.Schedule, o EnforceOptions) *Enforcer {
	return NewPlan(s, o.SyncOnly).Enforcer(o)
}

// Enforcer is NewEnforcer of a schedule that was made ready, with or without constraints
// as the options say.
func (p *Plan) Enforcer(o EnforceOptions) *Enforcer {
	e := &Enforcer{
		plan: p, o: o, threads: make([]follower, len(p.s.Threads)), posted: make([]bool, len(p.s.Constraints)),
		bound: map[event.ObjectID]event.Addr{}, helper: -1,
	}
	for i := range e.threads {
		e.threads[i] = follower{id: event.NoThread, waiting: forTurn, helped: -1}
	}
	return e
}

// Why is why the schedule is not followed any more, or empty; position is that of
// the operation that was next.
func (e *Enforcer) Why() (why string, position int) {
	if e.alone {
		return "", e.place
	}
	return e.left, e.place
}

// Short says what of the schedule is missing in a run that has ended.
func (e *Enforcer) Short() (why string, position int) {
	if e.next >= e.plan.alone {
		return "", e.next
	}
	return "the run has ended; next is " + e.missing(), e.next
}

// Counts is what was done so far.
func (e *Enforcer) Counts() EnforceCounts { return e.counts }

// Complete tells whether the schedule was followed to its end, as far as it had to be.
func (e *Enforcer) Complete() bool { return (e.left == "" || e.alone) && e.next >= e.plan.alone }

// mayLeave tells whether the one thread that is left need not follow the schedule.
func (e *Enforcer) mayLeave() bool {
	return e.plan.alone < len(e.plan.s.Operations) && e.next >= e.plan.alone
}

// leave gives up the schedule, and lets everybody go. A thread that is alone may.
func (e *Enforcer) leave(g *Gate, format string, args ...any) {
	if e.left != "" {
		return
	}
	e.left, e.place = fmt.Sprintf(format, args...), e.next
	e.alone = e.mayLeave()
	verdict := Ended
	if e.o.Free || e.alone {
		verdict = GaveUp
	}
	g.GiveUp(verdict)
}

// strict takes back that a thread is alone: another has come.
func (e *Enforcer) strict(g *Gate) {
	if e.alone && !e.o.Free {
		g.GiveUp(Ended)
	}
	e.alone = false
}

// Ask implements Controller.
func (e *Enforcer) Ask(g *Gate, v *Visit) bool {
	e.now = max(e.now, v.Now)
	if e.left != "" && !e.alone {
		return true
	}
	n, ok := e.number(v)
	if !ok {
		e.leave(g, "thread %s is not in the schedule", v.Name)
		e.strict(g)
	}
	if e.left != "" {
		return true
	}
	e.threads[n].total = v.Instructions
	if e.Reached(g, v.Thread, v.Instructions); e.left != "" {
		return true
	}
	switch v.Place {
	case AtStart:
		return e.start(g, n)
	case AtEnter:
		return e.enter(g, n, v)
	case AtReturn:
		return e.returned(g, n, v)
	case AtWake:
		return e.wake(g, n, v)
	case AtCall:
		return e.call(g, n, v)
	case AtInstruction:
		return e.instruction(g, n, v)
	case AtAddress:
		return e.arrived(g, n, v)
	}
	return true
}

// find returns the number of a thread.
func (e *Enforcer) find(id event.ThreadID) (int, bool) { return e.numbers.Get(id) }

// number finds a thread by its name.
func (e *Enforcer) number(v *Visit) (int, bool) {
	if n, ok := e.find(v.Thread); ok && e.plan.s.Threads[n] == v.Name {
		return n, true
	}
	n, ok := e.plan.names[v.Name]
	if !ok {
		return 0, false
	}
	t := &e.threads[n]
	if t.id != v.Thread {
		e.numbers.Delete(t.id)
		t.id, t.gone = v.Thread, false
		e.numbers.Put(v.Thread, n)
	}
	return n, true
}
