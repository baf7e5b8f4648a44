package kernel

import (
	"math"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// Results of handlers that are not errnos of the guest. The numbers of the restart codes are
// Linux's (include/linux/errno.h).
const (
	// errBlocked: the task waits, and the handler will be called again.
	errBlocked unix.Errno = 4096
	// errRestart: a signal arrived first. EINTR if its handler does not have SA_RESTART.
	errRestart unix.Errno = 512
	// errNoInterrupt: a signal arrived first. The call is restarted after any handler.
	errNoInterrupt unix.Errno = 513
	// errInterrupted is like errRestart, but EINTR after any handler.
	errInterrupted unix.Errno = 514
	// errRestartBlock is like errInterrupted; a restarted call waits for the remaining time, which
	// Linux keeps in a restart block (restart_syscall(2)).
	errRestartBlock unix.Errno = 516
	// errNoReturn: the registers are set already, as by rt_sigreturn.
	errNoReturn unix.Errno = 4097
	// errReplaced: another program has replaced the caller.
	errReplaced unix.Errno = 4098
)

// forever is a deadline that never passes.
const forever int64 = math.MaxInt64

// waitState is what a blocked task waits for.
type waitState struct {
	queues []*wait.Queue
	timer  *timer
	cpu    *cpuTimer
}

// callState is the system call that a task is in. It lasts from the SYSCALL instruction to the
// return, over any number of attempts.
type callState struct {
	active   bool
	admitted bool // admitCall has let it pass
	number   uint64
	args     [6]uint64
	attempt  int        // number of earlier attempts
	deadline int64      // absolute, once computed; 0 before
	progress int        // bytes or items transferred by earlier attempts
	restart  unix.Errno // result of the last attempt, which did not complete
	expired  bool       // its wait has timed out, whatever its deadline: ExpireWait
	futex    *futexWaiter
	opened   *vfs.File // waits for the other end of a FIFO, or for the end of a lease
	data     any
	stopped  bool // its wait is over as if a signal had interrupted it: a stop signal has, or InterruptWait

	onRealtime bool // its deadline is a time on CLOCK_REALTIME, which may be set

	entered  bool // its tracer has been notified, if it has asked for that
	emulated bool // its tracer carries it out
	asked    bool // its tracer has been asked about it for a seccomp filter

	notification *notification // sent to a listener of a seccomp filter
	listener     *seccompListener
}

// abandoner is the state of a system call (callState.data) to which kernel objects refer while the
// call waits. Abandon is called if the thread ends in the call.
type abandoner interface{ Abandon() }

// waitInterruptibly blocks the task until one of the queues is woken, the deadline passes or a
// signal is to be delivered. It never returns success: the handler returns its result, and is
// called again later. restart is the result if a signal arrives: errRestart, errNoInterrupt,
// errInterrupted, errRestartBlock or EINTR.
func (t *Task) waitInterruptibly(restart unix.Errno, deadline int64, queues ...*wait.Queue) unix.Errno {
	if t.isSignalReady() || t.job.isPending() || t.call.stopped {
		t.call.stopped = false
		return restart
	}
	if t.hasTimedOut(deadline) {
		return unix.ETIMEDOUT
	}
	t.blockUntil(deadline, queues...)
	return errBlocked
}

// blockUntil takes the task off its core until it is woken or the deadline passes.
func (t *Task) blockUntil(deadline int64, queues ...*wait.Queue) {
	for _, q := range queues {
		q.Add(t)
	}
	t.waiting.queues = queues
	if deadline != forever && !t.ignoresTimeout() {
		t.waiting.timer = t.k.clock.timers.add(deadline, t)
	}
	t.state = blocked
	t.waits++
	t.k.sched.Block(t.id)
}

// Wake makes the task runnable if it is blocked; the handler of its system call is then called
// again. A spurious wake-up is harmless.
func (t *Task) Wake(uint32) {
	if t.state != blocked {
		return
	}
	t.clearWait()
	t.state = running
	t.k.sched.Ready(t.id)
}

func (t *Task) clearWait() {
	for _, q := range t.waiting.queues {
		q.Remove(t)
	}
	t.waiting.queues = nil
	if t.waiting.timer != nil {
		t.waiting.timer.cancel()
		t.waiting.timer = nil
	}
	if t.waiting.cpu != nil {
		t.waiting.cpu.disarm()
		t.waiting.cpu = nil
	}
}

// expire is called when the task's deadline passes.
func (t *Task) expire(*Kernel) {
	t.waiting.timer = nil
	t.Wake(wait.AnyEvent)
}

func (t *Task) timerName() timerName { return timerName{taskTimer, t.id, t.call.number} }

// relativeDeadline returns the absolute deadline of a call with a relative time-out, computed at
// the first attempt.
func (t *Task) relativeDeadline(ns int64) int64 {
	if t.call.deadline == 0 {
		t.call.deadline = saturatingAdd(t.k.clock.now, ns)
	}
	return t.call.deadline
}

func saturatingAdd(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
