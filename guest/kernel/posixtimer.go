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
	deadline int64     // of the clock that it is or would be armed on: when it runs out, or ran out last
	interval int64
	running  timerPhase
	overrun  int64 // turns since the last signal was taken, without the one that was sent
	again    int32 // how often it ran out, set anew, while its signal was pending
	told     int32 // with the last signal that was taken
	absolute bool  // it was set to a time on CLOCK_REALTIME, which may be set
}

// timerPhase is how a timer of timer_create counts time. One with an interval is
// armed for one turn. The turns after it are computed (goOn) when the program
// takes the turn's signal; meanwhile nothing of them can be noticed.
type timerPhase uint8

const (
	timerIdle    timerPhase = iota
	timerSilent             // it counts, and sends nothing: SIGEV_NONE
	timerArmed              // it will send its signal at the deadline
	timerPending            // its signal waits to be taken
	timerUnheard            // its signal would be discarded; in Kernel.unheard
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
		proc: p, clock: int32(a[0]), signal: int(unix.SIGALRM), id: p.lastTimer, value: uint64(p.lastTimer), overrun: noTurns,
	}
	if _, errno := t.clock(x.clock); errno != 0 {
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
	k := x.proc.k
	if x.timer != nil {
		k.timers.cancel(x.timer)
		x.timer = nil
	}
	if x.armed != nil {
		x.armed.remove()
		x.armed = nil
	}
	if x.running == timerUnheard {
		k.unheard = slices.DeleteFunc(k.unheard, func(o *posixTimer) bool { return o == x })
	}
	x.running = timerIdle
}

// now is the time on the clock that the timer is armed on: the run's for clocks
// that go on by themselves.
func (x *posixTimer) now() int64 {
	if x.onCPU {
		return x.cpu.read()
	}
	return x.proc.k.now
}

// set starts the timer; absolute times are those of its own clock.
func (x *posixTimer) set(value int64, absolute bool) {
	x.absolute = absolute && isRealtimeClock(x.clock)
	switch {
	case !absolute:
		value = saturatingAdd(x.now(), value)
	case !x.onCPU:
		value = x.proc.k.runClock(x.clock, value)
	}
	x.deadline = value
	if x.running = timerSilent; x.notify != sigevNone {
		x.arm()
	}
}

// arm has the timer run out at the deadline.
func (x *posixTimer) arm() {
	x.running = timerArmed
	if x.onCPU {
		x.armed = x.cpu.arm(x.deadline, x)
	} else {
		x.timer = x.proc.k.timers.add(x.deadline, x)
	}
}

// forward moves the deadline of a timer with an interval past the present, and
// returns by how many turns.
func (x *posixTimer) forward() int64 {
	past := x.now() - x.deadline
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

// goOn arms a timer with an interval for the next turn to come.
func (x *posixTimer) goOn() {
	x.overrun += x.forward()
	x.arm()
}

func (x *posixTimer) left() (value, interval int64) {
	if x.running == timerIdle || x.running == timerPending && x.interval == 0 {
		return 0, x.interval
	}
	if x.interval > 0 && x.running != timerArmed {
		x.overrun += x.forward()
	}
	left := x.deadline - x.now()
	if x.running == timerSilent {
		return max(0, left), x.interval
	}
	return max(1, left), x.interval
}

// queue is where the timer's signal goes.
func (x *posixTimer) queue() *signalQueue {
	if x.thread != nil {
		return &x.thread.signals
	}
	return &x.proc.signals
}

// isPending reports whether the timer's last signal was not taken yet.
func (x *posixTimer) isPending() bool {
	return slices.ContainsFunc(x.queue().list, func(i sigInfo) bool { return x.sent(&i) })
}

// sent reports whether i is a signal of the timer.
func (x *posixTimer) sent(i *sigInfo) bool {
	return i.ofTimer() && decode[int32](i[16:20]) == x.id
}

// ofTimer reports whether the kernel has sent the signal for a timer of timer_create.
func (i *sigInfo) ofTimer() bool { return i.code() == siTimer && decode[uint32](i[timerMark:]) != 0 }

// timerMark is where the signals of timers have a number while they are pending:
// si_sys_private, which no program sees.
const timerMark = 32

// isUnheard reports whether the timer's signal would be discarded now.
func (x *posixTimer) isUnheard() bool {
	if t := x.thread; t != nil {
		return t.state == dead || x.proc.discards(x.signal, t.mask|t.waitSet)
	}
	return x.proc.discards(x.signal, x.proc.blockedByAll())
}

func (x *posixTimer) expire(k *Kernel) {
	x.timer, x.armed, x.running = nil, nil, timerIdle
	if x.isPending() {
		x.again++
		x.running = timerPending
		return
	}
	unheard := x.isUnheard()
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
		x.discarded()
	default: // it was delivered before it came: Deliver
		x.goOn()
		x.overrun = noTurns
	}
}

