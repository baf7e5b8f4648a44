package kernel

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// realtimeClock is the state that programs have set: of CLOCK_REALTIME, and of the parameters of
// its discipline (kernel/time/ntp.c of Linux).
type realtimeClock struct {
	step     int64 // total of the steps by which it was set forward, in ns
	zone     [2]int32
	set      bool // the parameters were changed; until then they have their initial values
	status   int32
	maxError int64
	estError int64
	constant int64
	tai      int32
}

// realtimeBase is CLOCK_REALTIME at the start of the run, with the later steps included.
func (k *Kernel) realtimeBase() int64 { return k.config.EpochNS + k.realtime.step }

// isRealtimeClock reports whether times on a clock move when CLOCK_REALTIME is set.
func isRealtimeClock(clock int32) bool {
	switch clock {
	case unix.CLOCK_REALTIME, unix.CLOCK_REALTIME_ALARM, unix.CLOCK_TAI, unix.CLOCK_REALTIME_COARSE:
		return true
	}
	return false
}

// latestTime is the latest time that the clock can be set to: Linux leaves 30 years of
// room (TIME_SETTOD_SEC_MAX).
const latestTime = (1<<63-1)/second - 30*365*24*3600

// setRealtime is do_sys_settimeofday64 of Linux.
func (t *Task) setRealtime(ns int64) unix.Errno {
	switch {
	case ns/second >= latestTime, ns < t.k.uptime():
		return unix.EINVAL
	case !t.cred.Can(vfs.CapSysTime):
		return unix.EPERM
	}
	t.k.stepRealtime(ns - t.k.RealtimeNS())
	return 0
}

// stepRealtime sets the clock forward. Waits for a time on it get a new deadline.
func (k *Kernel) stepRealtime(by int64) {
	k.realtime.step += by
	for _, t := range k.Tasks() {
		if !t.call.onRealtime {
			continue
		}
		if t.call.deadline != forever && t.call.deadline != 0 {
			t.call.deadline -= by
		}
		if t.state == blocked {
			t.Wake(wait.AnyEvent)
		}
	}
	for _, p := range k.sortedProcesses() {
		for _, x := range p.posix {
			x.moveWithClock(by)
		}
	}
	armed := slices.Clone(k.clock.timers.heap)
	slices.SortFunc(armed, func(a, b *timer) int {
		return cmp.Or(cmp.Compare(a.deadline, b.deadline), cmp.Compare(a.sequence, b.sequence))
	})
	for _, x := range armed {
		if f, ok := x.target.(*fdTimer); ok {
			f.t.ClockSet(by)
		}
	}
}

// moveWithClock adjusts a timer for a time on the clock, which was set forward.
func (x *posixTimer) moveWithClock(by int64) {
	if !x.absolute || x.running == timerIdle {
		return
	}
	x.deadline -= by
	if x.running == timerArmed {
		x.timer.cancel()
		x.armTimer()
	}
}

func sysSettimeofday(t *Task, a [6]uint64) (uint64, unix.Errno) {
	var tv unix.Timeval
	var zone [2]int32
	if a[0] != 0 {
		if errno := readStruct(t, arch.Addr(a[0]), &tv); errno != 0 {
			return 0, errno
		}
		if tv.Usec < 0 || tv.Usec >= 1e6 {
			return 0, unix.EINVAL
		}
	}
	if a[1] != 0 {
		if errno := readStruct(t, arch.Addr(a[1]), &zone); errno != 0 {
			return 0, errno
		}
	}
	if a[0] != 0 {
		if tv.Sec < 0 || tv.Sec >= latestTime {
			return 0, unix.EINVAL
		}
		if errno := t.setRealtime(tv.Sec*second + tv.Usec*microsecond); errno != 0 {
			return 0, errno
		}
	}
	if a[1] != 0 {
		switch {
		case !t.cred.Can(vfs.CapSysTime):
			return 0, unix.EPERM
		case zone[0] < -15*60 || zone[0] > 15*60:
			return 0, unix.EINVAL
		}
		t.k.realtime.zone = zone
	}
	return 0, 0
}

// Modes of adjtimex(2) that package unix does not define, and initial values of the discipline.
const (
	adjOffset     = 0x1
	adjFrequency  = 0x2
	adjMaxError   = 0x4
	adjEstError   = 0x8
	adjStatus     = 0x10
	adjConstant   = 0x20
	adjTAI        = 0x80
	adjSetOffset  = 0x100
	adjMicro      = 0x1000
	adjNano       = 0x2000
	adjTick       = 0x4000
	adjSingleShot = 0x8000
	adjOffsetOnly = 0x2000 // with adjSingleShot: only read

	statusUnsync   = 0x40
	statusNano     = 0x2000
	statusReadOnly = 0xff00

	usualTick    = 10000 // us for each of 100 a second
	errorLimit   = 16_000_000
	clockOK      = 0 // TIME_OK
	clockError   = 5 // TIME_ERROR
	tolerance    = 500 << 16
	usualConst   = 2
	mostConstant = 10
)

