package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// clockTicks converts virtual cycles to units of 1/100 s, as times(2) counts.
func (k *Kernel) clockTicks(c event.Cycles) int64 { return k.cyclesToNS(c) / 1e7 }

func (k *Kernel) cyclesToNS(c event.Cycles) int64 {
	mhz := uint64(k.costs.MHz)
	return int64(uint64(c)/mhz*1000 + uint64(c)%mhz*1000/mhz)
}

// tickNS is the resolution of clocks that go by the timer interrupt: Debian's
// kernels have 250 a second.
const tickNS = 4e6

// clock reads a clock in nanoseconds.
func (t *Task) clock(id int32) (int64, unix.Errno) {
	k := t.k
	switch id {
	case unix.CLOCK_REALTIME, unix.CLOCK_REALTIME_COARSE, unix.CLOCK_REALTIME_ALARM:
		return k.RealtimeNS(), 0
	case unix.CLOCK_TAI:
		return k.RealtimeNS(), 0
	case unix.CLOCK_MONOTONIC, unix.CLOCK_MONOTONIC_RAW, unix.CLOCK_MONOTONIC_COARSE, unix.CLOCK_BOOTTIME,
		unix.CLOCK_BOOTTIME_ALARM:
		return k.uptime(), 0
	}
	if c, ok := t.cpuClock(id, true); ok {
		return c.read(), 0
	}
	return 0, unix.EINVAL
}

// bootNS is how long the machine has been up at the start of a run, so that
// "n seconds ago" is a valid time.
const bootNS = 1000 * second

// uptime is CLOCK_MONOTONIC: the run's clock on the time base of the guest.
func (k *Kernel) uptime() int64 { return bootNS + k.now }

func sysClockGettime(t *Task, a [6]uint64) (uint64, unix.Errno) {
	ns, errno := t.clock(int32(a[0]))
	if errno != 0 {
		return 0, errno
	}
	return 0, t.writeTimespec(event.Addr(a[1]), ns)
}

func sysClockGetres(t *Task, a [6]uint64) (uint64, unix.Errno) {
	id := int32(a[0])
	if _, errno := t.clock(id); errno != 0 {
		return 0, errno
	}
	ns := int64(1)
	if id == unix.CLOCK_REALTIME_COARSE || id == unix.CLOCK_MONOTONIC_COARSE || id < 0 && id&3 != cpuClockSched {
		ns = tickNS
	}
	if a[1] == 0 {
		return 0, 0
	}
	return 0, t.writeTimespec(event.Addr(a[1]), ns)
}

func sysClockSettime(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if _, errno := t.readTimespec(event.Addr(a[1])); errno != 0 {
		return 0, errno
	}
	if int32(a[0]) != unix.CLOCK_REALTIME {
		return 0, unix.EINVAL
	}
	return 0, unix.EPERM
}

func sysGettimeofday(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[0] != 0 {
		// Rounded down: a library that rounds up would tell of the future.
		now := t.k.RealtimeNS()
		tv := unix.Timeval{Sec: now / second, Usec: now % second / microsecond}
		if errno := writeStruct(t, event.Addr(a[0]), &tv); errno != 0 {
			return 0, errno
		}
	}
	if a[1] != 0 {
		var zone [2]int32
		return 0, writeStruct(t, event.Addr(a[1]), &zone)
	}
	return 0, 0
}

func sysTime(t *Task, a [6]uint64) (uint64, unix.Errno) {
	now := uint64(t.k.RealtimeNS() / second)
	if a[0] != 0 {
		return now, t.proc.space.WriteU64(event.Addr(a[0]), now)
	}
	return now, 0
}

func sysNanosleep(t *Task, a [6]uint64) (uint64, unix.Errno) {
	ns, errno := t.readTimespec(event.Addr(a[0]))
	if errno != 0 {
		return 0, errno
	}
	return t.sleep(t.deadlineIn(ns), event.Addr(a[1]))
}

// timerAbsolute is the flag TIMER_ABSTIME.
const timerAbsolute = 1

