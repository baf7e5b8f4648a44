package minimize

import (
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// How says how a slice ended.
type How uint8

// Ends of slices: at its budget; by a PAUSE; by sched_yield; by another system
// call, a fault or whatever else the thread did.
const (
	AtBudget How = iota
	AtPause
	AtYield
	AtAction
)

// Progress is a thread's way through its program. It counts instructions, but not
// those of rounds in which the thread only looks whether it may go on: a round
// from a PAUSE to the next PAUSE at the same place that is the shortest there is.
// One more such round is taken off where a thread comes to the PAUSE for the first
// time: it would not have gone round if it had not had to wait. Places in a
// thread's execution are therefore the same whether it has waited for long or not
// at all, and a thread that has made a round of waiting is known to wait.
//
// A loop that gives the processor away by sched_yield counts in the same way.
type Progress struct {
	at      uint64
	reached uint64 // at, before anything was taken off at the last slice's end
	acted   bool   // the last slice was ended by the thread
	inside  uint8  // accesses of the next instruction that are done
	refused bool   // the last slice was to end inside the next instruction, and did not
	waits   bool   // the last round was one of waiting

	round   uint64 // at, at the begin of the round
	from    event.Addr
	paused  bool // the round began with a PAUSE
	yielded bool // there was a sched_yield in it
}

// place identifies a kind of rounds.
type place struct {
	pc      event.Addr
	yielded bool
}

// Waits is what is known of rounds of waiting: the least length of each kind.
type Waits map[place]uint64

// learn notes a round and tells whether it was one of waiting. The first of its
// kind is none, for all that is known.
func (w Waits) learn(p place, length uint64) bool {
	least, known := w[p]
	if !known || length < least {
		w[p] = length
	}
	return known && length <= least
}

// Tracker watches a run and tells its schedule. It is plain data.
type Tracker struct {
	threads map[event.ThreadID]*Progress // for look-up only
	waits   Waits
	done    Schedule
	all     bool // see CountAll
}

// NewTracker makes the tracker of a run that has not begun. What is known of
// waiting can come from another tracker of the same program, and is copied.
func NewTracker(known Waits) *Tracker {
	waits := maps.Clone(known)
	if waits == nil {
		waits = Waits{}
	}
	return &Tracker{threads: map[event.ThreadID]*Progress{}, waits: waits}
}

// CountAll has rounds of waiting count as all instructions do. Places are those of the recorded
// run then, and move where a thread waits for longer or not at all.
func (t *Tracker) CountAll() { t.all = true }

// Waits is what is known of waiting.
func (t *Tracker) Waits() Waits { return t.waits }

// Schedule is the schedule so far.
func (t *Tracker) Schedule() Schedule { return t.done }

// thread returns the progress of a thread.
func (t *Tracker) thread(id event.ThreadID) *Progress {
	p := t.threads[id]
	if p == nil {
		p = &Progress{}
		t.threads[id] = p
	}
	return p
}

// Begin tells of a slice: who runs where, which stores of others are held back
// though they could be committed, which wait behind those, oldest first, and
// whether stores of others were committed since the slice before.
func (t *Tracker) Begin(thread event.ThreadID, core event.CoreID, hold, behind []Hold, committed bool) {
	p := t.thread(thread)
	p.fresh()
	if n := len(t.done); n > 0 {
		if s := &t.done[n-1]; s.Thread == thread && s.Core == core && !committed {
			return
		}
	}
	t.done = append(t.done, Step{
		Thread: thread, Core: core, To: p.at, Acts: true, Hold: slices.Clone(hold), Behind: slices.Clone(behind),
	})
}

// fresh forgets what came of the slices before.
func (p *Progress) fresh() { p.waits, p.reached = false, p.at }

// Ended takes in how the slice ended: before which instruction, after how many, and how many
// accesses of the next are done.
func (t *Tracker) Ended(how How, pc event.Addr, instructions uint64, inside uint8) {
	s := &t.done[len(t.done)-1]
	p := t.thread(s.Thread)
	p.at += instructions
	p.reached, p.acted, p.inside = p.at, how != AtBudget, inside
	s.endAt(&Step{To: p.at, Acts: p.acted, Inside: inside})
	s.PC = pc
	switch {
	case how == AtYield && p.paused:
		p.yielded = true
	case how == AtYield || how == AtPause:
		t.newRound(p, pc, how == AtPause)
	}
}

// Paused tells of a PAUSE that did not end the slice: where, and after how many
// instructions since the slice's begin or the PAUSE before it.
func (t *Tracker) Paused(pc event.Addr, instructions uint64) {
	t.Ended(AtPause, pc, instructions, 0)
	t.thread(t.done[len(t.done)-1].Thread).fresh()
}

// newRound ends a round and begins the next.
func (t *Tracker) newRound(p *Progress, pc event.Addr, paused bool) {
	length := p.at - p.round
	switch {
	case t.all:
	case p.from != pc:
		// The first time, unless it is not known to be a place to wait at.
		p.at -= min(length, t.waits[place{pc, false}])
	case t.waits.learn(place{pc, p.yielded}, length):
		p.at, p.waits = p.round, true
	}
	p.round, p.from, p.paused, p.yielded = p.at, pc, paused, false
}
