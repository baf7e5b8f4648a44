package dmt

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched"
)

// FirstCome is the controller under which synchronization operations and system calls happen one at
// a time, in the order in which threads reach them, as under TERN's first-come first-served
// recorder (section 5.1); so they end in the order in which they took effect. While a thread is in
// an operation no other runs at all: its accesses there are not interleaved with others. A thread
// that waits, in the kernel or in a loop, lets others act first, and continues in its operation
// when no other thread is in one.
type FirstCome struct {
	sched.Pass
	busy  arch.ThreadID // whose operation it is, or NoThread
	depth int           // operations that it is in: once routines have their own
	queue []arch.ThreadID
	waits map[arch.ThreadID]int // depths of the threads that wait
	ran   uint64                // instructions of the one that is busy
	// apart are the threads that wait until no thread is busy.
	apart []arch.ThreadID
	// schedules adds the places that schedules need.
	schedules bool
}

// NewFirstCome makes the controller of a run that has not begun.
func NewFirstCome() *FirstCome {
	return &FirstCome{busy: arch.NoThread, waits: map[arch.ThreadID]int{}}
}

// Ask implements Controller.
func (f *FirstCome) Ask(g *sched.Gate, v *sched.SyncPoint) bool {
	switch v.Kind {
	case sched.AtStart:
		return f.MayRun(v.Thread, v.Instructions) // a thread does not begin before it is made
	case sched.AtEnter, sched.AtCall, sched.AtWake:
		if v.Kind == sched.AtWake && f.waits[v.Thread] == 0 {
			return true
		}
		return f.requestTurn(v.Thread)
	case sched.AtReturn:
		f.leaveOperation(g, v.Thread)
	}
	return true
}

// Needs implements Controller.
func (f *FirstCome) Needs() sched.Needs {
	return sched.Needs{MayRun: true, WholeOperations: true, SchedulePoints: f.schedules}
}

// requestTurn takes the turn, or queues for it.
func (f *FirstCome) requestTurn(t arch.ThreadID) bool {
	if f.busy != arch.NoThread && f.busy != t {
		f.queue = append(f.queue, t)
		return false
	}
	f.takeTurn(t)
	return true
}

func (f *FirstCome) takeTurn(t arch.ThreadID) {
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

// leaveOperation leaves an operation, and gives the turn away if it was the outermost.
func (f *FirstCome) leaveOperation(g *sched.Gate, t arch.ThreadID) {
	if f.busy != t {
		if f.waits[t]--; f.waits[t] <= 0 {
			delete(f.waits, t) // it was in a loop
		}
		return
	}
	if f.depth--; f.depth == 0 {
		f.passTurn(g)
	}
}

func (f *FirstCome) passTurn(g *sched.Gate) {
	f.busy = arch.NoThread
	if len(f.queue) > 0 {
		t := f.queue[0]
		f.queue = f.queue[1:]
		f.takeTurn(t)
		g.Release(t, 0)
		return
	}
	for _, t := range f.apart {
		g.Release(t, 0)
	}
	f.apart = f.apart[:0]
}

// MayRun implements Controller.
func (f *FirstCome) MayRun(t arch.ThreadID, _ uint64) bool {
	if f.busy == arch.NoThread || f.busy == t {
		return true
	}
	f.apart = append(f.apart, t)
	return false
}

// patience is how many instructions an operation takes at most that does not wait
// in a loop.
const patience = 100_000

// Stepped implements Controller.
func (f *FirstCome) Stepped(g *sched.Gate, t arch.ThreadID, instructions uint64, _ arch.Cycles) {
	if t != f.busy || t == arch.NoThread {
		return
	}
	if f.ran += instructions; f.ran > patience {
		f.waits[t] = f.depth
		f.passTurn(g)
	}
}

// Called implements Controller.
func (f *FirstCome) Called(g *sched.Gate, t arch.ThreadID, _ uint64) {
	f.leaveOperation(g, t)
}

// Blocked implements Controller.
func (f *FirstCome) Blocked(g *sched.Gate, t arch.ThreadID, _ bool) {
	if f.busy == t {
		f.waits[t] = f.depth
		f.passTurn(g)
	}
}

// Exited implements Controller.
func (f *FirstCome) Exited(g *sched.Gate, t arch.ThreadID) {
	delete(f.waits, t)
	f.apart = slices.DeleteFunc(f.apart, func(a arch.ThreadID) bool { return a == t })
	for i, q := range f.queue {
		if q == t {
			f.queue = append(f.queue[:i:i], f.queue[i+1:]...)
			break
		}
	}
	if f.busy == t {
		f.passTurn(g)
	}
}
