package sched

import (
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Place says where a thread is that a Controller is asked about.
type Place uint8

const (
	// AtStart is before the first instruction of a new thread.
	AtStart Place = iota
	// AtEnter is before the first instruction of a synchronization operation:
	// Visit.Sync is its begin.
	AtEnter
	// AtWake is where a thread goes on that has waited in the kernel, in an
	// operation (Visit.Inside) or in a system call.
	AtWake
	// AtReturn is behind an operation: Visit.Sync is its Return or Unwound.
	AtReturn
	// AtCall is a system call, Visit.Call, that was issued outside of
	// operations and not carried out yet.
	AtCall
	// AtBudget is where the thread has run as many instructions as
	// Controller.Budget allowed.
	AtBudget
	// AtInstruction is where a Stopper wants the thread to stop.
	AtInstruction
	// AtAddress is at an instruction that an Arriver wants to know of. It may be
	// asked about several times without the thread having gone on.
	AtAddress
	// AtAtomic is before an atomic instruction outside of operations, for an
	// AtomicController. Visit.Own tells that it is the C library's.
	AtAtomic
)

func (p Place) String() string {
	return [...]string{"start", "enter", "wake", "return", "call", "budget", "instruction", "address", "atomic"}[p]
}

// Visit is a thread at a place.
type Visit struct {
	Thread event.ThreadID
	// Name is the thread's name, which depends on no interleaving ("1.2").
	Name  string
	Place Place
	// Sync and Call say more of some places, and are valid during the call only.
	Sync *event.Sync
	Call *event.Syscall
	// Own tells of a system call that is none to other threads: about the thread
	// itself, the clock or memory, or for a futex of the C library's own locks.
	Own bool
	// Exits tells of an atomic instruction that may be the one by which the thread says
	// that it exits.
	Exits bool
	// Inside tells that the thread is in an operation.
	Inside bool
	// Now is the time of the thread's core, and Instructions what the thread has
	// retired so far.
	Now          event.Cycles
	Instructions uint64
	// Accesses is how many accesses of the next instruction it has done, AtInstruction.
	Accesses uint8
	PC       event.Addr // of AtInstruction and AtAddress
}

// A Controller decides when threads pass the places of their synchronization:
// it is what a DMT algorithm, or the enforcement of a schedule, is made of. The
// machine asks it wherever a thread comes by, and tells it what becomes of those
// that went on. A thread that may not go on is held: it is off its core until
// Gate.Release.
//
// Its state must be plain data that a deep copy can copy, and its answers must
// depend on nothing but what it was told. Pass has an answer for everything, for
// embedding.
//
// Of one thread the calls come in this order: Ask(AtStart), and then again and
// again one of
//
//	Ask(AtEnter) ... Ask(AtReturn)   operations; nested in a once routine
//	Ask(AtCall), Called              system calls outside of operations
//	Ask(AtBudget), Ask(AtInstruction)
//	Ask(AtAtomic), Atomic            if it is an AtomicController
//
// with Blocked and Ask(AtWake) in between when it waits in the kernel, and at
// last Exited. A place is asked about once; a thread that was held there goes on
// when it is released, without being asked again.
type Controller interface {
	// Ask tells whether the thread may go on now.
	Ask(g *Gate, v *Visit) bool
	// Called tells that the system call of the last Ask(AtCall) is done.
	Called(g *Gate, t event.ThreadID, result uint64)
	// Blocked tells that a thread waits in the kernel, in an operation if inside.
	Blocked(g *Gate, t event.ThreadID, inside bool)
	// Woken tells that what a thread waited for has come, or may have: Ask(AtWake)
	// follows when it has a core.
	Woken(g *Gate, t event.ThreadID)
	// Exited tells that a thread, held or not, is gone.
	Exited(g *Gate, t event.ThreadID)
	// Stepped tells that a slice of a thread is over, which retired so many
	// instructions, or that a timer fired (NoThread, 0). Now is the time of the
	// core, or of the timer.
	Stepped(g *Gate, t event.ThreadID, instructions uint64, now event.Cycles)
	// Budget is how many instructions a thread that is about to run may run at
	// most before AtBudget; 0: any number.
	Budget(t event.ThreadID) uint64
	// Stuck tells that no thread can run and that some are held. If it releases
	// none, the run is over: a deadlock.
	Stuck(g *Gate)
}

// SignalController is a Controller that says when threads get signals (Deliver):
// those that have a handler or kill, and that no instruction of the thread itself
// has caused.
type SignalController interface {
	// Signalled tells that a thread gets a signal, of whichever kind. The event is
	// valid during the call only.
	Signalled(g *Gate, e *event.Signal)
}

// SignalKeeper is a Controller of a run in which threads get no such signal in the
// middle of an operation, but when they wait in it.
type SignalKeeper interface{ KeepsSignals() }

// HandlerController is a Controller that is told of the ends of handlers, and not asked
// about the system call with which they end.
type HandlerController interface {
	// Handled tells that a thread that has retired so many instructions has come out of
	// its handler.
	Handled(t event.ThreadID, instructions uint64)
}

// KillController is a Controller that is told when a thread sends a signal to another
// within an operation.
type KillController interface{ Kills(t event.ThreadID) }

// SignalHolder is a Controller of whose threads some get no such signal at all, unless
// by Deliver.
type SignalHolder interface {
	// HoldsSignals tells whether a thread that is about to run is one of them.
	HoldsSignals(t event.ThreadID) bool
}

// AtomicController is a Controller that is asked before each atomic instruction
// outside of operations (AtAtomic), and told behind it.
type AtomicController interface {
	Atomic(g *Gate, e *event.Sync)
}

// Pauser is a Controller that keeps threads from running where they are.
type Pauser interface {
	// May tells whether a thread that is about to run, and has retired so many
	// instructions, may. If not, it is held.
	May(t event.ThreadID, instructions uint64) bool
}

// Pass is a Controller that lets every thread go on.
type Pass struct{}

// Ask implements Controller, and so do the other methods.
func (Pass) Ask(*Gate, *Visit) bool                              { return true }
func (Pass) Called(*Gate, event.ThreadID, uint64)                {}
func (Pass) Blocked(*Gate, event.ThreadID, bool)                 {}
func (Pass) Woken(*Gate, event.ThreadID)                         {}
func (Pass) Exited(*Gate, event.ThreadID)                        {}
func (Pass) Stepped(*Gate, event.ThreadID, uint64, event.Cycles) {}
func (Pass) Budget(event.ThreadID) uint64                        { return 0 }
func (Pass) Stuck(*Gate)                                         {}

// Gate is where threads are held, and what a Controller can do besides
// answering. It is plain data, for one goroutine.
type Gate struct {
	held     []event.ThreadID // in the order in which they came
	released []Release
	effects  []Effect
	charge   event.Cycles
	after    event.Cycles // HoldFor
	cut      bool
	verdict  GateVerdict
	counts   GateCounts
}

// GateVerdict says whether a controller is at its end.
type GateVerdict uint8

const (
	// Controlling is the usual state. GaveUp tells that the controller lets all
	// threads go on from now on, Ended that the run is to end.
	Controlling GateVerdict = iota
	GaveUp
	Ended
)

// GateCounts is what a gate has seen: how often threads were asked about, held
// and released, and what that has cost.
type GateCounts struct {
	Asked    uint64       `json:"asked"`
	Held     uint64       `json:"held"`
	Released uint64       `json:"released"`
	Charged  event.Cycles `json:"charged"`
	Delayed  event.Cycles `json:"delayed"`
}

// Release is a thread that goes on, Delay after the one that released it ended
// its slice, which it does at once, or Delay after that was Ago instructions before
// the end of its slice and had been charged Paid.
type Release struct {
	Thread event.ThreadID
	Delay  event.Cycles
	Ago    uint64
	Paid   event.Cycles
}

// EffectKind is something that becomes of a thread besides going on.
type EffectKind uint8

const (
	// Answer gives the system call of a thread that is at AtCall a result instead
	// of carrying it out.
	Answer EffectKind = iota + 1
	// Leave makes a thread that is at AtEnter return from the operation at once,
	// with a result.
	Leave
	// Expire makes what a thread waits for in the kernel time out, and Rouse ends
	// the wait as if it had come.
	Expire
	Rouse
	// Deliver gives the thread the signal whose siginfo_t is Writes[0].Data.
	Deliver
	// Overwrite writes to the thread's memory.
	Overwrite
)

// Effect is an EffectKind with the thread and the result.
type Effect struct {
	Kind   EffectKind
	Thread event.ThreadID
	Result uint64
	Writes []event.Write // what the system call leaves in memory (Answer)
}

// Release lets a thread go on that is held; it does nothing to any other. Delay
// is how long the wake-up takes.
func (g *Gate) Release(t event.ThreadID, delay event.Cycles) { g.ReleaseAgo(t, delay, 0) }

// ReleaseAgo is Release by a thread at the end of its slice, for what it did so many
// instructions before.
func (g *Gate) ReleaseAgo(t event.ThreadID, delay event.Cycles, ago uint64) {
	i := slices.Index(g.held, t)
	if i < 0 {
		return
	}
	g.held = slices.Delete(g.held, i, i+1)
	g.released = append(g.released, Release{t, delay, ago, g.charge})
	g.counts.Released++
	g.counts.Delayed += delay
}

// Charge lets cycles pass on the core of the thread that acts.
func (g *Gate) Charge(c event.Cycles) {
	g.charge += c
	g.counts.Charged += c
}

// Affect has something become of a thread: at the place where it is asked about
// or held, or (Expire, Rouse, Deliver) where it waits in the kernel.
func (g *Gate) Affect(e Effect) { g.effects = append(g.effects, e) }

// HoldFor makes the thread that is being asked about, and may not go on, go on by
// itself after so many cycles.
func (g *Gate) HoldFor(delay event.Cycles) { g.after = delay }

// Cut ends the slice of the thread that acts, so that what bounds it is looked at
// anew.
func (g *Gate) Cut() { g.cut = true }

// GiveUp lets all threads go, and says what is to become of the run.
func (g *Gate) GiveUp(v GateVerdict) {
	for len(g.held) > 0 {
		g.Release(g.held[0], 0)
	}
	g.verdict, g.cut = v, true
}

// Verdict is what GiveUp said.
func (g *Gate) Verdict() GateVerdict { return g.verdict }

// Holds tells whether a thread is held, and Waiting how many are.
func (g *Gate) Holds(t event.ThreadID) bool { return slices.Contains(g.held, t) }

// Waiting is the number of threads that are held.
func (g *Gate) Waiting() int { return len(g.held) }

// Counts is what the gate has seen so far.
func (g *Gate) Counts() GateCounts { return g.counts }

// The rest is for the machine, which asks.

// Ask asks a controller about a thread, and holds it if it may not go on.
func (g *Gate) Ask(c Controller, v *Visit) bool {
	g.counts.Asked++
	g.after = 0
	if c.Ask(g, v) {
		return true
	}
	g.held = append(g.held, v.Thread)
	g.counts.Held++
	if g.after > 0 {
		g.Release(v.Thread, g.after)
	}
	return false
}

// Hold holds a thread that may not run.
func (g *Gate) Hold(t event.ThreadID) { g.held = append(g.held, t) }

// Forget notes that a thread is gone.
func (g *Gate) Forget(t event.ThreadID) {
	g.held = slices.DeleteFunc(g.held, func(h event.ThreadID) bool { return h == t })
	g.released = slices.DeleteFunc(g.released, func(r Release) bool { return r.Thread == t })
	g.effects = slices.DeleteFunc(g.effects, func(e Effect) bool { return e.Thread == t })
}

// Pending tells whether there is something to take that ends a slice. An Answer
// waits until its thread makes the call.
func (g *Gate) Pending() bool {
	return len(g.released) > 0 || g.cut ||
		slices.ContainsFunc(g.effects, func(e Effect) bool { return e.Kind != Answer })
}

// Take returns what was released and charged since the last call. The list is
// valid until the next release.
func (g *Gate) Take() (released []Release, charge event.Cycles) {
	released, charge = g.released, g.charge
	g.released, g.charge, g.cut = g.released[:0], 0, false
	return released, charge
}

// TakeEffect returns the next effect of one of the kinds on a thread, or on any
// (NoThread).
func (g *Gate) TakeEffect(t event.ThreadID, kinds ...EffectKind) (Effect, bool) {
	for i, e := range g.effects {
		if slices.Contains(kinds, e.Kind) && (t == event.NoThread || e.Thread == t) {
			g.effects = slices.Delete(g.effects, i, i+1)
			return e, true
		}
	}
	return Effect{}, false
}
