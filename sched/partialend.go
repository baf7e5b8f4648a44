package sched

import (
	"slices"

	"golang.org/x/sys/unix"
)

// What a thread-parallel replica leaves.

// Order is the order of the epoch, which is over. In one that has failed, what
// threads were in does not count.
func (r *OrderRecorder) Order(failed bool) *PartialOrder {
	o := &PartialOrder{Begin: r.begin, Constraints: r.pairs, Threads: make([]ThreadLog, len(r.threads))}
	for n, t := range r.threads {
		l := ThreadLog{ID: t.id, Steps: slices.Clone(t.steps), Free: t.free, Stands: !t.gone && t.stands()}
		if t.stand == asleep && t.next.free() && len(t.open) == 0 {
			l.Free--
		}
		if failed {
			l.Steps = whole(l.Steps)
		} else if len(l.Steps) > 0 && !l.Steps[len(l.Steps)-1].done {
			l.Open = true
			l.Steps[len(l.Steps)-1].Clock = r.behind(t)
		}
		o.Threads[n] = l
	}
	o.conclude()
	return o
}

// whole leaves out the steps at the end that are not complete.
func whole(steps []Step) []Step {
	for len(steps) > 0 && !steps[len(steps)-1].done {
		steps = steps[:len(steps)-1]
	}
	return steps
}

// behind is the clock of all that was done to what a thread waits in.
func (r *OrderRecorder) behind(t *recorded) []uint32 {
	clock := slices.Clone(t.clock)
	for _, e := range t.open[len(t.open)-1].on {
		clock = joined(clock, r.entity(e).clock)
	}
	return clock
}

// conclude has the end of a process come behind all that threads did.
func (o *PartialOrder) conclude() {
	for n := range o.Threads {
		for i := range o.Threads[n].Steps {
			s := &o.Threads[n].Steps[i]
			if s.Kind != CallStep || s.Number != unix.SYS_EXIT_GROUP {
				continue
			}
			for m := range o.Threads {
				if m != n {
					s.Clock = ticked(s.Clock, m, uint32(len(o.Threads[m].Steps)))
				}
			}
		}
	}
}

// Standings is where the threads are, when the epoch is closed.
func (r *OrderRecorder) Standings() (list []Standing) {
	for _, t := range r.threads {
		if t.gone {
			continue
		}
		s := Standing{ID: t.id, Name: t.name, Held: t.stand == held || t.stand == queued, Woken: t.woken, Next: t.next, Exits: t.exits}
		for i := range t.open {
			s.Within = append(s.Within, t.open[i].rest())
		}
		list = append(list, s)
	}
	return list
}

// Used lists the steps that threads have begun, and those that they were in.
func (r *OrderRecorder) Used() []Step {
	list := within(r.begin)
	for _, t := range r.threads {
		list = append(list, t.steps...)
	}
	return list
}

func within(begin []Standing) (list []Step) {
	for i := range begin {
		list = append(list, begin[i].Within...)
	}
	return list
}