func sysAdjtimex(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.adjustClock(arch.Addr(a[0])) }

func sysClockAdjtime(t *Task, a [6]uint64) (uint64, unix.Errno) {
	if id := int32(a[0]); id != unix.CLOCK_REALTIME {
		if _, errno := t.readClock(id); errno != 0 {
			return 0, errno
		}
		return 0, unix.EOPNOTSUPP
	}
	return t.adjustClock(arch.Addr(a[1]))
}

// adjustClock is do_adjtimex of Linux. All clocks run at the rate of virtual time: a request to
// change the rate fails with EOPNOTSUPP.
func (t *Task) adjustClock(addr arch.Addr) (uint64, unix.Errno) {
	var x unix.Timex
	if errno := readStruct(t, addr, &x); errno != 0 {
		return 0, errno
	}
	if errno := t.mayAdjust(&x); errno != 0 {
		return 0, errno
	}
	r := &t.k.realtime
	if !r.set {
		*r = realtimeClock{
			step: r.step, zone: r.zone, set: true,
			status: statusUnsync, maxError: errorLimit, estError: errorLimit, constant: usualConst,
		}
	}
	if x.Modes&adjSingleShot == 0 {
		r.applyAdjustment(&x)
	}
	if x.Modes&adjSetOffset != 0 && x.Modes&adjSingleShot == 0 {
		unit := int64(microsecond)
		if x.Modes&adjNano != 0 {
			unit = 1
		}
		t.k.stepRealtime(x.Time.Sec*second + x.Time.Usec*unit)
	}
	now := t.k.RealtimeNS()
	modes := x.Modes
	x = unix.Timex{
		Modes: modes, Maxerror: r.maxError, Esterror: r.estError, Status: r.status, Constant: r.constant, Precision: 1,
		Tolerance: tolerance, Tick: usualTick, Tai: r.tai, Time: unix.Timeval{Sec: now / second, Usec: now % second},
	}
	if r.status&statusNano == 0 {
		x.Time.Usec /= microsecond
	}
	if errno := writeStruct(t, addr, &x); errno != 0 {
		return 0, errno
	}
	if r.status&statusUnsync != 0 {
		return clockError, 0
	}
	return clockOK, 0
}

// mayAdjust is timekeeping_validate_timex of Linux.
func (t *Task) mayAdjust(x *unix.Timex) unix.Errno {
	privileged := t.cred.Can(vfs.CapSysTime)
	if x.Modes&adjSingleShot != 0 {
		switch {
		case x.Modes&adjOffset == 0:
			return unix.EINVAL
		case x.Modes&adjOffsetOnly != 0:
			return 0
		case !privileged:
			return unix.EPERM
		case x.Offset != 0:
			return unix.EOPNOTSUPP
		}
		return 0
	}
	if x.Modes != 0 && !privileged {
		return unix.EPERM
	}
	if x.Modes&adjTick != 0 {
		if x.Tick < usualTick*9/10 || x.Tick > usualTick*11/10 {
			return unix.EINVAL
		}
		if x.Tick != usualTick {
			return unix.EOPNOTSUPP
		}
	}
	if x.Modes&adjSetOffset != 0 {
		most := int64(1e6)
		if x.Modes&adjNano != 0 {
			most = second
		}
		if x.Time.Usec < 0 || x.Time.Usec >= most {
			return unix.EINVAL
		}
		if to := t.k.RealtimeNS()/second + x.Time.Sec; x.Time.Sec > latestTime || to >= latestTime || to*second < t.k.uptime() {
			return unix.EINVAL
		}
	}
	if x.Modes&adjFrequency != 0 && x.Freq != 0 || x.Modes&adjOffset != 0 && x.Offset != 0 {
		return unix.EOPNOTSUPP
	}
	return 0
}

// applyAdjustment stores the parameters that a request sets (process_adjtimex_modes of Linux).
func (r *realtimeClock) applyAdjustment(x *unix.Timex) {
	if x.Modes&adjStatus != 0 {
		r.status = r.status&statusReadOnly | x.Status&^statusReadOnly
	}
	if x.Modes&adjNano != 0 {
		r.status |= statusNano
	}
	if x.Modes&adjMicro != 0 {
		r.status &^= statusNano
	}
	if x.Modes&adjMaxError != 0 {
		r.maxError = max(0, min(x.Maxerror, errorLimit))
	}
	if x.Modes&adjEstError != 0 {
		r.estError = max(0, min(x.Esterror, errorLimit))
	}
	if x.Modes&adjConstant != 0 {
		r.constant = max(0, min(x.Constant, mostConstant))
		if r.status&statusNano == 0 {
			r.constant = min(r.constant+4, mostConstant)
		}
	}
	if x.Modes&adjTAI != 0 && x.Constant >= 0 && x.Constant <= 1<<16 {
		r.tai = int32(x.Constant)
	}
}
