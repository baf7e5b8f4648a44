package kernel

import (
	"cmp"
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kmem"
)

// posixTimer is a timer of timer_create.
type posixTimer struct {
	id       int32
	proc     *Process
	thread   *Task // SIGEV_THREAD_ID
	clock    int32
	notify   int32
	signal   int
	value    uint64
	cpu      cpuClockID // for clocks that count time on a core
	onCPU    bool
	timer    *timer    // armed on the run's clock
	armed    *cpuTimer // ... or on a processor-time clock
	deadline int64     // on the clock that it is or would be armed on: when it expires, or expired last
	interval int64
	running  timerPhase
	overrun  int64 // expirations since the last signal was taken, except the one that sent the signal
	again    int32 // expirations while its signal was pending, after having been set again
	reported int32 // overrun count of the last signal taken
	absolute bool  // it was set to a time on CLOCK_REALTIME, which may be set
}

// timerPhase is the way in which a timer of timer_create counts time. A timer with an interval is
// armed for one expiration. Later expirations are computed (rearm) when the program takes the
// signal of this one; until then they have no visible effect.
type timerPhase uint8

const (
	timerIdle       timerPhase = iota
	timerSilent                // it counts and sends nothing: SIGEV_NONE
	timerArmed                 // it will send its signal at the deadline
	timerPending               // its signal is pending
	timerSuppressed            // its signal would be discarded; in Kernel.suppressed
)

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
	x := &posixTimer{
		proc: p, clock: int32(a[0]), signal: int(unix.SIGALRM), id: p.lastTimer, value: uint64(p.lastTimer), overrun: noOverrun,
	}
	if _, errno := t.readClock(x.clock); errno != 0 {
		return 0, errno
	}
	x.cpu, x.onCPU = t.cpuClock(x.clock, false)
	if x.clock < 0 && !x.onCPU {
		return 0, unix.EINVAL
	}
	if a[1] != 0 {
		var e sigevent
		if errno := readStruct(t, arch.Addr(a[1]), &e); errno != 0 {
			return 0, errno
		}
		x.notify, x.signal, x.value = e.Notify, int(e.Signo), e.Value
		if e.Notify == sigevThreadID {
			if x.thread = t.k.tasks.At(arch.ThreadID(e.TID)); x.thread == nil || x.thread.proc != p {
				return 0, unix.EINVAL
			}
		} else if e.Notify != sigevSignal && e.Notify != sigevNone {
			return 0, unix.EINVAL
		}
		if e.Notify != sigevNone && (e.Signo < 1 || e.Signo > lastSignal) {
			return 0, unix.EINVAL
		}
	}
	if errno := t.proc.space.WriteU32(arch.Addr(a[2]), uint32(x.id)); errno != 0 {
		return 0, errno
	}
	if !t.k.memory.Charge(kmem.Timer) {
		return 0, unix.EAGAIN
	}
	p.lastTimer++
	p.posix = append(p.posix, x)
	return 0, 0
}

func (p *Process) findTimer(id uint64) *posixTimer {
	if at, ok := p.timerIndex(int32(id)); ok {
		return p.posix[at]
	}
	return nil
}

// timerIndex is the index of a timer, or the index at which it would be inserted; the timers are
// sorted.
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
	k := x.proc.k
	if x.timer != nil {
		x.timer.cancel()
		x.timer = nil
	}
	if x.armed != nil {
		x.armed.disarm()
		x.armed = nil
	}
	if x.running == timerSuppressed {
		k.suppressed = slices.DeleteFunc(k.suppressed, func(o *posixTimer) bool { return o == x })
	}
	x.running = timerIdle
}

// clockNow is the time on the clock that the timer is armed on: the run's clock except for
// processor-time clocks.
func (x *posixTimer) clockNow() int64 {
	if x.onCPU {
		return x.cpu.readClock()
	}
	return x.proc.k.clock.now
}

// startTimer starts the timer; absolute times are on its own clock.
func (x *posixTimer) startTimer(value int64, absolute bool) {
	x.absolute = absolute && isRealtimeClock(x.clock)
	switch {
	case !absolute:
		value = saturatingAdd(x.clockNow(), value)
	case !x.onCPU:
		value = x.proc.k.toRunClock(x.clock, value)
	}
	x.deadline = value
	if x.running = timerSilent; x.notify != sigevNone {
		x.armTimer()
	}
}

