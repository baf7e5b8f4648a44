package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// clockTicks converts virtual cycles to units of 1/100 s, the unit of times(2).
func (k *Kernel) clockTicks(c arch.Cycles) int64 { return k.cyclesToNS(c) / 1e7 }

func (k *Kernel) cyclesToNS(c arch.Cycles) int64 {
	mhz := uint64(k.costs.MHz)
	return int64(uint64(c)/mhz*1000 + uint64(c)%mhz*1000/mhz)
}

// tickNS is the resolution of clocks that advance with the timer interrupt, of which Debian's
// kernels have 250 a second.
const tickNS = 4e6

// ClockNS is the time of a clock (clock_gettime(2)) in nanoseconds as the thread would read it; an
// unknown clock has 0.
func (t *Task) ClockNS(id int32) int64 {
	ns, errno := t.readClock(id)
	if errno != 0 {
		return 0
	}
	return ns
}

// readClock reads a clock in nanoseconds.
func (t *Task) readClock(id int32) (int64, unix.Errno) {
	k := t.k
	switch id {
	case unix.CLOCK_REALTIME, unix.CLOCK_REALTIME_COARSE, unix.CLOCK_REALTIME_ALARM:
		return k.RealtimeNS(), 0
	case unix.CLOCK_TAI:
		return k.RealtimeNS() + int64(k.realtime.tai)*second, 0
	case unix.CLOCK_MONOTONIC, unix.CLOCK_MONOTONIC_RAW, unix.CLOCK_MONOTONIC_COARSE, unix.CLOCK_BOOTTIME,
		unix.CLOCK_BOOTTIME_ALARM:
		return k.uptime(), 0
	}
	if c, ok := t.cpuClock(id, true); ok {
		return c.readClock(), 0
	}
	return 0, unix.EINVAL
}

// bootNS is the time since boot at the start of a run, so that "n seconds ago" is a valid time.
const bootNS = 1000 * second

// uptime is CLOCK_MONOTONIC: the run's clock plus bootNS.
func (k *Kernel) uptime() int64 { return bootNS + k.override.Clock(k.readClock()) }

func sysClockGettime(t *Task, a [6]uint64) (uint64, unix.Errno) {
	ns, errno := t.readClock(int32(a[0]))
	if errno != 0 {
		return 0, errno
	}
	return 0, t.writeTimespec(arch.Addr(a[1]), ns)
}

func sysClockGetres(t *Task, a [6]uint64) (uint64, unix.Errno) {
	id := int32(a[0])
	if _, errno := t.readClock(id); errno != 0 {
		return 0, errno
	}
	ns := int64(1)
	if id == unix.CLOCK_REALTIME_COARSE || id == unix.CLOCK_MONOTONIC_COARSE || id < 0 && id&3 != cpuClockSched {
		ns = tickNS
	}
	if a[1] == 0 {
		return 0, 0
	}
	return 0, t.writeTimespec(arch.Addr(a[1]), ns)
}

func sysClockSettime(t *Task, a [6]uint64) (uint64, unix.Errno) {
	// No thread can set the other clocks.
	if int32(a[0]) != unix.CLOCK_REALTIME {
		return 0, unix.EINVAL
	}
	ns, errno := t.readTimespec(arch.Addr(a[1]))
	if errno != 0 {
		return 0, errno
	}
	return 0, t.setRealtime(ns)
}

func sysGettimeofday(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[0] != 0 {
		// Rounded down: rounded up, it would be a time in the future.
		now := t.k.RealtimeNS()
		tv := unix.Timeval{Sec: now / second, Usec: now % second / microsecond}
		if errno := writeStruct(t, arch.Addr(a[0]), &tv); errno != 0 {
			return 0, errno
		}
	}
	if a[1] != 0 {
		return 0, writeStruct(t, arch.Addr(a[1]), &t.k.realtime.zone)
	}
	return 0, 0
}

func sysTime(t *Task, a [6]uint64) (uint64, unix.Errno) {
	now := uint64(t.k.RealtimeNS() / second)
	if a[0] != 0 {
		return now, t.proc.space.WriteU64(arch.Addr(a[0]), now)
	}
	return now, 0
}

