package eventfd

import (
	"encoding/binary"
	"math"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// Clock is the kernel's clock and its queue of timers. Times are nanoseconds
// since the start of the run.
type Clock interface {
	Now() int64
	// Start has Expire called on t at a time, and returns a handle for Stop.
	Start(deadline int64, t *Timer) any
	Stop(handle any)
}

// Timer is the object of timerfd_create(2). Which clock it is set by is for the
// kernel to convert, which moves the timer when that clock is set.
type Timer struct {
	clock    Clock
	armed    bool  // it will expire, or has expired and repeats
	next     int64 // when it expires, or expired last
	interval int64
	handle   any
	// ticks are the expirations that were not read yet. As in Linux, a
	// repeating timer is not started again until it is read: expirations
	// meanwhile is computed.
	ticks   uint64
	onSet   OnSet
	stopped bool // the clock was set, and the timer is to say so
	waiters *wait.Queue
}

// OnSet is the effect of setting a clock on its timer.
type OnSet int

const (
	// KeepOnSet is of timers that run out after a time.
	KeepOnSet OnSet = iota
	// MoveOnSet is of timers that run out at a time on the clock.
	MoveOnSet
	// CancelOnSet is TFD_TIMER_CANCEL_ON_SET: reading fails, too.
	CancelOnSet
)

// ClockSet is called when the timer's clock was set to a time that is so much later.
func (t *Timer) ClockSet(by int64) {
	if t.onSet == KeepOnSet {
		return
	}
	t.next -= by
	if t.handle != nil {
		t.clock.Stop(t.handle)
		t.handle = t.clock.Start(t.next, t)
	}
	if t.onSet == CancelOnSet {
		t.stopped = true
		t.ticks++
		t.waiters.Wake(unix.EPOLLIN)
	}
}

// NewTimer makes a timer that is not armed.
func NewTimer(c Clock) *Timer { return &Timer{clock: c, waiters: &wait.Queue{}} }

// Set arms the timer for a time on the run's clock and each interval from then
// on, 0 for once. Unread expirations are discarded.
func (t *Timer) Set(deadline, interval int64, onSet OnSet) {
	t.Disarm()
	t.onSet = onSet
	t.armed, t.next, t.interval = true, deadline, interval
	t.handle = t.clock.Start(deadline, t)
}

// Disarm stops the timer.
func (t *Timer) Disarm() {
	if t.handle != nil {
		t.clock.Stop(t.handle)
	}
	t.handle, t.armed, t.interval, t.ticks = nil, false, 0, 0
	t.onSet, t.stopped = KeepOnSet, false
}

// Left returns the time until the next expiration in nanoseconds, 0 if the
// timer is disarmed, and the interval.
func (t *Timer) Left() (value, interval int64) {
	if !t.armed {
		return 0, t.interval
	}
	t.forward()
	return max(1, t.next-t.clock.Now()), t.interval
}

// Expire is called by the clock at the deadline.
func (t *Timer) Expire() {
	t.handle = nil
	t.ticks++
	t.armed = t.interval > 0
	t.waiters.Wake(unix.EPOLLIN)
}

// forward starts a repeating timer again that has expired, and counts the
// expirations since.
func (t *Timer) forward() {
	if !t.armed || t.handle != nil {
		return
	}
	missed := max(0, t.clock.Now()-t.next) / t.interval
	t.ticks += uint64(missed)
	if t.next > math.MaxInt64-(missed+1)*t.interval {
		t.next = math.MaxInt64
	} else {
		t.next += (missed + 1) * t.interval
	}
	t.handle = t.clock.Start(t.next, t)
}

// Read implements vfs.FileImpl: it returns the number of expirations since the
// last read. EINVAL: p has no room for eight bytes; ECANCELED: the clock was set;
// EAGAIN: it has not expired.
func (t *Timer) Read(_ *vfs.Ctx, p []byte, _ int64) (int, unix.Errno) {
	switch {
	case len(p) < 8:
		return 0, unix.EINVAL
	case t.stopped:
		t.stopped, t.ticks = false, 0
		return 0, unix.ECANCELED
	case t.ticks == 0:
		return 0, unix.EAGAIN
	}
	t.forward()
	binary.LittleEndian.PutUint64(p, t.ticks)
	t.ticks = 0
	return 8, 0
}

// Write implements vfs.FileImpl; timers cannot be written to.
func (t *Timer) Write(*vfs.Ctx, []byte, int64) (int, unix.Errno) { return 0, unix.EINVAL }

// Ready implements vfs.Poller.
func (t *Timer) Ready() uint32 {
	if t.ticks > 0 {
		return unix.EPOLLIN
	}
	return 0
}

// Waiters implements vfs.Poller.
func (t *Timer) Waiters() *wait.Queue { return t.waiters }

// Close implements vfs.Closer.
func (t *Timer) Close() { t.Disarm() }
