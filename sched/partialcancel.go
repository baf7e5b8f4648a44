package sched

import (
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Threads that cancel others. The other finds out by a signal, or by a plain read of a word
// that the C library has for it: so what is done to the word has a place among the other's
// instructions, as signals have. Nothing of a thread runs while another cancels it, which
// begins when it is in no operation, or waits in one.

// sigCancel is the signal by which the C library cancels threads
// (sysdeps/unix/sysv/linux/internal-signals.h).
const sigCancel = 32

// place is a step of a thread, by number.
type place struct{ thread, step int }

// cancelled tells whether a thread is about to be cancelled: it does nothing until it has
// the signal, since it could find out otherwise before it has that.
func (r *OrderRecorder) cancelled(id event.ThreadID) bool {
	return slices.ContainsFunc(r.threads, func(t *recorded) bool {
		k := len(t.open)
		return k > 0 && !t.gone && t.open[k-1].Op == event.OpCancel && t.open[k-1].Whom == id && t.id != id
	})
}

// unpause has a thread go on that was cancelled.
func (r *OrderRecorder) unpause(g *Gate, id event.ThreadID) {
	if n, ok := r.numbers[id]; ok && r.threads[n].paused {
		r.threads[n].paused = false
		g.Release(id, 0)
	}
}

// Kills implements KillController.
func (r *OrderRecorder) Kills(id event.ThreadID) {
	if n, ok := r.numbers[id]; ok {
		r.threads[n].kills = true
	}
}

// disturbs tells whether a thread is before an operation that cancels another which is in
// the middle of one, where it may find out, or not any more, or about to make a system call.
// Who spins for a lock may not come out of that by itself, and who exits is cancelled no
// more.
func (r *OrderRecorder) disturbs(t *recorded) bool {
	m, ok := r.numbers[t.next.Whom]
	if t.next.Op != event.OpCancel || !ok || t.next.Whom == t.id {
		return false
	}
	p := r.threads[m]
	return p.stand != asleep && (p.calling || inOperation(p.open) && !p.open[len(p.open)-1].lasts())
}

// lasts tells which operations go on for as long as others want, without waiting in the
// kernel.
func (s *Step) lasts() bool { return s.Op == event.OpSpinLock || s.ends() }

// informs gives what a thread has done to one that it has cancelled a place in that one's
// steps, if it has sent no signal, which has one of its own.
func (r *OrderRecorder) informs(t *recorded, id event.ThreadID) {
	sent := t.kills
	t.kills = false
	if id == t.id {
		return
	}
	m, ok := r.numbers[id]
	if !ok {
		r.births[id] = joined(r.births[id], t.clock)
		return
	}
	p := r.threads[m]
	stands := !p.woken && p.stands()
	if !sent || stands {
		p.clock = joined(p.clock, t.clock)
	}
	switch {
	case stands:
		r.meets(m, len(p.steps)) // what it does next comes behind, if that is not the signal
	case sent:
	case p.calling:
		r.noticesCalling(m)
	case inOperation(p.open):
		r.noticesInside(m)
	default:
		p.noticed = true
	}
}

// noticesCalling gives a place to what is done to a thread that is in a system call: before
// that, since it goes on all the same.
func (r *OrderRecorder) noticesCalling(m int) {
	p := r.threads[m]
	switch {
	case p.inCall():
		r.comesLater(m)
	case p.issued == 0:
		r.notice(m, Step{Within: true})
	default:
		r.notice(m, Step{Place: p.issued - 1 - p.base})
		p.free = 1
	}
}

// comesLater puts the step that a thread is in behind what is done to it, if it has not
// had an effect, and what is done into it otherwise.
func (r *OrderRecorder) comesLater(m int) {
	p := r.threads[m]
	o := &p.open[len(p.open)-1]
	if o.Kind != WholeStep && o.Kind != CallStep || o.index >= 0 && o.index != len(p.steps)-1 {
		r.notice(m, Step{Within: true})
		return
	}
	p.slot(o)
	r.meets(m, o.index)
}

// noticesInside gives a place to what is done to a thread that waits in an operation.
func (r *OrderRecorder) noticesInside(m int) {
	p := r.threads[m]
	if o := &p.open[len(p.open)-1]; o.ends() || o.Op == event.OpTestCancel {
		delete(r.cancels, p.id)
		return
	}
	r.comesLater(m)
}

// notice gives a thread a step that is a signal without a number: it has been cancelled,
// and may find out from there on.
func (r *OrderRecorder) notice(n int, s Step) {
	t := r.threads[n]
	s.Kind, t.noticed, t.free = SignalStep, false, 0
	o := opened{Step: s, index: -1}
	t.slot(&o)
	r.complete(n, &o)
	t.base += s.Place
	r.meets(n, o.index)
}

// meets has a thread be before a step of its when it is cancelled.
func (r *OrderRecorder) meets(n, step int) {
	id := r.threads[n].id
	if at, ok := r.cancels[id]; ok {
		c := &r.threads[at.thread].steps[at.step]
		c.Meets, c.Peer = step+1, n
		delete(r.cancels, id)
	}
}

// cancelling completes what threads have done of operations that send a signal.
func (r *OrderRecorder) cancelling() {
	for n, t := range r.threads {
		if k := len(t.open); k > 0 && !t.gone && t.open[k-1].Op == event.OpCancel {
			r.begun(n, &t.open[k-1])
		}
	}
}

// meets tells whether a thread that is to be cancelled is where it has the signal.
func (f *OrderFollower) meets(s *Step) bool {
	if s.Peer >= len(f.threads) || f.threads[s.Peer].id == 0 {
		return false
	}
	t := f.threads[s.Peer]
	if t.left || t.gone || t.pos >= s.Meets {
		return true
	}
	steps := f.log(s.Peer).Steps
	first := min(s.Meets-1, len(steps))
	if first == len(steps) || steps[first].Kind != SignalStep || steps[first].notice() && !steps[first].Within {
		return t.pos == first && t.stand == held
	}
	if first > 0 && steps[first-1].Interrupted {
		first--
	}
	return t.pos >= first && (t.stand == held || t.stand == asleep)
}

// notice tells of a step that it is where a thread may find out that it is cancelled.
func (s *Step) notice() bool { return s.Kind == SignalStep && s.Number == 0 }

// noticed tells whether a thread's next step is that, while it waits.
func (f *OrderFollower) noticed(n int) bool {
	return f.signalled(n, true) && f.log(n).Steps[f.threads[n].pos].notice()
}

// cancelled are the threads that others meet when they cancel them, by number.
func (o *PartialOrder) cancelled() map[int]bool {
	list := map[int]bool{}
	for n := range o.Threads {
		for i := range o.Threads[n].Steps {
			if s := &o.Threads[n].Steps[i]; s.Meets > 0 {
				list[s.Peer] = true
			}
		}
	}
	return list
}
