// Package enforce makes a run follow a recorded hybrid schedule: a total order of synchronization
// operations and system calls, with constraints between single instructions where threads race
// (PEREGRINE, SOSP 2011; TERN, OSDI 2010).
//
// A Plan is a schedule made ready for any number of runs; an Enforcer is the sched.Controller of one
// run. Its invariants are in its comment.
package enforce

import (
	"fmt"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/nearmap"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// The forms of relay, as Options.Relay takes them (PEREGRINE section 3.2).
const (
	// SemaphoreRelay wakes the next thread by its semaphore.
	SemaphoreRelay = "semaphore"
	// FlagRelay lets threads spin on a flag.
	FlagRelay = "flag"
)

// RelayCosts are the costs of enforcement in virtual time; arch.Costs explains each one.
type RelayCosts struct {
	Sync, SemaphoreWait, SemaphoreWake, SpinCheck, BranchCount, SlotCheck, SlotCall arch.Cycles
}

// Options say how a schedule is enforced.
type Options struct {
	// Relay is "semaphore" or "flag"; empty means "semaphore".
	Relay string
	// Runs has a thread pass the turn on only after the last of the operations that it executes one after the
	// other in the schedule, and count its arrivals at an instruction down in its own memory, or its branches where
	// they are cheaper to count, up to the call of slot() for the constraint there. Otherwise each operation waits for the turn and passes it on, and each
	// arrival calls slot(), as in PEREGRINE.
	Runs bool
	// SkipWait leaves out waits at barriers, and sleeps: the order holds without.
	SkipWait bool
	// SyncOnly leaves out the constraints.
	SyncOnly bool
	// BreakOut is how many cycles may pass without the next event of the schedule
	// until it is left, as in TERN (section 5.4); 0: any number.
	BreakOut arch.Cycles
	// Free lets the run continue without the schedule after it is left; otherwise the run is
	// stopped.
	Free bool
	// Loose are the numbers of constraints that are only watched: Counts.Flipped reports whether
	// they held without enforcement.
	Loose []int
	Costs RelayCosts
}

// Validate returns the first invalid option as a *FieldError.
func (o Options) Validate() error {
	if o.Relay == "" {
		return nil
	}
	if err := sched.CheckOneOf("relay", o.Relay, []string{SemaphoreRelay, FlagRelay}); err != nil {
		return err
	}
	return nil
}

// Enforcer is the Controller that makes a run follow a schedule.
//
// Operations happen one at a time, in the schedule's order: a thread that reaches an operation is
// held until all operations before it are done. The part of a wait before the thread blocks is an
// operation of its own, and so is the rest: the thread continues from its wait when it is the turn
// of that operation, not when it is woken. A lock that is taken in the schedule's order is free; an
// operation times out if it did so in the recorded run. Calls that wait for a futex, sleep or read
// the clock return their recorded results.
//
// Invariants:
//
//  1. The instructions of a thread before its operation at position p come before the instructions
//     of any thread after an operation at a later position.
//  2. Unless constraints are left out, the first instruction of each is executed before the second.
//  3. While the schedule is followed, the results of operations and the threads' instructions
//     depend on the schedule and the program alone, if the program's other accesses do not race and
//     it reads no cycle counter.
//  4. A schedule for other inputs may be left where one thread is alone, since the others have been
//     joined: that is no deviation.
//  5. Enforcement never waits forever: when nothing can run, or no event of the schedule has
//     happened for BreakOut cycles, the schedule is left, with a message that names the first
//     operation that does not match or did not happen.
type Enforcer struct {
	sched.Pass
	plan *Plan
	o    Options

	next    int  // the position whose turn it is
	acting  bool // the operation there is under way
	helper  int  // the thread that runs for the sake of that, or -1
	since   arch.Cycles
	now     arch.Cycles
	threads []threadProgress
	numbers nearmap.Map[arch.ThreadID, int]
	posted  []bool
	ago     uint64                       // the number of instructions between the point that is posted and the end of the quantum
	bound   map[event.ObjectID]arch.Addr // where the objects of the schedule are
	left    string                       // why the schedule was left, if it was
	alone   bool                         // it was left by a thread that was alone
	place   int                          // where
	counts  Counts
}

// Needs implements Controller. A portable schedule has its constraints at addresses, and may leave
// out the operations of allocators.
func (e *Enforcer) Needs() sched.Needs {
	n := sched.Needs{Signals: true, Stops: true}
	if s := e.plan.s; s.Portable {
		n.Allocations, n.Addresses = s.Allocators, e.addresses()
	} else {
		n.SchedulePoints, n.StopPoints = s.Allocators, e.plan.frequentStops()
	}
	return n
}

// Observe implements Controller.
func (e *Enforcer) Observe(g *sched.Gate, x sched.ThreadEvent) {
	switch x.Kind {
	case sched.SignalDelivered:
		e.noteSignal(g, x.Signal)
	case sched.AllocatorEntered, sched.AllocatorLeft:
		e.noteAllocator(x.Thread, x.Kind == sched.AllocatorEntered)
	case sched.QuantumEnded:
		e.passActionsUntil(g, x.Thread, x.Instructions)
	}
}

// Counts is the work of an Enforcer.
type Counts struct {
	// Operations and Constraints are the numbers that were enforced; Waited and Stalled are the
	// numbers of operations and constraints for which a thread was held.
	Operations  uint64 `json:"operations"`
	Waited      uint64 `json:"waited"`
	Constraints uint64 `json:"constraints"`
	Stalled     uint64 `json:"stalled"`
	// Slots are the calls of slot() by the threads' instrumentation (RelayCosts.SlotCall each).
	Slots uint64 `json:"slots"`
	// Answered are system calls that were not carried out, Skipped the waits at
	// barriers and sleeps that were left out.
	Answered uint64 `json:"answered"`
	Skipped  uint64 `json:"skipped"`
	// Flipped are loose constraints whose second point came before their first.
	Flipped uint64 `json:"flipped,omitempty"`
}

// threadProgress is a thread of the schedule.
type threadProgress struct {
	id   arch.ThreadID // NoThread before it starts, and after it has ended
	gone bool
	done int // operations that it has completed
	// held reports that it is held at place, waiting for a constraint, or for one of forTurn,
	// forHelp and forGood.
	held    bool
	place   sched.PointKind
	waiting int
	blocked bool // in the kernel
	waits   bool // within an operation whose end has not had its turn
	handles bool // it was woken for a signal, and continues in the handler
	// entered is the call of an operation that the thread has reached, too, while it is held at the end of another:
	// one that it has left without returning, such as a wait that was canceled.
	entered *event.Sync
	helped  int // the position of the operation that it last ran for
	// total is the number of instructions that the thread had retired when the controller was last
	// asked about it, and base the number after its last operation. actions is the number of its
	// actions that are done.
	total, base uint64
	actions     int
	issued      arch.Cycles // when it made the system call that it is at
	given       []uint64    // the arguments of that, for schedules for other inputs
	heap        bool        // it is in a function of an allocator, for those, too
	allocations int64       // calls of malloc and its kin since its last operation, for schedules for other inputs
	arrivals    arrivals
}

// New makes the controller of a run that has not begun.
func New(s *event.Schedule, o Options) *Enforcer {
	return NewPlan(s, o.SyncOnly).Enforcer(o)
}

// Enforcer is New of a schedule that was made ready, with or without constraints
// as the options say.
func (p *Plan) Enforcer(o Options) *Enforcer {
	e := &Enforcer{
		plan: p, o: o, threads: make([]threadProgress, len(p.s.Threads)), posted: make([]bool, len(p.s.Constraints)),
		bound: map[event.ObjectID]arch.Addr{}, helper: -1,
	}
	for i := range e.threads {
		e.threads[i] = threadProgress{id: arch.NoThread, waiting: forTurn, helped: -1}
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

// Short describes the first operation of the schedule that did not happen in a run that has ended.
func (e *Enforcer) Short() (why string, position int) {
	if e.next >= e.plan.alone {
		return "", e.next
	}
	return "the run has ended; next is " + e.describeMissing(), e.next
}

// Counts returns the counts since the start of the run.
func (e *Enforcer) Counts() Counts { return e.counts }

// Complete reports whether the schedule was followed to its end, or to where the last thread may
// leave it.
func (e *Enforcer) Complete() bool { return (e.left == "" || e.alone) && e.next >= e.plan.alone }

// mayLeave reports whether the one thread that remains need not follow the schedule.
func (e *Enforcer) mayLeave() bool {
	return e.plan.alone < len(e.plan.s.Operations) && e.next >= e.plan.alone
}

// leaveSchedule gives up the schedule, and lets everybody go. A thread that is alone may.
func (e *Enforcer) leaveSchedule(g *sched.Gate, format string, args ...any) {
	if e.left != "" {
		return
	}
	e.left, e.place = fmt.Sprintf(format, args...), e.next
	e.alone = e.mayLeave()
	verdict := sched.Ended
	if e.o.Free || e.alone {
		verdict = sched.GaveUp
	}
	g.GiveUp(verdict)
}

// revokeAlone takes back that a thread is alone: another has come.
func (e *Enforcer) revokeAlone(g *sched.Gate) {
	if e.alone && !e.o.Free {
		g.GiveUp(sched.Ended)
	}
	e.alone = false
}

// Ask implements Controller.
func (e *Enforcer) Ask(g *sched.Gate, v *sched.SyncPoint) bool {
	e.now = max(e.now, v.Now)
	if e.left != "" && !e.alone {
		return true
	}
	n, ok := e.resolveThread(v)
	if !ok {
		e.leaveSchedule(g, "thread %s is not in the schedule", v.Name)
		e.revokeAlone(g)
	}
	if e.left != "" {
		return true
	}
	e.threads[n].total = v.Instructions
	if e.passActionsUntil(g, v.Thread, v.Instructions); e.left != "" {
		return true
	}
	switch v.Kind {
	case sched.AtStart:
		return e.startThread(g, n)
	case sched.AtEnter:
		return e.enterOperation(g, n, v)
	case sched.AtReturn:
		return e.returnFromOperation(g, n, v)
	case sched.AtWake:
		return e.continueAfterWait(g, n, v)
	case sched.AtCall:
		return e.requestCall(g, n, v)
	case sched.AtInstruction:
		return e.reachInstruction(g, n, v)
	case sched.AtAddress:
		return e.countArrival(g, n, v)
	}
	return true
}

// numberOf returns the number of a thread.
func (e *Enforcer) numberOf(id arch.ThreadID) (int, bool) { return e.numbers.Get(id) }

// resolveThread finds a thread by its name.
func (e *Enforcer) resolveThread(v *sched.SyncPoint) (int, bool) {
	if n, ok := e.numberOf(v.Thread); ok && e.plan.s.Threads[n] == v.Name {
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
		t.total, t.base = 0, 0 // execve(2) may have given it another id, with new counts
		e.numbers.Put(v.Thread, n)
	}
	return n, true
}
