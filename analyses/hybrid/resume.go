package hybrid

import (
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// kernelWaits is what is known of the waits for a futex within an operation on a condition. The thread changes the
// condition between two of them: after its time is up or it was signaled, it takes itself off the condition, and
// waits for the mutex.
type kernelWaits struct {
	woken  bool  // a wait has ended
	result int64 // of the last that has
	// resume is the index of the ResumePart that ends with the wait that is under way, if any (resumes). The
	// thread's last operation and its instructions before that are kept, since it is no part if the call does
	// not wait.
	resumes bool
	resume  int
	last    int
	base    uint64
}

// Results of futex(2) with FUTEX_WAIT.
const (
	futexWoken    = 0
	futexChanged  = -11  // EAGAIN: it did not wait
	futexTimedOut = -110 // ETIMEDOUT
)

// waitsOf are the waits of the innermost operation of a thread, if it is one on a condition and has begun.
func (t *orderThread) waitsOf(e *event.Syscall) (*openOperation, *kernelWaits) {
	if e.Number != linux.Futex || !t.isInsideOperation() {
		return nil, nil
	}
	c := &t.open[len(t.open)-1]
	if c.beginIndex < 0 || !isOnCondition(c.op) || !linux.FutexWaits(e.Args[1]&linux.FutexOperation) {
		return nil, nil
	}
	return c, &c.waits
}

func isOnCondition(op event.SyncOp) bool {
	switch op {
	case event.OpCondWait, event.OpCondTimedWait, event.OpCondClockWait, event.OpC11CndWait, event.OpC11CndTimedWait,
		event.OpCondSignal, event.OpCondBroadcast, event.OpC11CndSignal, event.OpC11CndBroadcast:
		return true
	}
	return false
}

// beginKernelWait takes the issue of a system call within an operation: another wait ends the part that began with
// the end of the one before.
func (o *OrderBuilder) beginKernelWait(n int, e *event.Syscall) {
	t := o.threads[n]
	c, w := t.waitsOf(e)
	if w == nil || !w.woken {
		return
	}
	w.last, w.base, w.resumes = t.last, t.base, true
	w.resume = o.addOperation(e.Stamp, event.Operation{Thread: n, Part: event.ResumePart, Op: c.op, Object: o.s.Operations[c.entry].Object, Result: w.result})
	o.addMark(e.Stamp, Mark{Thread: n, Position: w.resume, Open: true})
}

// endKernelWait takes the return of a system call within an operation.
func (o *OrderBuilder) endKernelWait(n int, e *event.Syscall) {
	t := o.threads[n]
	c, w := t.waitsOf(e)
	if w == nil {
		return
	}
	switch result := int64(e.Result); result {
	case futexWoken, futexTimedOut:
		w.woken, w.result = true, result
		c.split = true
	case futexChanged:
		if w.resumes {
			o.dropped[w.resume], t.last, t.base = true, w.last, w.base
		}
	}
	w.resumes = false
}