func sysClockNanosleep(t *Task, a [6]uint64) (uint64, unix.Errno) {
	id := int32(a[0])
	if errno := t.maySleepOn(id); errno != 0 {
		return 0, errno
	}
	ns, errno := t.readTimespec(event.Addr(a[2]))
	if errno != 0 {
		return 0, errno
	}
	remaining := event.Addr(a[3])
	if a[1]&timerAbsolute != 0 {
		remaining = 0
	}
	if c, ok := t.cpuClock(id, false); ok {
		return t.sleepOnCPU(c, ns, a[1]&timerAbsolute != 0, remaining)
	}
	if a[1]&timerAbsolute != 0 {
		return t.sleep(t.k.runClock(id, ns), 0)
	}
	return t.sleep(t.deadlineIn(ns), remaining)
}

// maySleepOn tells which clocks a thread can sleep on: neither its own time on
// a core nor those that are only read.
func (t *Task) maySleepOn(id int32) unix.Errno {
	switch id {
	case unix.CLOCK_REALTIME, unix.CLOCK_MONOTONIC, unix.CLOCK_BOOTTIME, unix.CLOCK_TAI, unix.CLOCK_PROCESS_CPUTIME_ID:
		return 0
	}
	if id >= 0 {
		if _, errno := t.clock(id); errno != 0 {
			return errno
		}
		return unix.EOPNOTSUPP
	}
	if c, ok := t.cpuClock(id, false); !ok || c.thread == t {
		return unix.EINVAL
	}
	return 0
}

// sleep waits for the deadline; a sleep that a signal ends tells what is left.
func (t *Task) sleep(deadline int64, remaining event.Addr) (uint64, unix.Errno) {
	switch errno := t.wait(errInterrupted, deadline); errno {
	case unix.ETIMEDOUT:
		return 0, 0
	case errInterrupted:
		if remaining != 0 {
			if errno := t.writeTimespec(remaining, max(0, deadline-t.k.now)); errno != 0 {
				return 0, errno
			}
		}
		return 0, errno
	default:
		return 0, errno
	}
}

// itimer is the process's ITIMER_REAL.
type itimer struct {
	proc     *Process
	timer    *timer
	interval int64
}

func (i *itimer) expire(k *Kernel) {
	i.timer = nil
	if i.interval > 0 {
		i.timer = k.timers.add(k.now+i.interval, i)
	}
	k.sendProcess(i.proc, signalInfo(unix.SIGALRM, siKernel))
}

func (p *Process) cancelTimers() {
	if p.itimer != nil && p.itimer.timer != nil {
		p.k.timers.cancel(p.itimer.timer)
	}
	p.itimer = nil
	for _, x := range p.posix {
		x.disarm()
	}
	p.posix, p.cpuTimers = nil, nil
}

// setItimer arms ITIMER_REAL and returns what was left of it.
func (p *Process) setItimer(value, interval int64) (oldValue, oldInterval int64) {
	oldValue, oldInterval = p.getItimer()
	if p.itimer != nil && p.itimer.timer != nil {
		p.k.timers.cancel(p.itimer.timer)
	}
	p.itimer = nil
	if value > 0 {
		p.itimer = &itimer{proc: p, interval: interval}
		p.itimer.timer = p.k.timers.add(saturatingAdd(p.k.now, value), p.itimer)
	}
	return oldValue, oldInterval
}

func (p *Process) getItimer() (value, interval int64) {
	if p.itimer == nil || p.itimer.timer == nil {
		return 0, 0
	}
	return max(1, p.itimer.timer.deadline-p.k.now), p.itimer.interval
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
		v = makeItimerval(t.proc.profTimer(a[0]).get())
	}
	return 0, writeStruct(t, event.Addr(a[1]), &v)
}

