package hybrid

import (
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Signal tells of a signal that goes to a handler or kills. It has a position, unless
// an instruction of the thread has caused it, which comes to the same each time.
func (o *Order) Signal(e *event.Signal) {
	n := o.Thread(e.Thread)
	o.killed, o.sent = n, len(e.Info) > 0
	if n < 0 || len(e.Info) == 0 {
		return
	}
	t := o.threads[n]
	p := event.Operation{
		Thread: n, Part: event.SignalPart, Number: uint64(e.Number), Result: int64(e.Instructions - t.base),
		Writes: []event.Write{{Addr: e.PC, Data: slices.Clone(e.Info)}},
	}
	inside := t.inside()
	switch {
	case inside:
		o.split(t)
		p.Result = event.Interrupted
	case t.issue != nil && o.rules.Ordered(t.issue.Number):
		p.Result = event.Interrupted
	}
	at := o.add(e.Stamp, p)
	o.mark(e.Stamp, Mark{Thread: n, Position: at, Close: true})
	if inside {
		t.open = append(t.open, opened{begin: -1, handler: true})
	}
}

// split gives the part of an operation up to where it waits a position of its own.
func (o *Order) split(t *ordering) {
	c := &t.open[len(t.open)-1]
	if c.begin < 0 {
		c.begin = c.entry
		o.dropped[c.entry] = false
	}
	o.s.Operations[c.begin].Part = event.BeginPart
	c.split = true
}

// returned takes the return of a handler: what it interrupted goes on.
func (o *Order) returned(n int, e *event.Syscall) {
	t := o.threads[n]
	for i := len(t.open) - 1; i >= 0; i-- {
		if t.open[i].handler {
			t.open = t.open[:i]
			o.mark(e.Stamp, Mark{Thread: n, Position: -1, Open: t.inside()})
			return
		}
	}
}

// leaveHandlers forgets the handlers that a thread is in within its innermost
// operation, which it leaves.
func (t *ordering) leaveHandlers() {
	for n := len(t.open); n > 0 && t.open[n-1].handler; n-- {
		t.open = t.open[:n-1]
	}
}

// signalled is the point before the last signal of a thread that has a position.
func (o *Order) signalled(n int) event.Point {
	p, own := event.Point{Thread: n}, 0
	for i := range o.s.Operations {
		if x := &o.s.Operations[i]; x.Thread == n {
			if x.Part == event.SignalPart {
				p.Done = own
			}
			own++
		}
	}
	return p
}
