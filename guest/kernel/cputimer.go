package kernel

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// cpuClockID says whose time on a core a timer counts.
type cpuClockID struct {
	thread   *Task // nil: all threads of the process, dead ones included
	userOnly bool
}

// read returns the clock in nanoseconds.
func (c cpuClockID) read(p *Process) int64 {
	user, system := p.times()
	if c.thread != nil {
		user, system = c.thread.userTime, c.thread.kernelTime
	}
	if c.userOnly {
		system = 0
	}
	return p.k.cyclesToNS(user + system)
}

// cpuTimer is armed on a processor-time clock. It is looked at whenever a
// thread of the process has run.
type cpuTimer struct {
	clock    cpuClockID
	deadline int64 // ns of the clock
	target   expirer
}

func (p *Process) addCPUTimer(clock cpuClockID, deadline int64, target expirer) *cpuTimer {
	c := &cpuTimer{clock, deadline, target}
	p.cpuTimers = append(p.cpuTimers, c)
	return c
}

func (p *Process) removeCPUTimer(c *cpuTimer) {
	p.cpuTimers = slices.DeleteFunc(p.cpuTimers, func(o *cpuTimer) bool { return o == c })
}

// runCPUTimers lets the timers that are due run out, in the order in which they
// were armed.
func (p *Process) runCPUTimers() {
	for _, c := range slices.Clone(p.cpuTimers) {
		if c.clock.read(p) >= c.deadline {
			p.removeCPUTimer(c)
			c.target.expire(p.k)
		}
	}
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
		x.armed = x.proc.addCPUTimer(x.clock, x.clock.read(x.proc)+x.interval, x)
	}
	k.sendProcess(x.proc, signalInfo(x.signal, siKernel))
}

// profTimer returns the timer of setitimer's which.
func (p *Process) profTimer(which uint64) *profTimer {
	x := &p.prof[which-unix.ITIMER_VIRTUAL]
	if x.proc == nil {
		*x = profTimer{proc: p, signal: unix.SIGVTALRM, clock: cpuClockID{userOnly: true}}
		if which == unix.ITIMER_PROF {
			x.signal, x.clock.userOnly = unix.SIGPROF, false
		}
	}
	return x
}

func (x *profTimer) get() (value, interval int64) {
	if x.armed == nil {
		return 0, 0
	}
	return max(1, x.armed.deadline-x.clock.read(x.proc)), x.interval
}

func (x *profTimer) set(value, interval int64) (oldValue, oldInterval int64) {
	oldValue, oldInterval = x.get()
	if x.armed != nil {
		x.proc.removeCPUTimer(x.armed)
		x.armed = nil
	}
	x.interval = interval
	if value > 0 {
		x.armed = x.proc.addCPUTimer(x.clock, x.clock.read(x.proc)+value, x)
	}
	return oldValue, oldInterval
}

// cpuClockOf finds whose time a clock id counts; ok is false for a clock that
// is not of that kind.
func (t *Task) cpuClockOf(id int32) (c cpuClockID, ok bool) {
	switch {
	case id == unix.CLOCK_PROCESS_CPUTIME_ID:
		return cpuClockID{}, true
	case id == unix.CLOCK_THREAD_CPUTIME_ID:
		return cpuClockID{thread: t}, true
	case id >= 0:
		return c, false
	}
	pid := ^(id >> 3)
	if id&4 == 0 {
		return c, pid == 0 || pid == t.proc.pid
	}
	c.thread = t
	if pid != 0 {
		c.thread = t.k.tasks[event.ThreadID(pid)]
	}
	return c, c.thread != nil && c.thread.proc == t.proc
}
