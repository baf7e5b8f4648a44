package hybrid

import (
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// AddSignal adds a signal that is handled or that kills. It has a position, unless an instruction
// of the thread has caused it, which then happens in every run.
func (o *OrderBuilder) AddSignal(e *event.Signal) {
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
	inside := t.isInsideOperation()
	switch {
	case inside:
		o.splitOperation(t)
		p.Result = event.Interrupted
	case t.issue != nil && o.rules.Ordered(t.issue.Number):
		p.Result = event.Interrupted
	}
	at := o.addOperation(e.Stamp, p)
	o.addMark(e.Stamp, Mark{Thread: n, Position: at, Close: true})
	if inside {
		t.open = append(t.open, openOperation{beginIndex: -1, handler: true})
	}
}

// splitOperation gives the part of an operation up to where it waits a position of its own.
func (o *OrderBuilder) splitOperation(t *orderThread) {
	c := &t.open[len(t.open)-1]
	if c.beginIndex < 0 {
		c.beginIndex = c.entry
		o.dropped[c.entry] = false
	}
	o.s.Operations[c.beginIndex].Part = event.BeginPart
	c.split = true
	c.waits = kernelWaits{} // what follows the wait is the signal's
}

// returnFromHandler takes the return of a handler: the interrupted operation continues.
func (o *OrderBuilder) returnFromHandler(n int, e *event.Syscall) {
	t := o.threads[n]
	for i := len(t.open) - 1; i >= 0; i-- {
		if t.open[i].handler {
			t.open = t.open[:i]
			o.addMark(e.Stamp, Mark{Thread: n, Position: -1, Open: t.isInsideOperation()})
			return
		}
	}
}

// leaveHandlers forgets the handlers that a thread is in within its innermost
// operation, which it leaves.
func (t *orderThread) leaveHandlers() {
	for n := len(t.open); n > 0 && t.open[n-1].handler; n-- {
		t.open = t.open[:n-1]
	}
}

// beforeLastSignal is the point before the last signal of a thread that has a position.
func (o *OrderBuilder) beforeLastSignal(n int) event.Point {
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
