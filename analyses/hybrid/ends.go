package hybrid

import (
	"slices"

	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// EndConstraints are constraints that keep threads from going further than they had come
// when their process ended.
func (o *OrderBuilder) EndConstraints(bases [][]Counted) []event.Constraint {
	var out []event.Constraint
	for _, x := range o.processEnds {
		c := event.Constraint{First: endPoint(bases, x.thread, x.instructions)}
		switch {
		case x.killer >= 0 && o.deathOf(x.killer) != nil && o.deathOf(x.killer).sent:
			c.Second = o.beforeLastSignal(x.killer)
		case x.killer >= 0 && o.deathOf(x.killer) != nil:
			c.Second = o.deathOf(x.killer).lastHoldPoint(bases)
		case x.by >= 0:
			c.Second = event.Point{Thread: x.by, Done: x.at}
		default:
			continue
		}
		out = append(out, c)
	}
	return out
}

// deathOf is the death of a thread, or nil.
func (o *OrderBuilder) deathOf(n int) *death {
	if i := slices.IndexFunc(o.deaths, func(d death) bool { return d.thread == n }); i >= 0 {
		return &o.deaths[i]
	}
	return nil
}

// deathPoint is where the thread died. An operation that it died in has its position there, and is
// not before it.
func (d *death) deathPoint(bases [][]Counted) event.Point {
	if !d.within {
		return endPoint(bases, d.thread, d.instructions)
	}
	bases = slices.Clone(bases)
	bases[d.thread] = bases[d.thread][:len(bases[d.thread])-1]
	return endPoint(bases, d.thread, d.instructions)
}

// lastHoldPoint is the last point at which the thread can be held before it dies. A call that kills
// its own thread, such as tgkill(2) in abort(3), has no instruction after it: the thread is held
// before the call.
func (d *death) lastHoldPoint(bases [][]Counted) event.Point {
	p := d.deathPoint(bases)
	if d.within || p.Instructions > 0 || p.Done == 0 {
		return p
	}
	return event.Point{Thread: p.Thread, Done: p.Done - 1}
}

// endPoint is the point of a thread that has retired the given number of instructions.
func endPoint(bases [][]Counted, n int, instructions uint64) event.Point {
	done := len(bases[n]) - 1
	for done > 0 && bases[n][done].Instructions > instructions {
		done--
	}
	return event.Point{Thread: n, Done: done, Instructions: instructions - bases[n][done].Instructions, Ends: true}
}

// AddExit adds a thread's end. A thread that was still there when its process ended got no further.
func (o *OrderBuilder) AddExit(e *event.Exit) {
	n := o.Thread(e.Thread)
	if n < 0 {
		return
	}
	t := o.threads[n]
	t.gone = true
	if o.living[t.process]--; o.living[t.process] == 0 {
		o.addMark(e.Stamp, Mark{Thread: n, Position: -1, Over: true})
	}
	switch {
	case n == o.killed:
		o.deaths = append(o.deaths, death{n, len(t.open) > 0 && t.open[len(t.open)-1].beginIndex < 0, o.sent, e.Instructions})
		return
	case o.endingThread(t) == n:
		return
	}
	killer := o.killed
	if killer >= 0 && o.threads[killer].process != t.process {
		killer = -1
	}
	reached, ok := t.reachedOutside(e.Instructions)
	if !ok {
		return
	}
	x := processEnd{thread: n, by: o.endingThread(t), killer: killer, at: o.ending[t.process], instructions: reached}
	switch {
	case x.by >= 0 || killer >= 0:
		o.processEnds = append(o.processEnds, x)
	case !o.hasEndedItself(t):
		o.replaced[t.process] = append(o.replaced[t.process], x)
	}
}

// endingThread is the thread that ended a thread's process by a system call, or -1.
func (o *OrderBuilder) endingThread(t *orderThread) int {
	if at, ended := o.ending[t.process]; ended {
		return o.s.Operations[at].Thread
	}
	return -1
}

// hasEndedItself reports whether a thread that has ended did so by exit(2).
func (o *OrderBuilder) hasEndedItself(t *orderThread) bool {
	return t.last >= 0 && t.issue == nil && o.s.Operations[t.last].Part == event.SystemCall && linux.Has(o.s.Operations[t.last].Number, linux.EndsThread)
}

// replaceProgram takes an operation of a thread that has replaced the program of its process by execve(2), which
// has ended the process's other threads.
func (o *OrderBuilder) replaceProgram(n, at int) {
	process := o.threads[n].process
	for _, x := range o.replaced[process] {
		x.by, x.at = n, at
		o.processEnds = append(o.processEnds, x)
	}
	delete(o.replaced, process)
}

// reachedOutside is the number of instructions that a thread has retired outside of operations;
// false if it is in a wait that has its position in the order.
func (t *orderThread) reachedOutside(instructions uint64) (uint64, bool) {
	for _, c := range t.open {
		if !c.once && !c.handler {
			return c.instructions, c.beginIndex < 0
		}
	}
	if t.issue != nil {
		return t.issue.Instructions, true
	}
	return instructions, true
}

// noteAlive notes that a thread continues.
func (o *OrderBuilder) noteAlive(n int) {
	if o.killed == n {
		o.killed = -1
	}
}

// processEnd is a thread that was ended by a system call of another thread, exit_group(2) or execve(2), or by
// a signal that killed another.
type processEnd struct {
	thread, by, killer int
	at                 int // the index of the system call; after Finish, how many operations the thread by has before it
	instructions       uint64
}

// death is a thread that a signal killed, in an operation if within, by a signal that
// has a position if sent.
type death struct {
	thread       int
	within, sent bool
	instructions uint64
}