func sysNanosleep(t *Task, a [6]uint64) (uint64, unix.Errno) {
	ns, errno := t.readTimespec(arch.Addr(a[0]))
	if errno != 0 {
		return 0, errno
	}
	return t.sleepUntil(t.relativeDeadline(ns), arch.Addr(a[1]), errRestartBlock)
}

// timerAbsolute is the flag TIMER_ABSTIME.
const timerAbsolute = 1

func sysClockNanosleep(t *Task, a [6]uint64) (uint64, unix.Errno) {
	id := int32(a[0])
	if errno := t.maySleepOn(id); errno != 0 {
		return 0, errno
	}
	ns, errno := t.readTimespec(arch.Addr(a[2]))
	if errno != 0 {
		return 0, errno
	}
	remaining := arch.Addr(a[3])
	if a[1]&timerAbsolute != 0 {
		remaining = 0
	}
	if c, ok := t.cpuClock(id, false); ok {
		return t.sleepOnCPU(c, ns, a[1]&timerAbsolute != 0, remaining)
	}
	if a[1]&timerAbsolute != 0 {
		t.call.onRealtime = isRealtimeClock(id)
		return t.sleepUntil(t.k.toRunClock(id, ns), 0, errInterrupted)
	}
	return t.sleepUntil(t.relativeDeadline(ns), remaining, errRestartBlock)
}

// maySleepOn checks that a thread can sleep on a clock: not on its own processor time, nor on a
// clock that can only be read.
func (t *Task) maySleepOn(id int32) unix.Errno {
	switch id {
	case unix.CLOCK_REALTIME, unix.CLOCK_MONOTONIC, unix.CLOCK_BOOTTIME, unix.CLOCK_TAI, unix.CLOCK_PROCESS_CPUTIME_ID:
		return 0
	}
	if id >= 0 {
		if _, errno := t.readClock(id); errno != 0 {
			return errno
		}
		return unix.EOPNOTSUPP
	}
	if c, ok := t.cpuClock(id, false); !ok || c.thread == t {
		return unix.EINVAL
	}
	return 0
}

// sleepUntil waits for the deadline; if a signal ends the sleep, the time left is stored.
func (t *Task) sleepUntil(deadline int64, remaining arch.Addr, restart unix.Errno) (uint64, unix.Errno) {
	switch errno := t.waitInterruptibly(restart, deadline); errno {
	case unix.ETIMEDOUT:
		return 0, 0
	case restart:
		if remaining != 0 {
			if errno := t.writeTimespec(remaining, max(0, deadline-t.k.clock.now)); errno != 0 {
				return 0, errno
			}
		}
		return 0, errno
	default:
		return 0, errno
	}
}

// itimer is the process's ITIMER_REAL. After it has expired it is armed again when the process
// takes the SIGALRM: until then further expirations have no visible effect.
type itimer struct {
	proc     *Process
	timer    *timer // nil: not armed
	deadline int64
	interval int64
}

func (i *itimer) expire(k *Kernel) {
	i.timer = nil
	k.sendProcess(i.proc, signalInfo(unix.SIGALRM, siKernel))
	if !i.proc.signals.set.has(int(unix.SIGALRM)) && !i.proc.discardsSignal(int(unix.SIGALRM), i.proc.blockedByAll()) {
		i.rearm() // Deliver has delivered it before it arrived
	}
}

func (i *itimer) timerName() timerName { return timerName{intervalTimer, arch.ThreadID(i.proc.pid), 0} }

// rearm arms a timer that has expired for its next expiration.
func (i *itimer) rearm() {
	if i.timer != nil || i.interval == 0 {
		return
	}
	turns := (i.proc.k.clock.now-i.deadline)/i.interval + 1
	i.deadline = saturatingAdd(i.deadline, turns*i.interval)
	i.timer = i.proc.k.clock.timers.add(i.deadline, i)
}

func (p *Process) cancelTimers() {
	p.stopItimer()
	p.deleteTimers()
	p.cpuTimers = nil
}

func (p *Process) stopItimer() {
	if p.itimer != nil && p.itimer.timer != nil {
		p.itimer.timer.cancel()
	}
	p.itimer = nil
}

