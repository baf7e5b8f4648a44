package partialorder

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// act is what a thread does next.
type act uint8

const (
	enters act = iota // an operation, and so on: the points of package sched
	calls
	atomically
	waits // in the kernel
	finishes
	wakes
	creates
	ends
	getsSignal
	leavesHandler
	kinds
)

// actor is a thread of a random run as the machine would know it.
type actor struct {
	id                         arch.ThreadID
	held, blocked, over, fresh bool
	op                         *event.Sync
	call                       *event.Syscall
	atomic                     bool
	handlers                   int
	retired                    uint64
	script                     []choice // what it did when it was recorded
	at                         int
}

type choice struct {
	act    act
	object event.ObjectID
	number int
}

// randomRun is the threads of a random run under a controller.
type randomRun struct {
	random     *rand.Rand
	controller sched.Controller
	births     *Recorder // nil under a Replayer
	gate       sched.Gate
	actors     []*actor
	next       arch.ThreadID
	follow     float64 // how often a thread does what its script says
}

var operations = []event.SyncOp{
	event.OpMutexLock, event.OpMutexUnlock, event.OpCondWait, event.OpCondSignal, event.OpCondBroadcast, event.OpBarrierWait,
	event.OpSemWait, event.OpSemPost, event.OpOnce, event.OpSpinLock, event.OpJoin,
}

var numbers = []uint64{unix.SYS_READ, unix.SYS_WRITE, unix.SYS_FUTEX, unix.SYS_CLOCK_GETTIME, unix.SYS_MMAP, unix.SYS_POLL, unix.SYS_NANOSLEEP, unix.SYS_GETPID}

func (r *randomRun) add() *actor {
	a := &actor{id: r.next, fresh: true}
	r.next++
	r.actors = append(r.actors, a)
	return a
}

func (r *randomRun) ask(a *actor, v sched.SyncPoint) {
	v.Thread, v.Name, v.Instructions, v.InOperation = a.id, fmt.Sprint(a.id), a.retired, a.op != nil
	a.held = !r.gate.Ask(r.controller, &v)
}

func (r *randomRun) signal(a *actor) {
	r.controller.Observe(&r.gate, sched.ThreadEvent{
		Kind: sched.SignalDelivered, Thread: a.id, Instructions: a.retired,
		Signal: &event.Signal{Stamp: event.Stamp{Thread: a.id, Instructions: a.retired}, Number: 10, Info: make([]byte, 128)},
	})
}

// settle carries out the controller's orders.
func (r *randomRun) settle(last arch.ThreadID) {
	r.controller.Stepped(&r.gate, last, 1, 0)
	for {
		e, ok := r.gate.TakeEffect(arch.NoThread, sched.Expire, sched.Rouse, sched.Interrupt, sched.Deliver, sched.Overwrite, sched.ShowTime, sched.Answer)
		if !ok {
			break
		}
		i := slices.IndexFunc(r.actors, func(a *actor) bool { return a.id == e.Thread && !a.over })
		if i < 0 {
			continue
		}
		switch a := r.actors[i]; {
		case e.Kind == sched.Deliver:
			r.signal(a)
			a.handlers++
			if a.blocked {
				a.blocked = false
				r.ask(a, sched.SyncPoint{Kind: sched.AtWake})
			}
		case a.blocked && (e.Kind == sched.Expire || e.Kind == sched.Rouse || e.Kind == sched.Interrupt):
			a.blocked = false
			r.controller.Woken(&r.gate, a.id)
			r.ask(a, sched.SyncPoint{Kind: sched.AtWake})
		}
	}
	list, _ := r.gate.Take()
	for _, x := range list {
		for _, a := range r.actors {
			if a.id == x.Thread {
				a.held = false
			}
		}
	}
}

// pick chooses what a thread does.
func (r *randomRun) pick(a *actor) choice {
	if a.at < len(a.script) && r.random.Float64() < r.follow {
		a.at++
		return a.script[a.at-1]
	}
	return choice{act(r.random.IntN(int(kinds))), event.ObjectID(1 + r.random.IntN(3)), r.random.IntN(100)}
}

// stops reports whether a thread is where the controller wants it to stop.
func (r *randomRun) stops(a *actor) bool {
	if a.blocked || a.fresh || a.call != nil || a.atomic {
		return false
	}
	_, exactly, _ := r.controller.StopDistance(a.id, a.retired)
	return exactly == 0
}

