package eventfd

import (
	"encoding/binary"
	"math"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// Counter is the object of eventfd(2).
type Counter struct {
	value     uint64
	semaphore bool
	waiters   *wait.Queue
}

// NewCounter makes a counter. With semaphore (EFD_SEMAPHORE) a read takes one,
// otherwise all.
func NewCounter(value uint64, semaphore bool) *Counter {
	return &Counter{value: value, semaphore: semaphore, waiters: &wait.Queue{}}
}

// Read implements vfs.FileImpl. EINVAL: p has no room for eight bytes; EAGAIN:
// the counter is 0.
func (c *Counter) Read(_ *vfs.Ctx, p []byte, _ int64) (int, unix.Errno) {
	switch {
	case len(p) < 8:
		return 0, unix.EINVAL
	case c.value == 0:
		return 0, unix.EAGAIN
	}
	n := c.value
	if c.semaphore {
		n = 1
	}
	c.value -= n
	binary.LittleEndian.PutUint64(p, n)
	c.waiters.Wake(unix.EPOLLOUT)
	return 8, 0
}

// Write implements vfs.FileImpl: it adds the number in p. EINVAL: p is shorter
// than eight bytes or the number is 2^64-1; EAGAIN: the sum would be too large.
func (c *Counter) Write(_ *vfs.Ctx, p []byte, _ int64) (int, unix.Errno) {
	if len(p) < 8 {
		return 0, unix.EINVAL
	}
	n := binary.LittleEndian.Uint64(p)
	switch {
	case n == math.MaxUint64:
		return 0, unix.EINVAL
	case n >= math.MaxUint64-c.value:
		return 0, unix.EAGAIN
	}
	c.value += n
	c.waiters.Wake(unix.EPOLLIN)
	return 8, 0
}

// Ready implements vfs.Poller.
func (c *Counter) Ready() uint32 {
	var mask uint32
	if c.value > 0 {
		mask |= unix.EPOLLIN
	}
	if c.value < math.MaxUint64-1 {
		mask |= unix.EPOLLOUT
	}
	return mask
}

// Waiters implements vfs.Poller.
func (c *Counter) Waiters() *wait.Queue { return c.waiters }
