package kernel

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// cpuClockID names the thread or process whose processor time a clock counts.
type cpuClockID struct {
	proc     *Process
	thread   *Task // nil: all threads of the process, dead ones included
	userOnly bool
}

// readClock returns the clock in nanoseconds.
func (c cpuClockID) readClock() int64 {
	user, system := c.proc.coreTimes()
	if c.thread != nil {
		user, system = c.thread.userTime, c.thread.kernelTime
	}
	if c.userOnly {
		system = 0
	}
	return c.proc.k.cyclesToNS(user + system)
}

// cpuTimer is a timer on a processor-time clock. It is checked each time a thread of the clock's
// process has run.
type cpuTimer struct {
	clock    cpuClockID
	deadline int64 // ns of the clock
	target   expirer
}

// armTimer makes a timer that expires when the clock reaches the deadline.
func (c cpuClockID) armTimer(deadline int64, target expirer) *cpuTimer {
	x := &cpuTimer{c, deadline, target}
	c.proc.cpuTimers = append(c.proc.cpuTimers, x)
	return x
}

// disarm removes the timer, if it is armed.
func (x *cpuTimer) disarm() {
	p := x.clock.proc
	p.cpuTimers = slices.DeleteFunc(p.cpuTimers, func(o *cpuTimer) bool { return o == x })
}

// runCPUTimers expires the timers that are due, in the order in which they were armed.
func (p *Process) runCPUTimers() {
	for _, c := range slices.Clone(p.cpuTimers) {
		if c.clock.readClock() >= c.deadline {
			c.disarm()
			c.target.expire(p.k)
		}
	}
}

// sleepOnCPU waits until the clock has advanced by ns or, if absolute, has reached ns. If every
// thread of a clock sleeps on it, none wakes.
func (t *Task) sleepOnCPU(c cpuClockID, ns int64, absolute bool, remaining arch.Addr) (uint64, unix.Errno) {
	if t.call.deadline == 0 {
		t.call.deadline = ns
		if !absolute {
			t.call.deadline = saturatingAdd(c.readClock(), ns)
		}
	}
	left := t.call.deadline - c.readClock()
	switch {
	case left <= 0:
		return 0, 0
	case !t.isSignalReady() && !t.job.isPending():
		t.waiting.cpu = c.armTimer(t.call.deadline, t)
		t.blockUntil(forever)
		return 0, errBlocked
	case remaining != 0:
		if errno := t.writeTimespec(remaining, left); errno != 0 {
			return 0, errno
		}
	}
	if absolute {
		return 0, errInterrupted
	}
	return 0, errRestartBlock
}

// profTimer is ITIMER_VIRTUAL or ITIMER_PROF.
type profTimer struct {
	proc     *Process
	clock    cpuClockID
	signal   unix.Signal
	armed    *cpuTimer
	interval int64
}

func (x *profTimer) expire(k *Kernel) {
	x.armed = nil
	if x.interval > 0 {
		x.armed = x.clock.armTimer(x.clock.readClock()+x.interval, x)
	}
	k.sendProcess(x.proc, signalInfo(x.signal, siKernel))
}

// profTimer returns the timer that setitimer calls which.
func (p *Process) profTimer(which uint64) *profTimer {
	x := &p.prof[which-unix.ITIMER_VIRTUAL]
	if x.proc == nil {
		*x = profTimer{proc: p, signal: unix.SIGVTALRM, clock: cpuClockID{proc: p, userOnly: true}}
		if which == unix.ITIMER_PROF {
			x.signal, x.clock.userOnly = unix.SIGPROF, false
		}
	}
	return x
}

func (x *profTimer) remaining() (value, interval int64) {
	if x.armed == nil {
		return 0, 0
	}
	return max(1, x.armed.deadline-x.clock.readClock()), x.interval
}

func (x *profTimer) setValue(value, interval int64) (oldValue, oldInterval int64) {
	oldValue, oldInterval = x.remaining()
	if x.armed != nil {
		x.armed.disarm()
		x.armed = nil
	}
	x.interval = interval
	if value > 0 {
		x.armed = x.clock.armTimer(x.clock.readClock()+value, x)
	}
	return oldValue, oldInterval
}

// Kinds of processor-time clocks, in the lowest two bits of their ids
// (include/linux/posix-timers.h): all time by the tick, user time by the tick, or all time exactly.
const (
	cpuClockProf      = 0
	cpuClockVirt      = 1
	cpuClockSched     = 2
	cpuClockPerThread = 4
)

// cpuClock finds the thread or process whose time a clock id counts: CLOCK_PROCESS_CPUTIME_ID,
// CLOCK_THREAD_CPUTIME_ID, or the complement of a process or thread id above three bits of kind
// (clock_getcpuclockid). ok is false for any other clock. A caller that only reads may name its own
// process by any of its threads.
func (t *Task) cpuClock(id int32, read bool) (c cpuClockID, ok bool) {
	switch {
	case id == unix.CLOCK_PROCESS_CPUTIME_ID:
		return cpuClockID{proc: t.proc}, true
	case id == unix.CLOCK_THREAD_CPUTIME_ID:
		return cpuClockID{proc: t.proc, thread: t}, true
	case id >= 0, id&3 > cpuClockSched:
		return c, false
	}
	pid := ^(id >> 3)
	c = cpuClockID{proc: t.proc, userOnly: id&3 == cpuClockVirt}
	switch {
	case id&cpuClockPerThread != 0:
		if c.thread = t; pid != 0 {
			c.thread = t.k.tasks.At(arch.ThreadID(pid))
		}
		return c, c.thread != nil && c.thread.proc == t.proc
	case pid != 0 && (!read || pid != int32(t.id)):
		c.proc = t.k.processes[pid]
	}
	return c, c.proc != nil
}
