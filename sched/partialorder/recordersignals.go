package partialorder

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// Signals in a thread-parallel replica. A signal that arrives in a thread's own code has its place
// by instructions. A signal that arrives in a system call has its place before the call if the call
// is restarted; otherwise it comes after the call, which returns its recorded result. A signal that
// arrives in an operation is placed before the operation if the operation continues unaffected. If
// it may end the operation, or the thread has released a mutex meanwhile, it is delivered when the
// thread waits there in the other replicas as well.

func (t *recordedThread) inCall() bool { return inCall(t.open) }

// HoldsSignals implements Controller. A thread that was held before an operation which a signal
// does not affect gets no signals in it, since they would have to come before.
func (r *Recorder) HoldsSignals(id arch.ThreadID) bool {
	n, ok := r.byID[id]
	if !ok {
		return false
	}
	t := r.threads[n]
	t.signals.withheld = !r.allowsSignals && t.startedHeld()
	return t.signals.withheld
}

// startedHeld reports whether a thread is in such an operation.
func (t *recordedThread) startedHeld() bool {
	k := len(t.open)
	return k > 0 && t.issuedAt == 0 && t.open[k-1].Kind == WholeStep && !isSemaphoreWait(t.open[k-1].Op)
}

// AllowSignals delivers the signals that are withheld, if there are any, since other threads may
// wait for their effect. It reports whether there are.
func (r *Recorder) AllowSignals() bool {
	if r.allowsSignals || !slices.ContainsFunc(r.threads, func(t *recordedThread) bool { return t.state.isAlive() && t.signals.withheld }) {
		return false
	}
	r.allowsSignals = true
	return true
}

// maxHandlerSteps is the number of steps after which a thread is taken to have left its handlers,
// by a jump instead of a return.
const maxHandlerSteps = 256

// staysInHandler counts a step of a thread while an epoch is to end, and reports whether the thread is
// in a handler: no epoch ends there, because the interrupted code has its state on the stack.
func (t *recordedThread) staysInHandler() bool {
	if t.signals.handlers == 0 {
		return false
	}
	if t.signals.handlerSteps++; t.signals.handlerSteps > maxHandlerSteps {
		t.signals.handlers = 0
	}
	return t.signals.handlers > 0
}

// noteHandlerReturn handles the return of a thread from its signal handler.
func (r *Recorder) noteHandlerReturn(id arch.ThreadID, instructions uint64) {
	if n, ok := r.byID[id]; ok {
		t := r.threads[n]
		t.signals.handlers, t.signals.handlerEnd = max(0, t.signals.handlers-1), instructions
		t.signals.resumesOperation = leaveHandler(&t.open)
	}
}

// MayRun implements Controller. A thread that continues in an operation after a handler acts on the same
// entities again.
func (r *Recorder) MayRun(id arch.ThreadID, instructions uint64) bool {
	n, ok := r.byID[id]
	if !ok {
		return true
	}
	t := r.threads[n]
	if t.cancel.paused = r.isBeingCancelled(id); t.cancel.paused {
		return false
	}
	if t.cancel.noticePending {
		r.addNotice(n, Step{Place: instructions - t.lastStepAt})
	}
	if !t.signals.resumesOperation {
		return true
	}
	t.signals.resumesOperation = false
	return r.continueAfterWait(n)
}

// noteSignal handles a signal that a thread has got.
func (r *Recorder) noteSignal(g *sched.Gate, e *event.Signal) {
	n, ok := r.byID[e.Thread]
	if !ok || len(e.Info) == 0 {
		return
	}
	t := r.threads[n]
	t.signals.handlers, t.signals.handlerSteps = t.signals.handlers+1, 0
	if t.next.Kind == AtomicStep && t.state == running {
		r.releaseAll(g, n, t.next.entities) // the instruction is executed again
		t.next = Step{}
	}
	if t.signals.pending != nil {
		r.restartCall(g, n)
	}
	r.completeCancelBegins()
	s := Step{
		Kind: SignalStep, Number: uint64(e.Number), Writes: []event.Write{{Data: slices.Clone(e.Info)}}, entities: kernelOnly,
	}
	switch {
	case t.inSystemCall:
		t.signals.pending = &s
		return
	case inOperation(t.open):
		r.interruptOperation(g, n, s)
	default:
		s.Place = e.Instructions - t.lastStepAt
		r.addSignal(n, s)
		nestHandler(&t.open)
	}
	t.lastStepAt = e.Instructions
}

// addSignal gives a signal its place in the order.
func (r *Recorder) addSignal(n int, s Step) {
	o := openStep{Step: s, index: -1}
	t := r.threads[n]
	t.reserveStep(&o)
	r.completeStep(n, &o)
	t.unordered = 0
	if s.Number == sigCancel {
		r.setMeetingPoint(n, o.index)
	}
}

