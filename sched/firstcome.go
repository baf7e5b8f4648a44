package sched

import (
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// FirstCome lets synchronization operations and system calls happen one at a
// time, in the order in which threads come to them, as TERN's first-come
// first-served recorder does (section 5.1): so the order in which they end is
// the order in which they took effect. While a thread is in one no other runs at
// all: what it accesses in there is between what others access before and after.
// A thread that waits, in the kernel or in a loop, lets others go first, and goes
// on in its operation when no other is in one.
type FirstCome struct {
	Pass
	busy  event.ThreadID // whose operation it is, or NoThread
	depth int            // operations that it is in: once routines have their own
	queue []event.ThreadID
	waits map[event.ThreadID]int // depths of those that wait
	ran   uint64                 // instructions of the one that is busy
	// apart are the threads that wait until nobody is busy.
	apart []event.ThreadID
	// schedules adds the places that schedules need.
	schedules bool
}

// NewFirstCome makes the controller of a run that has not begun.
func NewFirstCome() *FirstCome {
	return &FirstCome{busy: event.NoThread, waits: map[event.ThreadID]int{}}
}

// Ask implements Controller.
func (f *FirstCome) Ask(g *Gate, v *Visit) bool {
	switch v.Place {
	case AtStart:
		return f.May(v.Thread, v.Instructions) // a thread does not begin before it is made
	case AtEnter, AtCall, AtWake:
		if v.Place == AtWake && f.waits[v.Thread] == 0 {
			return true
		}
		return f.begin(v.Thread)
	case AtReturn:
		f.end(g, v.Thread)
	}
	return true
}

// Schedules implements ScheduleController.
func (f *FirstCome) Schedules() bool { return f.schedules }

// KeepsSignals implements SignalKeeper.
func (f *FirstCome) KeepsSignals() {}

// begin takes the turn, or queues for it.
func (f *FirstCome) begin(t event.ThreadID) bool {
	if f.busy != event.NoThread && f.busy != t {
		f.queue = append(f.queue, t)
		return false
	}
	f.take(t)
	return true
}

func (f *FirstCome) take(t event.ThreadID) {
	if f.busy != t {
		f.busy, f.depth, f.ran = t, 0, 0
	}
	if f.waits[t] > 0 {
		f.depth = f.waits[t]
		delete(f.waits, t)
		return
	}
	f.depth++
}

// end leaves an operation, and gives the turn away if it was the outermost.
func (f *FirstCome) end(g *Gate, t event.ThreadID) {
	if f.busy != t {
		if f.waits[t]--; f.waits[t] <= 0 {
			delete(f.waits, t) // it was in a loop
		}
		return
	}
	if f.depth--; f.depth == 0 {
		f.next(g)
	}
}

func (f *FirstCome) next(g *Gate) {
	f.busy = event.NoThread
	if len(f.queue) > 0 {
		t := f.queue[0]
		f.queue = f.queue[1:]
		f.take(t)
		g.Release(t, 0)
		return
	}
	for _, t := range f.apart {
		g.Release(t, 0)
	}
	f.apart = f.apart[:0]
}

// May implements Pauser.
func (f *FirstCome) May(t event.ThreadID, _ uint64) bool {
	if f.busy == event.NoThread || f.busy == t {
		return true
	}
	f.apart = append(f.apart, t)
	return false
}

// patience is how many instructions an operation takes at most that does not wait
// in a loop.
const patience = 100_000

// Stepped implements Controller.
func (f *FirstCome) Stepped(g *Gate, t event.ThreadID, instructions uint64, _ event.Cycles) {
	if t != f.busy || t == event.NoThread {
		return
	}
	if f.ran += instructions; f.ran > patience {
		f.waits[t] = f.depth
		f.next(g)
	}
}

// Called implements Controller.
func (f *FirstCome) Called(g *Gate, t event.ThreadID, _ uint64) {
	f.end(g, t)
}

// Blocked implements Controller.
func (f *FirstCome) Blocked(g *Gate, t event.ThreadID, _ bool) {
	if f.busy == t {
		f.waits[t] = f.depth
		f.next(g)
	}
}

// Exited implements Controller.
func (f *FirstCome) Exited(g *Gate, t event.ThreadID) {
	delete(f.waits, t)
	f.apart = slices.DeleteFunc(f.apart, func(a event.ThreadID) bool { return a == t })
	for i, q := range f.queue {
		if q == t {
			f.queue = append(f.queue[:i:i], f.queue[i+1:]...)
			break
		}
	}
	if f.busy == t {
		f.next(g)
	}
}
