package kernel

import (
	"math"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// Results of handlers that are no errno of the guest. The numbers of the
// restart codes are Linux's (include/linux/errno.h).
const (
	// errBlocked says that the task waits and the call is carried out again.
	errBlocked unix.Errno = 4096
	// errRestart says that a signal came first: EINTR if its handler does not
	// have SA_RESTART.
	errRestart unix.Errno = 512
	// errNoInterrupt says that a signal came first: the call is made anew after any
	// handler.
	errNoInterrupt unix.Errno = 513
	// errInterrupted is like errRestart, but EINTR with any handler.
	errInterrupted unix.Errno = 514
	// errRestartBlock is like errInterrupted; a call that is made anew waits for the
	// same time, which Linux keeps in a restart block (restart_syscall(2)).
	errRestartBlock unix.Errno = 516
	// errNoReturn says that the registers are set already, as by rt_sigreturn.
	errNoReturn unix.Errno = 4097
	// errReplaced says that another program is in place of the caller.
	errReplaced unix.Errno = 4098
)

// forever is a deadline that never comes.
const forever int64 = math.MaxInt64

// waitState is what a blocked task waits for.
type waitState struct {
	queues []*wait.Queue
	timer  *timer
	cpu    *cpuTimer
}

// callState is the system call that a task is in. It lasts from the SYSCALL
// instruction to the return, over any number of attempts.
type callState struct {
	active   bool
	admitted bool // nothing stands between it and its handler any more: admitCall
	number   uint64
	args     [6]uint64
	attempt  int        // how often the handler was called before
	deadline int64      // absolute, once computed; 0 before
	progress int        // bytes or items done by earlier attempts
	restart  unix.Errno // what the last attempt answered when it did not finish
	expired  bool       // its wait has timed out, whatever its deadline: Expire
	futex    *futexWaiter
	opened   *vfs.File // waits for the other end of a FIFO, or for the end of a lease
	data     any
	stopped  bool // a stop signal has interrupted its wait

	onRealtime bool // its deadline is a time on CLOCK_REALTIME, which may be set

	entered  bool // its tracer was told, if it wants to be
	emulated bool // its tracer carries it out
	asked    bool // its tracer was asked about it for a seccomp filter

	notification *notification // that a listener of a seccomp filter was sent about it
	listener     *seccompListener
}

// abandoner is a state of a system call (callState.data) that kernel objects
// refer to while the call waits. It is told when the thread ends in the call.
type abandoner interface{ Abandon() }

// wait blocks the task until one of the queues is woken, the deadline passes or
// a signal is to be delivered. It never returns success: the handler returns
// what it gets, and is called again later. restart is what a signal makes of
// the call: errRestart, errNoInterrupt, errInterrupted, errRestartBlock or EINTR.
func (t *Task) wait(restart unix.Errno, deadline int64, queues ...*wait.Queue) unix.Errno {
	if t.signalReady() || t.job.isPending() || t.call.stopped {
		t.call.stopped = false
		return restart
	}
	if t.timedOut(deadline) {
		return unix.ETIMEDOUT
	}
	t.block(deadline, queues...)
	return errBlocked
}

// block takes the task off its core until it is woken.
func (t *Task) block(deadline int64, queues ...*wait.Queue) {
	for _, q := range queues {
		q.Add(t)
	}
	t.waiting.queues = queues
	if deadline != forever {
		t.waiting.timer = t.k.timers.add(deadline, t)
	}
	t.state = blocked
	t.waits++
	t.k.sched.Block(t.id)
}

// Wake makes the task runnable if it is blocked; the system call it is in is
// then tried again. Being woken for nothing is harmless.
func (t *Task) Wake(uint32) {
	if t.state != blocked {
		return
	}
	t.unwait()
	t.state = running
	t.k.sched.Ready(t.id)
}

func (t *Task) unwait() {
	for _, q := range t.waiting.queues {
		q.Remove(t)
	}
	t.waiting.queues = nil
	if t.waiting.timer != nil {
		t.k.timers.cancel(t.waiting.timer)
		t.waiting.timer = nil
	}
	if t.waiting.cpu != nil {
		t.waiting.cpu.remove()
		t.waiting.cpu = nil
	}
}

// expire is called when the task's deadline passes.
func (t *Task) expire(*Kernel) {
	t.waiting.timer = nil
	t.Wake(wait.AnyEvent)
}

// deadlineIn returns the absolute deadline of a call with a relative time-out,
// computed at the first attempt.
func (t *Task) deadlineIn(ns int64) int64 {
	if t.call.deadline == 0 {
		t.call.deadline = saturatingAdd(t.k.now, ns)
	}
	return t.call.deadline
}

func saturatingAdd(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
