package sched

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Signals of a thread-parallel replica. One that comes in a thread's own code has its
// place by instructions. One that comes in a system call does so, too, before the call,
// if that is made again; else it comes behind the call, which is answered as it was. One
// that comes in an operation is put before that if the operation goes on as if nothing had
// been; where it may end the operation, or the thread has given up a mutex meanwhile, it
// comes when the thread waits there in the other replicas as well.

// handler marks in a thread's open steps that it is in a handler.
var handler = opened{Step: Step{Kind: HandlerStep}, index: -1}

// leaveHandlers forgets the handlers that a thread is in within its innermost step,
// with which it goes on.
func leaveHandlers(open *[]opened) {
	for k := len(*open); k > 0 && (*open)[k-1].Kind == HandlerStep; k-- {
		*open = (*open)[:k-1]
	}
}

// leaveHandler has a thread leave its innermost handler, if that is within a step, and
// tells whether it goes on in that.
func leaveHandler(open *[]opened) bool {
	k := len(*open)
	if k == 0 || (*open)[k-1].Kind != HandlerStep {
		return false
	}
	*open = (*open)[:k-1]
	return inOperation(*open)
}

// nestHandler notes a signal that has come in a handler within a step.
func nestHandler(open *[]opened) {
	if k := len(*open); k > 0 && (*open)[k-1].Kind == HandlerStep {
		*open = append(*open, handler)
	}
}

// handles tells of a thread that goes on from a wait whether it does so in a handler
// within an operation: it is to go on there, or has waited there.
func handles(open *[]opened, handling *bool, inside bool) bool {
	k := len(*open)
	if k == 0 || (*open)[k-1].Kind != HandlerStep {
		*handling = false
		return false
	}
	if *handling || !inside {
		*handling = false
		return true
	}
	leaveHandlers(open)
	return false
}

// inCall tells whether the innermost step that a thread is in is a system call.
func inCall(open []opened) bool {
	k := len(open)
	return k > 0 && (open[k-1].Kind == CallStep || open[k-1].Kind == CalledStep)
}

// inOperation tells whether a thread is in an operation, not counting the routine of
// a once.
func inOperation(open []opened) bool {
	k := len(open)
	if k == 0 || inCall(open) || open[k-1].Kind == HandlerStep {
		return false
	}
	o := &open[k-1]
	return !once(o.Op) || !o.rests || o.waits
}

func (t *recorded) inCall() bool { return inCall(t.open) }

// KeepsSignals implements SignalKeeper.
func (r *OrderRecorder) KeepsSignals() {}

// HoldsSignals implements SignalHolder: threads that have stood before an operation in
// which a signal changes nothing get none in it, since it would have to come before.
func (r *OrderRecorder) HoldsSignals(id event.ThreadID) bool {
	n, ok := r.numbers[id]
	if !ok {
		return false
	}
	t := r.threads[n]
	t.holds = !r.letting && t.stood()
	return t.holds
}

// stood tells whether a thread is in such an operation.
func (t *recorded) stood() bool {
	k := len(t.open)
	return k > 0 && t.issued == 0 && t.open[k-1].Kind == WholeStep && !semaphores(t.open[k-1].Op)
}

// LetSignals has all threads get their signals, if some do not, which may be what the
// others wait for, and tells whether that is so.
func (r *OrderRecorder) LetSignals() bool {
	if r.letting || !slices.ContainsFunc(r.threads, func(t *recorded) bool { return !t.gone && t.holds }) {
		return false
	}
	r.letting = true
	return true
}

// mostHandled is how many steps a thread is in a handler at most, that may have left it
// otherwise than by returning.
const mostHandled = 256

// inHandler tells whether a thread is in a handler: no epoch ends there, where what the
// handler has interrupted is on the stack.
func (t *recorded) inHandler() bool {
	if t.handlers == 0 {
		return false
	}
	if t.since++; t.since > mostHandled {
		t.handlers = 0
	}
	return t.handlers > 0
}

// Handled implements HandlerController.
func (r *OrderRecorder) Handled(id event.ThreadID, instructions uint64) {
	if n, ok := r.numbers[id]; ok {
		t := r.threads[n]
		t.handlers, t.handled = max(0, t.handlers-1), instructions
		t.resumes = leaveHandler(&t.open)
	}
}

// May implements Pauser: a thread that goes on in an operation behind a handler acts on
// the same again.
func (r *OrderRecorder) May(id event.ThreadID, instructions uint64) bool {
	n, ok := r.numbers[id]
	if !ok {
		return true
	}
	t := r.threads[n]
	if t.paused = r.cancelled(id); t.paused {
		return false
	}
	if t.noticed {
		r.notice(n, Step{Place: instructions - t.base})
	}
	if !t.resumes {
		return true
	}
	t.resumes = false
	return r.wake(n)
}

