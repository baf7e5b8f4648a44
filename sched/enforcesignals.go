package sched

import (
	"fmt"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Signals under a schedule: a thread gets one when it is that one's turn, at the
// recorded instruction, or in the system call or wait that it interrupted.

// interrupts tells whether an operation is a signal that comes in a system call or in
// a wait.
func interrupts(o *event.Operation) bool {
	return o != nil && o.Part == event.SignalPart && o.Result == event.Interrupted
}

// Signalled implements SignalController.
func (e *Enforcer) Signalled(g *Gate, s *event.Signal) {
	n, ok := e.find(s.Thread)
	if !ok || e.left != "" || !e.acts(n) {
		return
	}
	o := &e.plan.s.Operations[e.next]
	if o.Part != event.SignalPart || o.Number != uint64(s.Number) {
		return
	}
	e.threads[n].total = s.Instructions
	e.complete(g, n)
}

// what names what an action is for.
func (a *action) what() string {
	if a.kind == deliver {
		return "a signal"
	}
	return fmt.Sprintf("constraint %d", a.of)
}
