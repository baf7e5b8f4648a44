package partialorder

import (
	"github.com/heddle-dmt/heddle/guest/linux"
)

// The results of a thread-parallel replica.

// Order returns the order of the epoch, which has ended: the recorder's steps are the order's. If the
// epoch has failed, steps that were under way do not count.
func (r *Recorder) Order(failed bool) *Order {
	o := &Order{Begin: r.start, Constraints: r.constraints, Threads: make([]ThreadLog, len(r.threads))}
	for n, t := range r.threads {
		l := ThreadLog{ID: t.id, Steps: t.steps, Unordered: t.unordered, EndsHeld: t.isStanding(), Process: t.process}
		if t.state == blocked && t.next.isUnordered() && len(t.open) == 0 {
			l.Unordered--
		}
		if failed {
			l.Steps = completeSteps(l.Steps)
		} else if len(l.Steps) > 0 && !l.Steps[len(l.Steps)-1].complete {
			l.EndsInStep = true
			l.Steps[len(l.Steps)-1].Clock = r.clockOfWait(t)
		}
		o.Threads[n] = l
	}
	o.orderExits()
	return o
}

// completeSteps drops incomplete steps at the end of a list.
func completeSteps(steps []Step) []Step {
	for len(steps) > 0 && !steps[len(steps)-1].complete {
		steps = steps[:len(steps)-1]
	}
	return steps
}

// clockOfWait returns the clock of all steps on the entities of a thread's innermost open step.
func (r *Recorder) clockOfWait(t *recordedThread) []uint32 {
	clock := t.clock
	for _, e := range t.open[len(t.open)-1].entities {
		clock = joinClocks(clock, r.entityOf(e).clockFor(e.shared))
	}
	return clock
}

// orderExits places the end of a process after all steps of its threads.
func (o *Order) orderExits() {
	for n := range o.Threads {
		for i := range o.Threads[n].Steps {
			s := &o.Threads[n].Steps[i]
			if s.Kind != CallStep || s.Number != linux.ExitGroup {
				continue
			}
			for m := range o.Threads {
				if m != n && o.Threads[m].Process == o.Threads[n].Process {
					s.Clock = advanceComponent(s.Clock, m, uint32(len(o.Threads[m].Steps)))
				}
			}
		}
	}
}

// ThreadStates returns the states of the threads at the end of the epoch.
func (r *Recorder) ThreadStates() (list []ThreadState) {
	for _, t := range r.threads {
		if !t.state.isAlive() {
			continue
		}
		s := ThreadState{ID: t.id, Name: t.name, Held: t.state.isHeld() || t.state.isQueued(), Woken: t.state.isAfterWait(), Next: t.next, Exits: t.exiting, Process: t.process}
		for i := range t.open {
			s.Within = append(s.Within, t.open[i].remainder())
		}
		list = append(list, s)
	}
	return list
}

// Uses lists the uses of objects by the steps that threads have begun in the epoch, and by those that
// were under way at its start.
func (r *Recorder) Uses() []Use {
	u := usesWithin(r.start)
	for _, t := range r.threads {
		for i := range t.steps {
			u.add(&t.steps[i])
		}
	}
	return u.list()
}