func sysSetitimer(t *Task, a [6]uint64) (uint64, unix.Errno) {
	var value, interval int64
	if a[1] != 0 {
		var errno unix.Errno
		if interval, errno = t.readTimeval(event.Addr(a[1])); errno != 0 {
			return 0, errno
		}
		if value, errno = t.readTimeval(event.Addr(a[1] + 16)); errno != 0 {
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
		old = makeItimerval(t.proc.profTimer(a[0]).set(value, interval))
	}
	if a[2] != 0 {
		return 0, writeStruct(t, event.Addr(a[2]), &old)
	}
	return 0, 0
}

// posixTimer is a timer of timer_create.
type posixTimer struct {
	id       int32
	proc     *Process
	thread   *Task // SIGEV_THREAD_ID
	clock    int32
	notify   int32
	signal   int32
	value    uint64
	cpu      cpuClockID // for clocks that count time on a core
	onCPU    bool
	timer    *timer    // armed on the run's clock
	armed    *cpuTimer // ... or on a processor-time clock
	interval int64
	overrun  int32 // since the signal that is pending was sent
	told     int32 // with the last signal that was taken
}

type sigevent struct {
	Value  uint64
	Signo  int32
	Notify int32
	TID    int32
	_      [44]byte
}

const (
	sigevSignal   = 0
	sigevNone     = 1
	sigevThreadID = 4
)

func sysTimerCreate(t *Task, a [6]uint64) (uint64, unix.Errno) {
	p := t.proc
	x := &posixTimer{proc: p, clock: int32(a[0]), signal: int32(unix.SIGALRM), id: p.lastTimer, value: uint64(p.lastTimer)}
	if _, errno := t.clock(x.clock); errno != 0 {
		return 0, errno
	}
	x.cpu, x.onCPU = t.cpuClock(x.clock, false)
	if x.clock < 0 && !x.onCPU {
		return 0, unix.EINVAL
	}
	if a[1] != 0 {
		var e sigevent
		if errno := readStruct(t, event.Addr(a[1]), &e); errno != 0 {
			return 0, errno
		}
		x.notify, x.signal, x.value = e.Notify, e.Signo, e.Value
		if e.Notify == sigevThreadID {
			if x.thread = t.k.tasks[event.ThreadID(e.TID)]; x.thread == nil || x.thread.proc != p {
				return 0, unix.EINVAL
			}
		} else if e.Notify != sigevSignal && e.Notify != sigevNone {
			return 0, unix.EINVAL
		}
		if e.Notify != sigevNone && (e.Signo < 1 || e.Signo > lastSignal) {
			return 0, unix.EINVAL
		}
	}
	if errno := t.proc.space.WriteU32(event.Addr(a[2]), uint32(x.id)); errno != 0 {
		return 0, errno
	}
	p.lastTimer++
	p.posix = append(p.posix, x)
	return 0, 0
}

func (p *Process) timer(id uint64) *posixTimer {
	for _, x := range p.posix {
		if x.id == int32(id) {
			return x
		}
	}
	return nil
}

func (x *posixTimer) disarm() {
	if x.timer != nil {
		x.proc.k.timers.cancel(x.timer)
		x.timer = nil
	}
	if x.armed != nil {
		x.armed.remove()
		x.armed = nil
	}
}

// arm sets the timer; absolute times are those of its own clock.
func (x *posixTimer) arm(value int64, absolute bool) {
	k := x.proc.k
	switch {
	case x.onCPU && absolute:
		x.armed = x.cpu.arm(value, x)
	case x.onCPU:
		x.armed = x.cpu.arm(saturatingAdd(x.cpu.read(), value), x)
	case absolute:
		x.timer = k.timers.add(k.runClock(x.clock, value), x)
	default:
		x.timer = k.timers.add(saturatingAdd(k.now, value), x)
	}
}

func (x *posixTimer) left() (value, interval int64) {
	switch {
	case x.armed != nil:
		return max(1, x.armed.deadline-x.cpu.read()), x.interval
	case x.timer != nil:
		return max(1, x.timer.deadline-x.proc.k.now), x.interval
	}
	return 0, x.interval
}

func (x *posixTimer) expire(k *Kernel) {
	x.timer, x.armed = nil, nil
	pending := false
	q := &x.proc.signals
	if x.thread != nil {
		q = &x.thread.signals
	}
	for _, i := range q.list {
		pending = pending || i.code() == siTimer && decode[int32](i[16:20]) == x.id
	}
	if x.interval > 0 {
		x.arm(x.interval, false)
	}
	if x.notify == sigevNone {
		return
	}
	if pending {
		x.overrun++
		return
	}
	i := signalInfo(unix.Signal(x.signal), siTimer)
	putU32(i[16:], uint32(x.id))
	putU64(i[24:], x.value)
	if x.thread == nil {
		k.sendProcess(x.proc, i)
	} else if x.thread.state != dead {
		k.sendTask(x.thread, i)
	}
}

type itimerspec struct{ Interval, Value unix.Timespec }

func makeItimerspec(value, interval int64) itimerspec {
	return itimerspec{unix.NsecToTimespec(interval), unix.NsecToTimespec(value)}
}

// readItimerspec reads a timer setting in nanoseconds.
func (t *Task) readItimerspec(addr event.Addr) (value, interval int64, errno unix.Errno) {
	var s itimerspec
	if errno = readStruct(t, addr, &s); errno != 0 {
		return 0, 0, errno
	}
	if value, errno = nanoseconds(s.Value); errno != 0 {
		return 0, 0, errno
	}
	interval, errno = nanoseconds(s.Interval)
	return value, interval, errno
}

// runClock converts a time on a guest clock to the run's clock.
func (k *Kernel) runClock(clock int32, ns int64) int64 {
	switch clock {
	case unix.CLOCK_REALTIME, unix.CLOCK_REALTIME_ALARM, unix.CLOCK_TAI, unix.CLOCK_REALTIME_COARSE:
		return ns - k.config.EpochNS
	}
	return ns - bootNS
}

func sysTimerSettime(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[2] == 0 {
		return 0, unix.EINVAL
	}
	value, interval, errno := t.readItimerspec(event.Addr(a[2]))
	if errno != 0 {
		return 0, errno
	}
	x := t.proc.timer(a[0])
	if x == nil {
		return 0, unix.EINVAL
	}
	old := makeItimerspec(x.left())
	x.disarm()
	x.interval, x.overrun = interval, 0
	if value != 0 {
		x.arm(value, a[1]&timerAbsolute != 0)
	}
	if a[3] != 0 {
		return 0, writeStruct(t, event.Addr(a[3]), &old)
	}
	return 0, 0
}

func sysTimerGettime(t *Task, a [6]uint64) (uint64, unix.Errno) {
	x := t.proc.timer(a[0])
	if x == nil {
		return 0, unix.EINVAL
	}
	s := makeItimerspec(x.left())
	return 0, writeStruct(t, event.Addr(a[1]), &s)
}

func sysTimerGetoverrun(t *Task, a [6]uint64) (uint64, unix.Errno) {
	x := t.proc.timer(a[0])
	if x == nil {
		return 0, unix.EINVAL
	}
	return uint64(x.told), 0
}

// overrun completes the siginfo of a timer's signal when it is taken: how often
// the timer ran out since it was sent.
func (p *Process) overrun(i sigInfo) sigInfo {
	if i.code() != siTimer {
		return i
	}
	if x := p.timer(uint64(decode[uint32](i[16:20]))); x != nil {
		x.told, x.overrun = x.overrun, 0
		putU32(i[20:], uint32(x.told))
	}
	return i
}

func sysTimerDelete(t *Task, a [6]uint64) (uint64, unix.Errno) {
	x := t.proc.timer(a[0])
	if x == nil {
		return 0, unix.EINVAL
	}
	x.disarm()
	for i := range t.proc.posix {
		if t.proc.posix[i] == x {
			t.proc.posix = append(t.proc.posix[:i:i], t.proc.posix[i+1:]...)
			break
		}
	}
	return 0, 0
}

// rusage fills in the times; the rest of what getrusage tells is of the host.
func (k *Kernel) rusage(user, system event.Cycles) unix.Rusage {
	return unix.Rusage{
		Utime: unix.NsecToTimeval(k.cyclesToNS(user)), Stime: unix.NsecToTimeval(k.cyclesToNS(system)),
		Maxrss: 4096,
	}
}

func sysGetrusage(t *Task, a [6]uint64) (uint64, unix.Errno) {
	var user, system event.Cycles
	switch int32(a[0]) {
	case unix.RUSAGE_SELF:
		user, system = t.proc.times()
	case unix.RUSAGE_CHILDREN:
		user, system = t.proc.childUser, t.proc.childKernel
	case unix.RUSAGE_THREAD:
		user, system = t.userTime, t.kernelTime
	default:
		return 0, unix.EINVAL
	}
	usage := t.k.rusage(user, system)
	return 0, writeStruct(t, event.Addr(a[1]), &usage)
}

func sysTimes(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[0] != 0 {
		user, system := t.proc.times()
		tms := [4]int64{
			t.k.clockTicks(user), t.k.clockTicks(system),
			t.k.clockTicks(t.proc.childUser), t.k.clockTicks(t.proc.childKernel),
		}
		if errno := writeStruct(t, event.Addr(a[0]), &tms); errno != 0 {
			return 0, errno
		}
	}
	return uint64(t.k.uptime() / 1e7), 0
}

var _ vfs.Clock = (*Kernel)(nil)
