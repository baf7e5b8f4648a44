package kernel

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/recorder/event"
)

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
	silent   bool      // runs, but tells nobody: SIGEV_NONE
	deadline int64     // ... when silent, on the clock that it would be armed on
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
			if x.thread = t.k.tasks.At(event.ThreadID(e.TID)); x.thread == nil || x.thread.proc != p {
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
	if !t.k.memory.Charge(kmem.Timer) {
		return 0, unix.EAGAIN
	}
	p.lastTimer++
	p.posix = append(p.posix, x)
	return 0, 0
}

func (p *Process) timer(id uint64) *posixTimer {
	if at, ok := p.timerIndex(int32(id)); ok {
		return p.posix[at]
	}
	return nil
}

// timerIndex is where a timer is, or would be: they are in order.
func (p *Process) timerIndex(id int32) (int, bool) {
	return slices.BinarySearchFunc(p.posix, id, func(x *posixTimer, id int32) int { return cmp.Compare(x.id, id) })
}

// deleteTimers deletes all timers of timer_create.
func (p *Process) deleteTimers() {
	for _, x := range p.posix {
		x.disarm()
	}
	p.k.memory.Release(uint64(len(p.posix)) * kmem.Timer)
	p.posix = nil
}

func (x *posixTimer) disarm() {
	x.silent = false
	if x.timer != nil {
		x.proc.k.timers.cancel(x.timer)
		x.timer = nil
	}
	if x.armed != nil {
		x.armed.remove()
		x.armed = nil
	}
}

// now is the time on the clock that the timer is armed on: the run's for clocks
// that go on by themselves.
func (x *posixTimer) now() int64 {
	if x.onCPU {
		return x.cpu.read()
	}
	return x.proc.k.now
}

// arm sets the timer; absolute times are those of its own clock.
func (x *posixTimer) arm(value int64, absolute bool) {
	k := x.proc.k
	switch {
	case !absolute:
		value = saturatingAdd(x.now(), value)
	case !x.onCPU:
		value = k.runClock(x.clock, value)
	}
	switch {
	case x.notify == sigevNone:
		x.silent, x.deadline = true, value
	case x.onCPU:
		x.armed = x.cpu.arm(value, x)
	default:
		x.timer = k.timers.add(value, x)
	}
}

func (x *posixTimer) left() (value, interval int64) {
	switch {
	case x.silent:
		return silentLeft(x.deadline-x.now(), x.interval), x.interval
	case x.armed != nil:
		return max(1, x.armed.deadline-x.cpu.read()), x.interval
	case x.timer != nil:
		return max(1, x.timer.deadline-x.proc.k.now), x.interval
	}
	return 0, x.interval
}

// silentLeft is how long a timer that tells nobody goes on: 0 when it has run
// out, the time to the next turn if it has turns.
func silentLeft(left, interval int64) int64 {
	if left > 0 || interval == 0 {
		return max(0, left)
	}
	return interval - -left%interval
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

// retell has a timer say of its signal what another signal says.
func (p *Process) retell(i *sigInfo) {
	if x := p.timer(uint64(decode[uint32](i[16:20]))); x != nil && i.code() == siTimer {
		x.told = decode[int32](i[20:24])
	}
}

func sysTimerDelete(t *Task, a [6]uint64) (uint64, unix.Errno) {
	x := t.proc.timer(a[0])
	if x == nil {
		return 0, unix.EINVAL
	}
	x.disarm()
	at, _ := t.proc.timerIndex(x.id)
	t.proc.posix = slices.Delete(t.proc.posix, at, at+1)
	t.k.memory.Release(kmem.Timer)
	return 0, 0
}
