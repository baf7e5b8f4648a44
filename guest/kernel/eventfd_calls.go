package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/eventfd"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// installAnonFile gives a descriptor to an object without a file type of its own.
func (t *Task) installAnonFile(label string, status int, impl vfs.FileImpl, cloexec bool) (uint64, unix.Errno) {
	f := t.k.fs.NewFile(t.k.fs.Anon(), "anon_inode:["+label+"]", unix.O_RDWR|status&unix.O_NONBLOCK, impl)
	return t.installFile(f, cloexec)
}

func sysEventfd(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.eventfd(uint32(a[0]), 0) }

func sysEventfd2(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.eventfd(uint32(a[0]), int(uint32(a[1])))
}

func (t *Task) eventfd(value uint32, flags int) (uint64, unix.Errno) {
	if flags&^(unix.EFD_CLOEXEC|unix.EFD_NONBLOCK|unix.EFD_SEMAPHORE) != 0 {
		return 0, unix.EINVAL
	}
	c := eventfd.NewCounter(uint64(value), flags&unix.EFD_SEMAPHORE != 0)
	return t.installAnonFile("eventfd", flags, c, flags&unix.EFD_CLOEXEC != 0)
}

// timerClock is the kernel's clock for the timer of a timerfd, which has a name.
type timerClock struct {
	k     *Kernel
	timer timerName
}

func (c *timerClock) Now() int64 { return c.k.clock.now }

func (c *timerClock) Start(deadline int64, t *eventfd.Timer) any {
	return c.k.clock.timers.add(deadline, &fdTimer{t, c.timer})
}

func (c *timerClock) Stop(handle any) { handle.(*timer).cancel() }

type fdTimer struct {
	t     *eventfd.Timer
	timer timerName
}

func (x *fdTimer) expire(*Kernel)       { x.t.Expire() }
func (x *fdTimer) timerName() timerName { return x.timer }

// timerFD is a timerfd together with the clock of its times.
type timerFD struct {
	*eventfd.Timer
	clock int32
}

func sysTimerfdCreate(t *Task, a [6]uint64) (uint64, unix.Errno) {
	clock, flags := int32(a[0]), int(uint32(a[1]))
	if flags&^(unix.TFD_CLOEXEC|unix.TFD_NONBLOCK) != 0 {
		return 0, unix.EINVAL
	}
	switch clock {
	case unix.CLOCK_REALTIME, unix.CLOCK_MONOTONIC, unix.CLOCK_BOOTTIME:
	case unix.CLOCK_REALTIME_ALARM, unix.CLOCK_BOOTTIME_ALARM:
		if !t.cred.Can(vfs.CapWakeAlarm) {
			return 0, unix.EPERM
		}
	default:
		return 0, unix.EINVAL
	}
	c := &timerClock{k: t.k, timer: timerName{kind: fileTimer, owner: arch.ThreadID(t.proc.pid)}}
	x := &timerFD{eventfd.NewTimer(c), clock}
	fd, errno := t.installAnonFile("timerfd", flags, x, flags&unix.TFD_CLOEXEC != 0)
	c.timer.number = fd
	return fd, errno
}

func (t *Task) timerFD(fd uint64) (*timerFD, unix.Errno) {
	f, errno := t.usableFile(fd)
	if errno != 0 {
		return nil, errno
	}
	x, ok := f.Impl.(*timerFD)
	if !ok {
		return nil, unix.EINVAL
	}
	return x, 0
}

// onClockSet is the effect of setting a clock on a timer whose time is on it.
func onClockSet(clock int32, flags uint64) eventfd.OnSet {
	switch {
	case !isRealtimeClock(clock):
		return eventfd.KeepOnSet
	case flags&unix.TFD_TIMER_CANCEL_ON_SET != 0:
		return eventfd.CancelOnSet
	}
	return eventfd.MoveOnSet
}

func sysTimerfdSettime(t *Task, a [6]uint64) (uint64, unix.Errno) {
	const known = unix.TFD_TIMER_ABSTIME | unix.TFD_TIMER_CANCEL_ON_SET
	value, interval, errno := t.readItimerspec(arch.Addr(a[2]))
	if errno != 0 {
		return 0, errno
	}
	if a[1]&^known != 0 {
		return 0, unix.EINVAL
	}
	x, errno := t.timerFD(a[0])
	if errno != 0 {
		return 0, errno
	}
	old := makeItimerspec(x.Left())
	switch {
	case value == 0:
		x.Disarm()
	case a[1]&unix.TFD_TIMER_ABSTIME != 0:
		x.Set(t.k.toRunClock(x.clock, value), interval, onClockSet(x.clock, a[1]))
	default:
		x.Set(saturatingAdd(t.k.clock.now, value), interval, eventfd.KeepOnSet)
	}
	if a[3] != 0 {
		return 0, writeStruct(t, arch.Addr(a[3]), &old)
	}
	return 0, 0
}

func sysTimerfdGettime(t *Task, a [6]uint64) (uint64, unix.Errno) {
	x, errno := t.timerFD(a[0])
	if errno != 0 {
		return 0, errno
	}
	s := makeItimerspec(x.Left())
	return 0, writeStruct(t, arch.Addr(a[1]), &s)
}

// signalSource supplies signalfd with the pending signals of the thread that makes the current
// system call.
type signalSource struct{ k *Kernel }

func (s *signalSource) PendingSignals() uint64 { return uint64(s.k.current.pendingSignals()) }

func (s *signalSource) TakeSignal(set uint64) (eventfd.Siginfo, bool) {
	return s.k.current.dequeue(sigset(set))
}

func (s *signalSource) SignalQueue() *wait.Queue { return &s.k.signalQueue }

func sysSignalfd(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.signalfd(a, 0) }

func sysSignalfd4(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.signalfd(a, int(uint32(a[3])))
}

func (t *Task) signalfd(a [6]uint64, flags int) (uint64, unix.Errno) {
	if a[2] != 8 || flags&^(unix.SFD_CLOEXEC|unix.SFD_NONBLOCK) != 0 {
		return 0, unix.EINVAL
	}
	set, errno := t.readSigset(arch.Addr(a[1]))
	if errno != 0 {
		return 0, errno
	}
	set &^= unblockable
	if int32(a[0]) == -1 {
		s := eventfd.NewSignals(&signalSource{t.k}, uint64(set))
		return t.installAnonFile("signalfd", flags, s, flags&unix.SFD_CLOEXEC != 0)
	}
	f, errno := t.usableFile(a[0])
	if errno != 0 {
		return 0, errno
	}
	s, ok := f.Impl.(*eventfd.Signals)
	if !ok {
		return 0, unix.EINVAL
	}
	s.SetMask(uint64(set))
	return uint64(uint32(a[0])), 0
}
