package sched

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// A Gate holds threads, and carries the orders that a Controller gives besides answering. It is
// plain data, for one goroutine.
type Gate struct {
	held     []arch.ThreadID // in the order in which they were held
	released []Release
	effects  []Effect
	charged  arch.Cycles
	holdFor  arch.Cycles // HoldFor; 0: until Release
	cut      bool
	verdict  GateVerdict
	stalled  arch.ThreadID
	counts   GateCounts
}

// GateVerdict says whether a controller has finished.
type GateVerdict uint8

const (
	// Controlling is the usual state. With GaveUp the controller lets all threads continue from now
	// on; with Ended the run is to end; with Spinning it is to end because the thread of Stall can
	// never see that for which it waits.
	Controlling GateVerdict = iota
	GaveUp
	Ended
	Spinning
)

// GateCounts counts the work of a gate: how often a controller was asked, and how often threads were
// held and released; and the cycles that this has cost.
type GateCounts struct {
	Asked    uint64      `json:"asked"`
	Held     uint64      `json:"held"`
	Released uint64      `json:"released"`
	Charged  arch.Cycles `json:"charged"`
	Delayed  arch.Cycles `json:"delayed"`
}

// Release lets a thread continue Delay after the thread that released it ended its quantum, which it
// does at once. If Ago is not 0, the delay begins Ago instructions before the end of that quantum,
// when its thread had been charged Paid.
type Release struct {
	Thread arch.ThreadID
	Delay  arch.Cycles
	Ago    uint64
	Paid   arch.Cycles
}

// EffectKind is an effect that a controller has on a thread besides letting it continue.
type EffectKind uint8

const (
	// Answer gives the system call of a thread that is at AtCall a result instead of carrying it
	// out.
	Answer EffectKind = iota + 1
	// Leave makes a thread that is at AtEnter return from the operation at once, with a result.
	Leave
	// Expire ends a thread's wait in the kernel as if its time were up, and Rouse as if the event
	// that it waits for had happened.
	Expire
	Rouse
	// Detach takes a thread that waits for a futex off its queue: it waits for Expire or Rouse alone.
	Detach
	// Interrupt ends a thread's wait in a system call that fails with EINTR when a signal arrives.
	Interrupt
	// Deliver gives the thread the signal whose siginfo_t is Writes[0].Data.
	Deliver
	// Overwrite writes to the thread's memory.
	Overwrite
	// BeginView gives the thread a view of memory that does not change but by its own stores, and
	// CommitView makes those visible and ends the view (Needs.Views).
	BeginView
	CommitView
	// ShowTime has the guest's clocks, by which files get their time stamps, show the thread the time Result, in ns since
	// the start of the run, from its next system call on; 0: the actual time.
	ShowTime
)

// An Effect is an EffectKind with its thread and its data.
type Effect struct {
	Kind   EffectKind
	Thread arch.ThreadID
	Result uint64
	Writes []event.Write // the contents of memory after the system call (Answer), or as the kind says
}

// Release lets a held thread continue; it does nothing to any other. Delay is the time that the
// wake-up takes.
func (g *Gate) Release(t arch.ThreadID, delay arch.Cycles) { g.ReleaseAgo(t, delay, 0) }

// ReleaseAgo is Release by a thread at the end of its quantum, for an event the given number of
// instructions earlier.
func (g *Gate) ReleaseAgo(t arch.ThreadID, delay arch.Cycles, ago uint64) {
	i := slices.Index(g.held, t)
	if i < 0 {
		return
	}
	g.held = slices.Delete(g.held, i, i+1)
	g.released = append(g.released, Release{t, delay, ago, g.charged})
	g.counts.Released++
	g.counts.Delayed += delay
}

// Charge lets cycles pass on the core of the thread that acts.
func (g *Gate) Charge(c arch.Cycles) {
	g.charged += c
	g.counts.Charged += c
}

// Affect orders an effect on a thread: at the point where it is asked about or held, or (Expire,
// Rouse, Deliver) where it waits in the kernel.
func (g *Gate) Affect(e Effect) { g.effects = append(g.effects, e) }

