package minimize

import (
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// How is the way in which a quantum ended.
type How uint8

// Ends of quanta: at the budget; by a PAUSE; by sched_yield; by another system call, a fault or any
// other act of the thread.
const (
	AtBudget How = iota
	AtPause
	AtYield
	AtAction
)

// Progress is a thread's way through its program. It counts instructions, but not those of rounds
// in which the thread only checks whether it may continue: a round from a PAUSE to the next PAUSE
// at the same place that is the shortest there is. One more such round is subtracted where a thread
// reaches the PAUSE for the first time: it would not have executed the round without having to
// wait. Places in a thread's execution are therefore the same whether it has waited for long or not
// at all, and a thread that has made a round of waiting is known to wait.
//
// A loop that yields by sched_yield counts in the same way.
type Progress struct {
	at      uint64
	reached uint64 // at, before anything was subtracted at the end of the last quantum
	acted   bool   // the last quantum was ended by the thread
	inside  uint8  // accesses of the next instruction that are done
	refused bool   // the last quantum was to end inside the next instruction, and did not
	waits   bool   // the last round was one of waiting

	round   uint64 // at, at the start of the round
	from    arch.Addr
	paused  bool // the round began with a PAUSE
	yielded bool // there was a sched_yield in it
}

// roundKind identifies a kind of rounds.
type roundKind struct {
	pc      arch.Addr
	yielded bool
}

// Waits is the known waiting: the least length of each kind of round.
type Waits map[roundKind]uint64

// learnRound records a round and reports whether the thread waited in it. The first of its kind
// does not count as waiting.
func (w Waits) learnRound(p roundKind, length uint64) bool {
	least, known := w[p]
	if !known || length < least {
		w[p] = length
	}
	return known && length <= least
}

// Tracker watches a run and writes down its schedule. It is plain data.
type Tracker struct {
	threads map[arch.ThreadID]*Progress // for look-up only
	waits   Waits
	done    Schedule
	all     bool // see CountAll
}

// NewTracker makes the tracker of a run that has not begun. The known waiting may be that of
// another tracker of the same program, and is copied.
func NewTracker(known Waits) *Tracker {
	waits := maps.Clone(known)
	if waits == nil {
		waits = Waits{}
	}
	return &Tracker{threads: map[arch.ThreadID]*Progress{}, waits: waits}
}

// CountAll has rounds of waiting count as all instructions do. Places are those of the recorded
// run then, and move where a thread waits for longer or not at all.
func (t *Tracker) CountAll() { t.all = true }

// Waits returns the known waiting.
func (t *Tracker) Waits() Waits { return t.waits }

// Schedule is the schedule so far.
func (t *Tracker) Schedule() Schedule { return t.done }

// progressOf returns the progress of a thread.
func (t *Tracker) progressOf(id arch.ThreadID) *Progress {
	p := t.threads[id]
	if p == nil {
		p = &Progress{}
		t.threads[id] = p
	}
	return p
}

// Begin is called at the start of a quantum, with its thread and core, the stores of others that
// are held back although they could be committed, the stores that wait because of them, oldest
// first, and whether stores of others were committed since the quantum before.
func (t *Tracker) Begin(thread arch.ThreadID, core arch.CoreID, hold, waiting []Hold, committed bool) {
	p := t.progressOf(thread)
	p.forgetWait()
	if n := len(t.done); n > 0 {
		if s := &t.done[n-1]; s.Thread == thread && s.Core == core && !committed {
			return
		}
	}
	t.done = append(t.done, Step{
		Thread: thread, Core: core, To: p.at, Acts: true, Hold: slices.Clone(hold), Waiting: slices.Clone(waiting),
	})
}

// forgetWait forgets the results of the quanta before.
func (p *Progress) forgetWait() { p.waits, p.reached = false, p.at }

// Ended is called at the end of a quantum: before the instruction at pc, after a number of
// instructions, and after a number of accesses of the next one.
func (t *Tracker) Ended(how How, pc arch.Addr, instructions uint64, inside uint8) {
	s := &t.done[len(t.done)-1]
	p := t.progressOf(s.Thread)
	p.at += instructions
	p.reached, p.acted, p.inside = p.at, how != AtBudget, inside
	s.setEnd(&Step{To: p.at, Acts: p.acted, Inside: inside})
	s.PC = pc
	switch {
	case how == AtYield && p.paused:
		p.yielded = true
	case how == AtYield || how == AtPause:
		t.startRound(p, pc, how == AtPause)
	}
}

// Paused is called for a PAUSE that did not end the quantum: its place, and the number of
// instructions since the start of the quantum or the PAUSE before it.
func (t *Tracker) Paused(pc arch.Addr, instructions uint64) {
	t.Ended(AtPause, pc, instructions, 0)
	t.progressOf(t.done[len(t.done)-1].Thread).forgetWait()
}

// startRound ends a round and begins the next.
func (t *Tracker) startRound(p *Progress, pc arch.Addr, paused bool) {
	length := p.at - p.round
	switch {
	case t.all:
	case p.from != pc:
		// The first time, unless it is not known to be a place to wait at.
		p.at -= min(length, t.waits[roundKind{pc, false}])
	case t.waits.learnRound(roundKind{pc, p.yielded}, length):
		p.at, p.waits = p.round, true
	}
	p.round, p.from, p.paused, p.yielded = p.at, pc, paused, false
}