// discarded notes that a signal of the timer was thrown away. Turns are counted
// until one would be heard again.
func (x *posixTimer) discarded() {
	if x.running = timerIdle; x.interval > 0 {
		x.running = timerUnheard
		x.proc.k.unheard = append(x.proc.k.unheard, x)
	}
}

// listen arms the timers whose signals would be heard now and would not be before:
// their dispositions, or who blocks them, have changed.
func (k *Kernel) listen() {
	for _, x := range slices.Clone(k.unheard) {
		if !x.isUnheard() {
			x.disarm()
			x.goOn()
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
	if value, errno = nanoseconds(s.Value); errno != 0 {
		return 0, 0, errno
	}
	interval, errno = nanoseconds(s.Interval)
	return value, interval, errno
}

// runClock converts a time on a guest clock to the run's clock.
func (k *Kernel) runClock(clock int32, ns int64) int64 {
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
	x := t.proc.timer(a[0])
	if x == nil {
		return 0, unix.EINVAL
	}
	old := makeItimerspec(x.left())
	x.disarm()
	x.interval, x.overrun, x.told = interval, noTurns, 0
	if value != 0 {
		x.set(value, a[1]&timerAbsolute != 0)
	}
	if a[3] != 0 {
		return 0, writeStruct(t, arch.Addr(a[3]), &old)
	}
	return 0, 0
}

func sysTimerGettime(t *Task, a [6]uint64) (uint64, unix.Errno) {
	x := t.proc.timer(a[0])
	if x == nil {
		return 0, unix.EINVAL
	}
	s := makeItimerspec(x.left())
	return 0, writeStruct(t, arch.Addr(a[1]), &s)
}

func sysTimerGetoverrun(t *Task, a [6]uint64) (uint64, unix.Errno) {
	x := t.proc.timer(a[0])
	if x == nil {
		return 0, unix.EINVAL
	}
	return uint64(x.told), 0
}

// noTurns is the overrun of a timer that has not run out: the turn that sends the
// signal is no overrun.
const noTurns = -1

// taken completes the siginfo of a timer's signal when it is taken: how often the
// timer ran out since it was sent. The timer goes on.
func (p *Process) taken(i *sigInfo) {
	putU32(i[timerMark:], 0)
	x := p.timer(uint64(decode[uint32](i[16:20])))
	if x == nil {
		return
	}
	overrun := int64(x.again)
	if x.again = 0; x.interval > 0 && x.running == timerPending {
		x.goOn()
		x.told, x.overrun = mostTurns(x.overrun), noTurns
		overrun += int64(x.told)
	} else if x.running == timerPending {
		x.running = timerIdle
	}
	putU32(i[20:], uint32(mostTurns(overrun)))
}

// mostTurns is a number of turns as far as it is counted (DELAYTIMER_MAX).
func mostTurns(n int64) int32 { return int32(min(n, math.MaxInt32)) }

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