// HoldFor makes the thread that is being asked about, and may not continue, continue by itself after
// a delay.
func (g *Gate) HoldFor(delay arch.Cycles) { g.holdFor = delay }

// Cut ends the quantum of the thread that acts, so that its limits are computed anew.
func (g *Gate) Cut() { g.cut = true }

// GiveUp releases all threads, and says how the run continues.
func (g *Gate) GiveUp(v GateVerdict) {
	for len(g.held) > 0 {
		g.Release(g.held[0], 0)
	}
	g.verdict, g.cut = v, true
}

// Stall ends the run: a thread that others wait for spins in its view of memory.
func (g *Gate) Stall(t arch.ThreadID) {
	g.stalled = t
	g.GiveUp(Spinning)
}

// Stalled returns the thread of Stall.
func (g *Gate) Stalled() arch.ThreadID { return g.stalled }

// Postpone lets a thread that was released continue later, or if it was not, charges the thread that
// acts.
func (g *Gate) Postpone(t arch.ThreadID, by arch.Cycles) {
	i := slices.IndexFunc(g.released, func(r Release) bool { return r.Thread == t })
	if i < 0 {
		g.Charge(by)
		return
	}
	g.released[i].Delay += by
	g.counts.Delayed += by
}

// Verdict returns the verdict of GiveUp.
func (g *Gate) Verdict() GateVerdict { return g.verdict }

// Holds reports whether a thread is held.
func (g *Gate) Holds(t arch.ThreadID) bool { return slices.Contains(g.held, t) }

// Waiting returns the number of threads that are held.
func (g *Gate) Waiting() int { return len(g.held) }

// Counts returns the counts since the start of the run.
func (g *Gate) Counts() GateCounts { return g.counts }

// The methods below are for the machine, which asks the controller and carries out its orders.

// Ask asks a controller about a thread, and holds the thread if it may not continue.
func (g *Gate) Ask(c Controller, v *SyncPoint) bool {
	g.counts.Asked++
	g.holdFor = 0
	if c.Ask(g, v) {
		return true
	}
	if !g.Holds(v.Thread) { // it may be at two points: it has left an operation by the call of another
		g.held = append(g.held, v.Thread)
	}
	g.counts.Held++
	if g.holdFor > 0 {
		g.Release(v.Thread, g.holdFor)
	}
	return false
}

// Hold holds a thread that may not run.
func (g *Gate) Hold(t arch.ThreadID) { g.held = append(g.held, t) }

// Forget removes a thread that has ended.
func (g *Gate) Forget(t arch.ThreadID) {
	g.held = slices.DeleteFunc(g.held, func(h arch.ThreadID) bool { return h == t })
	g.released = slices.DeleteFunc(g.released, func(r Release) bool { return r.Thread == t })
	g.effects = slices.DeleteFunc(g.effects, func(e Effect) bool { return e.Thread == t })
}

// Pending reports whether there are orders that end a quantum. An Answer does not: it waits until
// its thread makes the call.
func (g *Gate) Pending() bool {
	return len(g.released) > 0 || g.cut ||
		slices.ContainsFunc(g.effects, func(e Effect) bool { return e.Kind != Answer })
}

// Take returns the threads that were released and the cycles that were charged since the last call.
// The list is valid until the next release.
func (g *Gate) Take() (released []Release, charged arch.Cycles) {
	released, charged = g.released, g.charged
	g.released, g.charged, g.cut = g.released[:0], 0, false
	return released, charged
}

// TakeEffect returns the next effect of one of the kinds on a thread, or on any thread (NoThread).
func (g *Gate) TakeEffect(t arch.ThreadID, kinds ...EffectKind) (Effect, bool) {
	for i, e := range g.effects {
		if slices.Contains(kinds, e.Kind) && (t == arch.NoThread || e.Thread == t) {
			g.effects = slices.Delete(g.effects, i, i+1)
			return e, true
		}
	}
	return Effect{}, false
}
