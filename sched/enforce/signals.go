package enforce

import (
	"fmt"

	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// Signals under a schedule: a thread gets a signal when it is the turn of that signal, at the
// recorded instruction, or in the system call or wait that it interrupted.

// isInterruption reports whether an operation is a signal that arrives in a system call or in a
// wait.
func isInterruption(o *event.Operation) bool {
	return o != nil && o.Part == event.SignalPart && o.Result == event.Interrupted
}

// noteSignal handles a signal that a thread has got.
func (e *Enforcer) noteSignal(g *sched.Gate, s *event.Signal) {
	n, ok := e.numberOf(s.Thread)
	if !ok || e.left != "" || !e.isActing(n) {
		return
	}
	o := &e.plan.s.Operations[e.next]
	if o.Part != event.SignalPart || o.Number != uint64(s.Number) {
		return
	}
	t := &e.threads[n]
	t.total = s.Instructions
	inCall := isInterruption(o) && t.place == sched.AtCall
	e.completeOperation(g, n)
	if position, next := e.nextOperation(n); inCall && position == e.next && failsInterrupted(next) {
		e.acting = true // the call that the signal has interrupted ends now
	}
}

// failsInterrupted reports whether an operation is a system call that failed with EINTR.
func failsInterrupted(o *event.Operation) bool {
	const eintr = 4
	return o != nil && o.Part == event.SystemCall && o.Result == -eintr
}

// describeAction names the purpose of an action.
func (a *action) describeAction() string {
	if a.kind == deliver {
		return "a signal"
	}
	return fmt.Sprintf("constraint %d", a.of)
}