// step has a thread do something, and reports whether it did.
func (r *randomRun) step(a *actor) bool {
	a.retired += uint64(1 + r.random.IntN(3))
	if a.fresh {
		a.fresh = false
		r.ask(a, sched.SyncPoint{Kind: sched.AtStart})
		return true
	}
	c := r.pick(a)
	busy := a.op != nil || a.call != nil || a.atomic
	done := choice{c.act, c.object, c.number}
	switch {
	case a.blocked && c.act == wakes:
		a.blocked = false
		r.controller.Woken(&r.gate, a.id)
		r.ask(a, sched.SyncPoint{Kind: sched.AtWake})
	case c.act == ends && c.number < 10:
		a.over = true
		r.gate.Forget(a.id)
		r.controller.Exited(&r.gate, a.id)
	case c.act == getsSignal && c.number < 30 && !r.controller.HoldsSignals(a.id):
		r.signal(a)
		a.handlers++
		if a.call != nil && !a.blocked && c.number < 15 {
			a.call = nil // it is restarted
		}
	case a.blocked:
		return false
	case c.act == leavesHandler && a.handlers > 0 && a.call == nil && !a.atomic:
		a.handlers--
		r.controller.Observe(&r.gate, sched.ThreadEvent{Kind: sched.HandlerReturned, Thread: a.id, Instructions: a.retired})
	case c.act == enters && !busy:
		a.op = &event.Sync{Stamp: event.Stamp{Thread: a.id, Instructions: a.retired}, Op: operations[c.number%len(operations)], Object: c.object, Second: 4}
		r.ask(a, sched.SyncPoint{Kind: sched.AtEnter, Sync: a.op})
	case c.act == calls && !busy:
		a.call = &event.Syscall{Number: numbers[c.number%len(numbers)]}
		r.ask(a, sched.SyncPoint{Kind: sched.AtCall, Call: a.call})
	case c.act == atomically && !busy:
		a.atomic = true
		r.ask(a, sched.SyncPoint{Kind: sched.AtAtomic})
	case c.act == waits && (a.op != nil || a.call != nil):
		a.blocked = true
		r.controller.Blocked(&r.gate, a.id, a.op != nil)
	case c.act == finishes && a.op != nil:
		e := *a.op
		e.Phase, e.Result = event.Return, int64(c.number%2)
		a.op = nil
		r.ask(a, sched.SyncPoint{Kind: sched.AtReturn, Sync: &e})
	case c.act == finishes && a.call != nil:
		a.call = nil
		r.controller.Called(&r.gate, a.id, uint64(c.number%2))
	case c.act == finishes && a.atomic:
		a.atomic = false
		r.controller.Observe(&r.gate, sched.ThreadEvent{Kind: sched.AtomicExecuted, Thread: a.id, Sync: &event.Sync{
			Stamp: event.Stamp{Thread: a.id, Instructions: a.retired}, Op: event.OpAtomic, Object: c.object,
		}})
	case c.act == creates && !busy && len(r.actors) < 12 && c.number < 30:
		x := r.add()
		if r.births != nil {
			r.births.NoteBirth(x.id, a.id, c.number < 10)
		}
	default:
		return false
	}
	if r.births != nil {
		a.script = append(a.script, done)
	}
	return true
}

// run has threads do things in a random order.
func (r *randomRun) run(most int) {
	for range most {
		a := r.actors[r.random.IntN(len(r.actors))]
		switch {
		case a.over || a.held:
		case !a.blocked && !a.fresh && !r.controller.MayRun(a.id, a.retired):
			a.held = true
			r.gate.Hold(a.id)
		case r.stops(a):
			r.ask(a, sched.SyncPoint{Kind: sched.AtInstruction})
			r.settle(a.id)
		case r.step(a):
			r.settle(a.id)
		}
	}
}

// copyOf is the threads at the same place under another controller, which do mostly what their scripts say from there on.
func (r *randomRun) copyOf(c sched.Controller) *randomRun {
	x := &randomRun{random: r.random, controller: c, next: r.next, follow: 0.9}
	for _, a := range r.actors {
		b := *a
		b.at = len(a.script)
		x.actors = append(x.actors, &b)
		if a.held {
			x.gate.Hold(a.id)
		}
	}
	return x
}

// TestRandomRuns: whatever the threads of replicas do, the same or not, such as to create threads that other replicas do not have,
// controllers do not fail.
func TestRandomRuns(t *testing.T) {
	for seed := range uint64(testsize.Runs(200, 1000, 20_000)) {
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Fatalf("seed %d: %v\n%s", seed, p, debug.Stack())
				}
			}()
			random := rand.New(rand.NewPCG(seed, 1))
			r := &randomRun{random: random, next: 1000}
			r.add()
			var states []ThreadState
			for range 3 {
				rec := NewRecorder(&Functions{}, states)
				before := r.copyOf(nil)
				r.controller, r.births = rec, rec
				rec.Begin(&r.gate)
				r.settle(arch.NoThread)
				r.run(20 + random.IntN(200))
				rec.Close()
				r.run(500)
				o := rec.Order(random.IntN(4) == 0)
				rep := NewReplayer(&Functions{}, o)
				f := before
				f.controller = rep
				for _, a := range f.actors {
					for _, x := range r.actors {
						if x.id == a.id {
							a.script = x.script
						}
					}
				}
				rep.Begin(&f.gate)
				f.settle(arch.NoThread)
				for range 20 {
					f.run(100)
					rep.Idle(&f.gate, random.IntN(2) == 0)
					f.settle(arch.NoThread)
				}
				rep.ThreadStates()
				rep.ContinueDiverged(&f.gate, 20)
				f.settle(arch.NoThread)
				f.run(500)
				states = rec.ThreadStates()
				if random.IntN(3) == 0 {
					states, r.actors, r.gate, r.next = rep.ThreadStates(), f.actors, f.gate, f.next
				}
			}
		}()
	}
}
