package races

// #include "races.h"
import "C"

// Order is the relation that orders accesses of different threads.
type Order uint8

const (
	// HappensBefore is the order by Acquire, Release, Fork and Join.
	HappensBefore Order = iota
	// ScheduleRelative is the total order of synchronization operations, the calls of Sync.
	ScheduleRelative
)

// A thread's run is cut into segments, numbered from 1, by its releases (or, in ScheduleRelative,
// by its synchronization operations). A vector clock has for each thread the last of its segments that
// is known to have ended. That of a thread has the segments that ended before its present one.

// threadAt returns the state of thread number n, from its first segment on. It is valid until the next
// call.
func (d *Detector) threadAt(n int) *C.struct_races_thread {
	return C.races_thread_at(d.c, C.uint32_t(n))
}

// Full reports whether a thread has had more segments than can be numbered, 2^32-1: races after that
// may be missing.
func (d *Detector) Full() bool { return bool(d.c.full) }

// Acquire orders the later accesses of thread n after the accesses before the releases of the
// object.
func (d *Detector) Acquire(n int, object uint64) {
	if c := d.objects[object]; c != nil && d.order == HappensBefore {
		C.races_acquire(d.c, C.uint32_t(n), c)
	}
}

// Release is the counterpart of Acquire. Earlier releases stay in effect: several threads may hold
// the object, such as a semaphore or a barrier.
func (d *Detector) Release(n int, object uint64) {
	if d.order != HappensBefore {
		return
	}
	c := d.objects[object]
	if c == nil {
		c = C.races_new_clock()
		d.objects[object] = c
	}
	C.races_release(d.c, C.uint32_t(n), c, false)
}

// RemoveObject removes an object that will not be acquired again.
func (d *Detector) RemoveObject(object uint64) {
	C.races_free_clock(d.objects[object])
	delete(d.objects, object)
}

// Fork orders the accesses of thread child after the earlier ones of its parent.
func (d *Detector) Fork(parent, child int) {
	if d.order == HappensBefore {
		C.races_order(d.c, C.uint32_t(parent), C.uint32_t(child))
	}
}

// Join orders the later accesses of thread n after all of thread child, which has ended.
func (d *Detector) Join(n, child int) { d.Fork(child, n) }

// Sync is a synchronization operation of thread n, the next one in the total order of all, after
// the given number of branches of the thread. The start and the end of a thread are operations of
// that thread. It cuts the thread's run; in ScheduleRelative, where an operation at position m
// begins a segment with the interval clock [m, next), all segments that have ended by m come
// before.
func (d *Detector) Sync(n int, branches uint64) {
	t := d.threadAt(n)
	t.syncs++
	t.base = C.uint64_t(branches)
	if d.order == ScheduleRelative {
		C.races_next_position(d.c, C.uint32_t(n))
	}
}
