package sched

import (
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Idle is called when no thread can run: it tells whether the epoch is over. If
// not, and timers cannot help, it has something happen.
func (f *OrderFollower) Idle(g *Gate, timers bool) bool {
	if !slices.ContainsFunc(f.threads, func(t *follows) bool { return !t.gone && !f.over(t) }) {
		return true
	}
	switch {
	case timers, f.help(g, true):
	case !f.nudged:
		f.nudged = true
		f.nudge(g)
	case f.help(g, false):
	default:
		return !f.force(g)
	}
	return false
}

// over tells whether the epoch is over for a thread.
func (f *OrderFollower) over(t *follows) bool {
	if t.ended {
		return true
	}
	n := f.numbers[t.id]
	l := f.log(n)
	rest := len(l.Steps) - t.pos
	return t.stand == asleep && rest <= 0 && !l.Stands
}

// help lets a thread go on from its wait before its turn if another is in the
// middle of its step: glibc's broadcast waits until those that it has woken have
// noticed. It waits for its turn when they have, or behind its operation. Of several it
// is one before whose turn none of the others has its, and one for which the epoch is
// over only if there is no other: in the first replica it has noticed, and waits for the
// mutex. At first only waits on the condition are looked at that another signals: who
// goes on from others may take a mutex before its turn.
func (f *OrderFollower) help(g *Gate, signals bool) bool {
	best := -1
	for _, t := range f.threads {
		if t.gone || t.stand != asleep || len(t.open) == 0 || t.open[len(t.open)-1].index < 0 || f.over(t) {
			continue
		}
		waker := &t.open[len(t.open)-1].Step
		if signals && !waker.signals() {
			continue
		}
		if !signals {
			waker = nil
		}
		if best = f.helper(waker, false); best < 0 {
			best = f.helper(waker, true)
		}
		if best >= 0 {
			break
		}
	}
	if best < 0 {
		return false
	}
	t := f.threads[best]
	t.stand, t.woken, t.helps, t.ended = going, false, true, false
	g.Release(t.id, 0)
	return true
}

// helper is a thread that is held behind a wait, on what another signals if that is
// given, for which the epoch is over or not; -1: there is none.
func (f *OrderFollower) helper(waker *Step, ended bool) int {
	best := -1
	for n, t := range f.threads {
		if t.gone || t.stand != held || !t.woken || t.at != AtWake || t.ended != ended {
			continue
		}
		if waker != nil && (len(t.open) == 0 || t.open[len(t.open)-1].Object != waker.Object) {
			continue
		}
		if best < 0 || f.precedes(n, best) {
			best = n
		}
	}
	return best
}

// signals tells which steps wake threads that wait on a condition.
func (s *Step) signals() bool {
	switch s.Op {
	case event.OpCondSignal, event.OpCondBroadcast, event.OpC11CndSignal, event.OpC11CndBroadcast:
		return true
	}
	return false
}

// Woken implements Controller: the thread that helps has done so. It goes no
// further, where it would take the mutex before its turn.
func (f *OrderFollower) Woken(_ *Gate, id event.ThreadID) {
	for _, t := range f.threads {
		if t.helps && t.id != id && t.stand == going {
			t.helps, t.helped = false, true
		}
	}
}

// May implements Pauser.
func (f *OrderFollower) May(id event.ThreadID, _ uint64) bool {
	n, ok := f.numbers[id]
	if !ok || !f.threads[n].helped {
		return true
	}
	f.threads[n].helped = false
	return f.threads[n].stand != going || f.wake(n)
}

// precedes tells whether a thread's next step comes before another's.
func (f *OrderFollower) precedes(n, m int) bool {
	t, o := f.threads[n], f.threads[m]
	steps := f.log(m).Steps
	return !t.left && !o.left && o.pos < len(steps) && component(steps[o.pos].Clock, n) > uint32(t.pos)
}

// nudge ends waits in the kernel as they ended in the first replica.
func (f *OrderFollower) nudge(g *Gate) {
	for n, t := range f.threads {
		if t.gone || t.stand != asleep || f.over(t) || f.signalled(n, true) {
			continue
		}
		kind := Rouse
		if steps := f.log(n).Steps; len(t.open) == 0 || t.pos < len(steps) && timesOut(&steps[t.pos]) {
			kind = Expire
		}
		g.Affect(Effect{Kind: kind, Thread: t.id})
	}
}

func timesOut(s *Step) bool { return timedOut(&event.Operation{Op: s.Op, Result: int64(s.Result)}) }

// force has a thread diverge that waits for what does not come; false: there is
// none.
func (f *OrderFollower) force(g *Gate) bool {
	for n, t := range f.threads {
		if !t.gone && t.stand == held && !t.ended {
			f.leave(n, "what comes before it does not come")
			f.look(g, n)
			t.ended = t.stand == held
			f.Stepped(g, event.NoThread, 0, 0)
			return true
		}
	}
	return false
}

// Short tells whether a thread has done less than in the first replica.
func (f *OrderFollower) Short() bool {
	for n := range f.order.Threads {
		steps := f.order.Threads[n].Steps
		if n >= len(f.threads) && len(steps) > 0 || n < len(f.threads) && f.threads[n].pos < len(steps) {
			return true
		}
	}
	return false
}

// Standings is where the threads are, when the epoch is over.
func (f *OrderFollower) Standings() (list []Standing) {
	for _, t := range f.threads {
		if t.gone {
			continue
		}
		s := Standing{ID: t.id, Name: t.name, Held: t.stand == held, Woken: t.woken, Next: t.next, Exits: t.exits}
		for i := range t.open {
			s.Within = append(s.Within, t.open[i].rest())
		}
		if s.Held && t.at == AtReturn {
			s.Woken, s.Within = true, s.Within[:len(s.Within)-1]
		}
		list = append(list, s)
	}
	return list
}

// Used lists the steps that threads have begun, and those that they were in.
func (f *OrderFollower) Used() []Step { return append(within(f.order.Begin), f.used...) }

// Probe lets the threads that have diverged do some more steps when the epoch is
// over, to see what becomes of them.
func (f *OrderFollower) Probe(g *Gate, steps int) {
	for n, t := range f.threads {
		if t.gone || !t.left {
			continue
		}
		t.more = steps
		if t.ended && !t.woken && t.at != AtReturn {
			t.ended = false
			if f.come(g, n) {
				g.Release(t.id, 0)
			}
		}
	}
}