func (x *posixTimer) timerName() timerName {
	return timerName{processTimer, arch.ThreadID(x.proc.pid), uint64(x.id)}
}

// armTimer makes the timer expire at the deadline.
func (x *posixTimer) armTimer() {
	x.running = timerArmed
	if x.onCPU {
		x.armed = x.cpu.armTimer(x.deadline, x)
	} else {
		x.timer = x.proc.k.clock.timers.add(x.deadline, x)
	}
}

// advanceDeadline moves the deadline of a timer with an interval past the present, and returns the
// number of intervals skipped.
func (x *posixTimer) advanceDeadline() int64 {
	past := x.clockNow() - x.deadline
	if past < 0 {
		return 0
	}
	turns := past/x.interval + 1
	if turns > (math.MaxInt64-x.deadline)/x.interval {
		x.deadline = math.MaxInt64
	} else {
		x.deadline += turns * x.interval
	}
	return turns
}

// rearm arms a timer with an interval for its next expiration.
func (x *posixTimer) rearm() {
	x.overrun += x.advanceDeadline()
	x.armTimer()
}

func (x *posixTimer) remaining() (value, interval int64) {
	if x.running == timerIdle || x.running == timerPending && x.interval == 0 {
		return 0, x.interval
	}
	if x.interval > 0 && x.running != timerArmed {
		x.overrun += x.advanceDeadline()
	}
	left := x.deadline - x.clockNow()
	if x.running == timerSilent {
		return max(0, left), x.interval
	}
	return max(1, left), x.interval
}

// targetQueue is the signal queue of the thread or process that the timer signals.
func (x *posixTimer) targetQueue() *signalQueue {
	if x.thread != nil {
		return &x.thread.signals
	}
	return &x.proc.signals
}

// isPending reports whether the timer's last signal has not been taken yet.
func (x *posixTimer) isPending() bool {
	return slices.ContainsFunc(x.targetQueue().list, func(i sigInfo) bool { return x.isSenderOf(&i) })
}

// isSenderOf reports whether i is a signal of the timer.
func (x *posixTimer) isSenderOf(i *sigInfo) bool {
	return i.isFromTimer() && decodeStruct[int32](i[16:20]) == x.id
}

// isFromTimer reports whether the kernel has sent the signal for a timer of timer_create.
func (i *sigInfo) isFromTimer() bool {
	return i.code() == siTimer && decodeStruct[uint32](i[timerMark:]) != 0
}

// timerMark is the offset of si_sys_private, which is nonzero in the pending signals of timers and
// which no program sees.
const timerMark = 32

// isSuppressed reports whether the timer's signal would be discarded now.
func (x *posixTimer) isSuppressed() bool {
	if t := x.thread; t != nil {
		return t.state == dead || x.proc.discardsSignal(x.signal, t.mask|t.waitSet)
	}
	return x.proc.discardsSignal(x.signal, x.proc.blockedByAll())
}

func (x *posixTimer) expire(k *Kernel) {
	x.timer, x.armed, x.running = nil, nil, timerIdle
	if x.isPending() {
		x.again++
		x.running = timerPending
		return
	}
	unheard := x.isSuppressed()
	i := signalInfo(unix.Signal(x.signal), siTimer)
	putU32(i[16:], uint32(x.id))
	putU64(i[24:], x.value)
	putU32(i[timerMark:], 1)
	if x.thread == nil {
		k.sendProcess(x.proc, i)
	} else if x.thread.state != dead {
		k.sendTask(x.thread, i)
	}
	switch {
	case x.isPending():
		x.running = timerPending
	case x.interval == 0:
	case unheard:
		x.noteDiscarded()
	default: // Deliver has delivered it before it arrived
		x.rearm()
		x.overrun = noOverrun
	}
}

// noteDiscarded records that a signal of the timer was discarded. Expirations are counted until a
// signal would be delivered again.
func (x *posixTimer) noteDiscarded() {
	if x.running = timerIdle; x.interval > 0 {
		x.running = timerSuppressed
		x.proc.k.suppressed = append(x.proc.k.suppressed, x)
	}
}