// setItimer arms ITIMER_REAL and returns the time that was left of it.
func (p *Process) setItimer(value, interval int64) (oldValue, oldInterval int64) {
	oldValue, oldInterval = p.getItimer()
	p.stopItimer()
	if value > 0 {
		i := &itimer{proc: p, deadline: saturatingAdd(p.k.clock.now, value), interval: interval}
		i.timer = p.k.clock.timers.add(i.deadline, i)
		p.itimer = i
	}
	return oldValue, oldInterval
}

func (p *Process) getItimer() (value, interval int64) {
	if p.itimer == nil {
		return 0, 0
	}
	if p.itimer.timer == nil {
		return 0, p.itimer.interval
	}
	return max(microsecond, p.itimer.deadline-p.k.clock.now), p.itimer.interval
}

func sysAlarm(t *Task, a [6]uint64) (uint64, unix.Errno) {
	old, _ := t.proc.setItimer(int64(uint32(a[0]))*second, 0)
	return uint64((old + second/2) / second), 0
}

type itimerval struct{ Interval, Value unix.Timeval }

func makeItimerval(value, interval int64) itimerval {
	return itimerval{unix.NsecToTimeval(interval), unix.NsecToTimeval(value)}
}

func sysGetitimer(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[0] > 2 {
		return 0, unix.EINVAL
	}
	var v itimerval
	if a[0] == unix.ITIMER_REAL {
		v = makeItimerval(t.proc.getItimer())
	} else {
		v = makeItimerval(t.proc.profTimer(a[0]).remaining())
	}
	return 0, writeStruct(t, arch.Addr(a[1]), &v)
}

func sysSetitimer(t *Task, a [6]uint64) (uint64, unix.Errno) {
	var value, interval int64
	if a[1] != 0 {
		var errno unix.Errno
		if interval, errno = t.readTimeval(arch.Addr(a[1])); errno != 0 {
			return 0, errno
		}
		if value, errno = t.readTimeval(arch.Addr(a[1] + 16)); errno != 0 {
			return 0, errno
		}
	}
	if a[0] > 2 {
		return 0, unix.EINVAL
	}
	var old itimerval
	if a[0] == unix.ITIMER_REAL {
		old = makeItimerval(t.proc.setItimer(value, interval))
	} else {
		old = makeItimerval(t.proc.profTimer(a[0]).setValue(value, interval))
	}
	if a[2] != 0 {
		return 0, writeStruct(t, arch.Addr(a[2]), &old)
	}
	return 0, 0
}

// makeRusage fills in the times; the other fields of struct rusage depend on the host.
func (k *Kernel) makeRusage(user, system arch.Cycles) unix.Rusage {
	return unix.Rusage{
		Utime: unix.NsecToTimeval(k.cyclesToNS(user)), Stime: unix.NsecToTimeval(k.cyclesToNS(system)),
		Maxrss: 4096,
	}
}

func sysGetrusage(t *Task, a [6]uint64) (uint64, unix.Errno) {
	var user, system arch.Cycles
	switch int32(a[0]) {
	case unix.RUSAGE_SELF:
		user, system = t.proc.coreTimes()
	case unix.RUSAGE_CHILDREN:
		user, system = t.proc.childUser, t.proc.childKernel
	case unix.RUSAGE_THREAD:
		user, system = t.userTime, t.kernelTime
	default:
		return 0, unix.EINVAL
	}
	usage := t.k.makeRusage(user, system)
	return 0, writeStruct(t, arch.Addr(a[1]), &usage)
}

func sysTimes(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[0] != 0 {
		user, system := t.proc.coreTimes()
		tms := [4]int64{
			t.k.clockTicks(user), t.k.clockTicks(system),
			t.k.clockTicks(t.proc.childUser), t.k.clockTicks(t.proc.childKernel),
		}
		if errno := writeStruct(t, arch.Addr(a[0]), &tms); errno != 0 {
			return 0, errno
		}
	}
	return uint64(t.k.uptime() / 1e7), 0
}

var _ vfs.Clock = (*Kernel)(nil)
