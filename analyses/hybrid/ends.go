package hybrid

import (
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Ends are constraints that keep threads from going further than they had come
// when their process ended.
func (o *Order) Ends(bases [][]Base) []event.Constraint {
	var out []event.Constraint
	for _, x := range o.ends {
		c := event.Constraint{First: ends(bases, x.thread, x.instructions)}
		switch {
		case x.killer >= 0 && o.deathOf(x.killer) != nil && o.deathOf(x.killer).sent:
			c.Second = o.signalled(x.killer)
		case x.killer >= 0 && o.deathOf(x.killer) != nil:
			c.Second = o.deathOf(x.killer).before(bases)
		case x.by >= 0:
			c.Second = event.Point{Thread: x.by, Done: len(bases[x.by]) - 2}
		default:
			continue
		}
		out = append(out, c)
	}
	return out
}

// deathOf is the death of a thread, or nil.
func (o *Order) deathOf(n int) *death {
	if i := slices.IndexFunc(o.deaths, func(d death) bool { return d.thread == n }); i >= 0 {
		return &o.deaths[i]
	}
	return nil
}

// point is where the thread died. An operation that it died in has its place
// there, and is not behind it.
func (d *death) point(bases [][]Base) event.Point {
	if !d.within {
		return ends(bases, d.thread, d.instructions)
	}
	bases = slices.Clone(bases)
	bases[d.thread] = bases[d.thread][:len(bases[d.thread])-1]
	return ends(bases, d.thread, d.instructions)
}

// before is the last point at which the thread can be made to wait before it dies. A
// call that kills its own thread, as of tgkill(2) in abort(3), has no instruction
// behind it: the thread waits before the call.
func (d *death) before(bases [][]Base) event.Point {
	p := d.point(bases)
	if d.within || p.Instructions > 0 || p.Done == 0 {
		return p
	}
	return event.Point{Thread: p.Thread, Done: p.Done - 1}
}

// ends is the point at which a thread was when it had retired so many
// instructions.
func ends(bases [][]Base, n int, instructions uint64) event.Point {
	done := len(bases[n]) - 1
	for done > 0 && bases[n][done].Instructions > instructions {
		done--
	}
	return event.Point{Thread: n, Done: done, Instructions: instructions - bases[n][done].Instructions, Ends: true}
}

// Exit tells of a thread's end. One that was still there when its process ended
// got no further.
func (o *Order) Exit(e *event.Exit) {
	n := o.Thread(e.Thread)
	if n < 0 {
		return
	}
	t := o.threads[n]
	t.gone = true
	if o.living[t.process]--; o.living[t.process] == 0 {
		o.mark(e.Stamp, Mark{Thread: n, Position: -1, Over: true})
	}
	switch {
	case n == o.killed:
		o.deaths = append(o.deaths, death{n, len(t.open) > 0 && t.open[len(t.open)-1].begin < 0, o.sent, e.Instructions})
		return
	case o.ender(t) == n:
		return
	}
	killer := o.killed
	if killer >= 0 && o.threads[killer].process != t.process {
		killer = -1
	}
	if at, ok := t.reached(e.Instructions); ok && (o.ender(t) >= 0 || killer >= 0) {
		o.ends = append(o.ends, end{n, o.ender(t), killer, at})
	}
}

// ender is the thread that ended a thread's process by a system call, or -1.
func (o *Order) ender(t *ordering) int {
	if at, ended := o.ending[t.process]; ended {
		return o.s.Operations[at].Thread
	}
	return -1
}

// reached is how far a thread that has retired so many instructions has come
// outside of operations; false if it is in a wait that has its place in the order.
func (t *ordering) reached(instructions uint64) (uint64, bool) {
	for _, c := range t.open {
		if !c.once && !c.handler {
			return c.instructions, c.begin < 0
		}
	}
	if t.issue != nil {
		return t.issue.Instructions, true
	}
	return instructions, true
}

// alive notes that a thread goes on.
func (o *Order) alive(n int) {
	if o.killed == n {
		o.killed = -1
	}
}

// end is a thread whose process was ended by a system call of another thread, or by
// a signal that killed another.
type end struct {
	thread, by, killer int
	instructions       uint64
}

// death is a thread that a signal killed, in an operation if within, by a signal that
// has a position if sent.
type death struct {
	thread       int
	within, sent bool
	instructions uint64
}