// rearmSuppressed arms the timers whose signals were discarded and no longer would be, because a
// disposition or a signal mask has changed.
func (k *Kernel) rearmSuppressed() {
	for _, x := range slices.Clone(k.suppressed) {
		if !x.isSuppressed() {
			x.disarm()
			x.rearm()
		}
	}
}

type itimerspec struct{ Interval, Value unix.Timespec }

func makeItimerspec(value, interval int64) itimerspec {
	return itimerspec{unix.NsecToTimespec(interval), unix.NsecToTimespec(value)}
}

// readItimerspec reads a timer setting in nanoseconds.
func (t *Task) readItimerspec(addr arch.Addr) (value, interval int64, errno unix.Errno) {
	var s itimerspec
	if errno = readStruct(t, addr, &s); errno != 0 {
		return 0, 0, errno
	}
	if value, errno = timespecToNS(s.Value); errno != 0 {
		return 0, 0, errno
	}
	interval, errno = timespecToNS(s.Interval)
	return value, interval, errno
}

// toRunClock converts a time on a guest clock to the run's clock.
func (k *Kernel) toRunClock(clock int32, ns int64) int64 {
	switch {
	case clock == unix.CLOCK_TAI:
		return ns - k.realtimeBase() - int64(k.realtime.tai)*second
	case isRealtimeClock(clock):
		return ns - k.realtimeBase()
	}
	return ns - bootNS
}

func sysTimerSettime(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if a[2] == 0 {
		return 0, unix.EINVAL
	}
	value, interval, errno := t.readItimerspec(arch.Addr(a[2]))
	if errno != 0 {
		return 0, errno
	}
	x := t.proc.findTimer(a[0])
	if x == nil {
		return 0, unix.EINVAL
	}
	old := makeItimerspec(x.remaining())
	x.disarm()
	x.interval, x.overrun, x.reported = interval, noOverrun, 0
	if value != 0 {
		x.startTimer(value, a[1]&timerAbsolute != 0)
	}
	if a[3] != 0 {
		return 0, writeStruct(t, arch.Addr(a[3]), &old)
	}
	return 0, 0
}

func sysTimerGettime(t *Task, a [6]uint64) (uint64, unix.Errno) {
	x := t.proc.findTimer(a[0])
	if x == nil {
		return 0, unix.EINVAL
	}
	s := makeItimerspec(x.remaining())
	return 0, writeStruct(t, arch.Addr(a[1]), &s)
}

func sysTimerGetoverrun(t *Task, a [6]uint64) (uint64, unix.Errno) {
	x := t.proc.findTimer(a[0])
	if x == nil {
		return 0, unix.EINVAL
	}
	return uint64(x.reported), 0
}

// noOverrun is the overrun of a timer that has not expired: the expiration that sends the signal is
// no overrun.
const noOverrun = -1

// completeTimerSignal stores the overrun count in a timer's signal when it is taken, and rearms the
// timer.
func (p *Process) completeTimerSignal(i *sigInfo) {
	putU32(i[timerMark:], 0)
	x := p.findTimer(uint64(decodeStruct[uint32](i[16:20])))
	if x == nil {
		return
	}
	overrun := int64(x.again)
	if x.again = 0; x.interval > 0 && x.running == timerPending {
		x.rearm()
		x.reported, x.overrun = clampOverrun(x.overrun), noOverrun
		overrun += int64(x.reported)
	} else if x.running == timerPending {
		x.running = timerIdle
	}
	putU32(i[20:], uint32(clampOverrun(overrun)))
}

// clampOverrun limits an overrun count to DELAYTIMER_MAX.
func clampOverrun(n int64) int32 { return int32(min(n, math.MaxInt32)) }

// copyOverrun sets the overrun count of a timer to that of another signal.
func (p *Process) copyOverrun(i *sigInfo) {
	if x := p.findTimer(uint64(decodeStruct[uint32](i[16:20]))); x != nil && i.code() == siTimer {
		x.reported = decodeStruct[int32](i[20:24])
	}
}

func sysTimerDelete(t *Task, a [6]uint64) (uint64, unix.Errno) {
	x := t.proc.findTimer(a[0])
	if x == nil {
		return 0, unix.EINVAL
	}
	x.disarm()
	at, _ := t.proc.timerIndex(x.id)
	t.proc.posix = slices.Delete(t.proc.posix, at, at+1)
	t.k.memory.Release(kmem.Timer)
	return 0, 0
}