// Signalled implements SignalController.
func (r *OrderRecorder) Signalled(g *Gate, e *event.Signal) {
	n, ok := r.numbers[e.Thread]
	if !ok || len(e.Info) == 0 {
		return
	}
	t := r.threads[n]
	t.handlers, t.since = t.handlers+1, 0
	if t.next.Kind == AtomicStep && t.stand == going {
		r.drop(g, n, t.next.on) // it comes to the instruction again
		t.next = Step{}
	}
	if t.signal != nil {
		r.restarts(g, n)
	}
	r.cancelling()
	s := Step{
		Kind: SignalStep, Number: uint64(e.Number), Writes: []event.Write{{Data: slices.Clone(e.Info)}}, on: kernelOnly,
	}
	switch {
	case t.calling:
		t.signal = &s
		return
	case inOperation(t.open):
		r.interrupts(g, n, s)
	default:
		s.Place = e.Instructions - t.base
		r.signal(n, s)
		nestHandler(&t.open)
	}
	t.base = e.Instructions
}

// signal gives a signal its place in the order.
func (r *OrderRecorder) signal(n int, s Step) {
	o := opened{Step: s, index: -1}
	t := r.threads[n]
	t.slot(&o)
	r.complete(n, &o)
	t.free = 0
	if s.Number == sigCancel {
		r.meets(n, o.index)
	}
}

// begun completes the part of an operation before it waits.
func (r *OrderRecorder) begun(n int, o *opened) {
	if o.Kind == BeginStep && !o.rests {
		r.complete(n, o)
		o.rests = true
	}
}

// restarts handles a thread whose system call, which a signal has interrupted, is
// made again later or never.
func (r *OrderRecorder) restarts(g *Gate, n int) {
	t := r.threads[n]
	s := *t.signal
	t.signal, t.calling = nil, false
	s.Within, s.Place = true, t.issued-t.base
	if t.issued == 0 {
		s.Place = 0
	}
	if t.inCall() {
		o := t.open[len(t.open)-1]
		t.open = t.open[:len(t.open)-1]
		t.takeBack(&o)
		r.drop(g, n, o.on)
	}
	r.signal(n, s)
	nestHandler(&t.open)
	t.base = t.issued
}

// takeBack takes a step's place back, which is the thread's last.
func (t *recorded) takeBack(o *opened) {
	if o.index >= 0 && o.index == len(t.steps)-1 {
		t.steps = t.steps[:o.index]
		o.index = -1
	}
}

// interrupted handles a thread whose system call was ended by a signal.
func (r *OrderRecorder) interrupted(g *Gate, n int, result uint64) {
	t := r.threads[n]
	s := *t.signal
	t.signal = nil
	switch {
	case t.inCall() && t.open[len(t.open)-1].Kind == CalledStep, !t.inCall() && t.issued == 0:
		s.Within = true
		r.signal(n, s)
		if t.inCall() {
			r.finish(g, n, result)
		}
	default:
		if !t.inCall() {
			t.open = append(t.open, opened{Step: t.next, index: -1})
		}
		o := &t.open[len(t.open)-1]
		t.slot(o)
		x := &t.steps[o.index]
		x.Interrupted, x.Place = true, t.issued-t.base
		r.finish(g, n, result)
		r.signal(n, s)
	}
	nestHandler(&t.open)
	t.base = t.issued
}

// interrupts handles a signal that comes while the thread waits in an operation.
func (r *OrderRecorder) interrupts(g *Gate, n int, s Step) {
	t := r.threads[n]
	o := &t.open[len(t.open)-1]
	if !o.waits {
		o.waits = true
		r.drop(g, n, o.on)
	}
	switch {
	case o.early:
		s.Place = t.handled - t.base // as soon as the handler is over
	case o.Kind == WholeStep && !semaphores(o.Op) && t.issued > 0 && o.index == len(t.steps)-1:
		t.takeBack(o)
		o.early = true
		s.Place = t.issued - 1 - t.base // before the instruction that calls it
	default:
		r.split(n, o)
		s.Within, s.on = true, append(slices.Clone(o.on), kernelOnly...)
	}
	r.signal(n, s)
	t.open = append(t.open, handler)
	t.handling = true
}

// split gives the part of an operation before it waits a place of its own.
func (r *OrderRecorder) split(n int, o *opened) {
	t := r.threads[n]
	if o.Kind == WholeStep {
		t.slot(o)
		o.Kind, o.Split = BeginStep, true
		x := &t.steps[o.index]
		x.Kind, x.Split = BeginStep, true
	}
	r.begun(n, o)
}

// semaphores tells which waits a signal may end.
func semaphores(op event.SyncOp) bool {
	return op == event.OpSemWait || op == event.OpSemTimedWait || op == event.OpSemClockWait
}

// killed has a signal that ends its process come behind all that threads did, unless
// it tells of a failure, which they may fail to do.
func (r *OrderRecorder) killed(n int) {
	t := r.threads[n]
	k := len(t.steps)
	if k == 0 || t.steps[k-1].Kind != SignalStep || Failure(int(t.steps[k-1].Number)) {
		return
	}
	s := &t.steps[k-1]
	for m, x := range r.threads {
		if m != n {
			s.Clock = ticked(s.Clock, m, uint32(len(whole(x.steps))))
		}
	}
}

// Failure tells which signals tell of a failure when they kill: the processor's and
// abort's. Others are sent on purpose.
func Failure(signal int) bool {
	switch unix.Signal(signal) {
	case unix.SIGSEGV, unix.SIGBUS, unix.SIGILL, unix.SIGFPE, unix.SIGABRT, unix.SIGTRAP, unix.SIGSYS:
		return true
	}
	return false
}