// completeBegin completes the part of an operation before its wait.
func (r *Recorder) completeBegin(n int, o *openStep) {
	if o.Kind == BeginStep && !o.beginDone {
		r.completeStep(n, o)
		o.beginDone = true
	}
}

// restartCall handles an interrupted system call that is restarted, or abandoned.
func (r *Recorder) restartCall(g *sched.Gate, n int) {
	t := r.threads[n]
	s := *t.signals.pending
	t.signals.pending, t.inSystemCall = nil, false
	s.Within, s.Place = true, t.issuedAt-t.lastStepAt
	if t.issuedAt == 0 {
		s.Place = 0
	}
	if t.inCall() {
		o := t.open[len(t.open)-1]
		t.open = t.open[:len(t.open)-1]
		t.withdrawStep(&o)
		r.releaseAll(g, n, o.entities)
	}
	r.addSignal(n, s)
	nestHandler(&t.open)
	t.lastStepAt = t.issuedAt
}

// withdrawStep removes a step if it is the thread's last.
func (t *recordedThread) withdrawStep(o *openStep) {
	if o.index >= 0 && o.index == len(t.steps)-1 {
		t.steps = t.steps[:o.index]
		o.index = -1
	}
}

// completeInterrupted handles a system call that a signal has ended.
func (r *Recorder) completeInterrupted(g *sched.Gate, n int, result uint64) {
	t := r.threads[n]
	s := *t.signals.pending
	t.signals.pending = nil
	switch {
	case t.inCall() && t.open[len(t.open)-1].Kind == CalledStep, !t.inCall() && t.issuedAt == 0:
		s.Within = true
		r.addSignal(n, s)
		if t.inCall() {
			r.finishInnermost(g, n, result)
		}
	default:
		if !t.inCall() {
			t.open = append(t.open, openStep{Step: t.next, index: -1})
		}
		o := &t.open[len(t.open)-1]
		t.reserveStep(o)
		x := &t.steps[o.index]
		x.Interrupted, x.Place = true, t.issuedAt-t.lastStepAt
		r.finishInnermost(g, n, result)
		r.addSignal(n, s)
	}
	nestHandler(&t.open)
	t.lastStepAt = t.issuedAt
}

// interruptOperation handles a signal that arrives while the thread waits in an operation.
func (r *Recorder) interruptOperation(g *sched.Gate, n int, s Step) {
	t := r.threads[n]
	o := &t.open[len(t.open)-1]
	if !o.blocked {
		o.blocked = true
		r.releaseAll(g, n, o.entities)
	}
	switch {
	case o.signalsBefore:
		s.Place = t.signals.handlerEnd - t.lastStepAt // as soon as the handler has returned
	case o.Kind == WholeStep && !isSemaphoreWait(o.Op) && t.issuedAt > 0 && o.index == len(t.steps)-1:
		t.withdrawStep(o)
		o.signalsBefore = true
		s.Place = t.issuedAt - 1 - t.lastStepAt // before the instruction that calls it
	default:
		r.splitOperation(n, o)
		s.Within, s.entities = true, append(slices.Clone(o.entities), kernelOnly...)
	}
	r.addSignal(n, s)
	t.open = append(t.open, handlerStep)
	t.signals.entersHandler = true
}

// splitOperation gives the part of an operation before its wait a step of its own.
func (r *Recorder) splitOperation(n int, o *openStep) {
	t := r.threads[n]
	if o.Kind == WholeStep {
		t.reserveStep(o)
		o.Kind, o.Split = BeginStep, true
		x := &t.steps[o.index]
		x.Kind, x.Split = BeginStep, true
	}
	r.completeBegin(n, o)
}

// isSemaphoreWait reports whether a signal may end the wait.
func isSemaphoreWait(op event.SyncOp) bool {
	return op == event.OpSemWait || op == event.OpSemTimedWait || op == event.OpSemClockWait
}

// orderKill places a fatal signal after all steps of the other threads, unless it reports a
// failure, which depends on fewer of them.
func (r *Recorder) orderKill(n int) {
	t := r.threads[n]
	k := len(t.steps)
	if k == 0 || t.steps[k-1].Kind != SignalStep || IsFailureSignal(int(t.steps[k-1].Number)) {
		return
	}
	s := &t.steps[k-1]
	for m, x := range r.threads {
		if m != n {
			s.Clock = advanceComponent(s.Clock, m, uint32(len(completeSteps(x.steps))))
		}
	}
}

// IsFailureSignal reports whether a fatal signal reports a failure of the program: signals of the
// processor and of abort. Others are sent on purpose.
func IsFailureSignal(signal int) bool {
	switch signal {
	case linux.SIGSEGV, linux.SIGBUS, linux.SIGILL, linux.SIGFPE, linux.SIGABRT, linux.SIGTRAP, linux.SIGSYS:
		return true
	}
	return false
}
