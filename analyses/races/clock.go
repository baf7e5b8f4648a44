package races

// #include "races.h"
import "C"

import "unsafe"

// Order is the relation that orders accesses of different threads.
type Order uint8

const (
	// HappensBefore is the order by Acquire, Release, Fork and Join.
	HappensBefore Order = iota
	// ScheduleRelative is the total order of synchronization operations, the calls of Sync.
	ScheduleRelative
)

// vectorClock is a vector clock: for each thread's number the last of its segments
// that is known to have ended.
type vectorClock []uint32

func (v vectorClock) segmentOf(thread int) uint32 {
	if thread < len(v) {
		return v[thread]
	}
	return 0
}

// setSegment makes v long enough.
func (v *vectorClock) setSegment(thread int, clock uint32) {
	for len(*v) <= thread {
		*v = append(*v, 0)
	}
	(*v)[thread] = clock
}

// joinClock makes v the later of both, in each place.
func (v *vectorClock) joinClock(w vectorClock) {
	for i, c := range w {
		if c > v.segmentOf(i) {
			v.setSegment(i, c)
		}
	}
}

// thread is the state of a thread.
//
// A thread's run is cut into segments, numbered from 1, by its releases (or, in ScheduleRelative,
// by its synchronization operations). ended has the segments of others that ended before the
// thread's present segment.
type thread struct {
	segment uint32
	ended   vectorClock
	// syncs counts the thread's synchronization operations, and base is the
	// thread's branches at the last of them.
	syncs, base uint64
	process     int
}

// endSegment ends the thread's segment.
func (t *thread) endSegment() { t.segment++ }

// threadAt returns the state of thread number n, from its first segment on.
func (d *Detector) threadAt(n int) *thread {
	for len(d.threads) <= n {
		d.threads = append(d.threads, &thread{segment: 1})
		C.races_thread_at(d.c, C.uint32_t(len(d.threads)-1))
	}
	return d.threads[n]
}

// noteThread passes what accesses are compared by to the part in C, after a change.
func (d *Detector) noteThread(n int, t *thread) {
	c := C.races_thread_at(d.c, C.uint32_t(n))
	c.segment, c.syncs, c.base, c.process = C.uint32_t(t.segment), C.uint64_t(t.syncs), C.uint64_t(t.base), C.int64_t(t.process)
	if len(t.ended) > 0 {
		C.races_set_ended(d.c, C.uint32_t(n), (*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(t.ended))), C.size_t(len(t.ended)))
	}
}

// Acquire orders the later accesses of thread n after the accesses before the releases of the
// object.
func (d *Detector) Acquire(n int, object uint64) {
	if d.order == HappensBefore {
		t := d.threadAt(n)
		t.ended.joinClock(d.objects[object])
		d.noteThread(n, t)
	}
}

// Release is the counterpart of Acquire. Earlier releases stay in effect: several threads may hold
// the object, such as a semaphore or a barrier.
func (d *Detector) Release(n int, object uint64) {
	if d.order != HappensBefore {
		return
	}
	t := d.threadAt(n)
	released := d.objects[object]
	released.joinClock(t.ended)
	released.setSegment(n, t.segment)
	d.objects[object] = released
	t.endSegment()
	d.noteThread(n, t)
}

// RemoveObject removes an object that will not be acquired again.
func (d *Detector) RemoveObject(object uint64) { delete(d.objects, object) }

// Fork orders the accesses of thread child after the earlier ones of its parent.
func (d *Detector) Fork(parent, child int) {
	if d.order != HappensBefore {
		return
	}
	p, c := d.threadAt(parent), d.threadAt(child)
	c.ended.joinClock(p.ended)
	c.ended.setSegment(parent, p.segment)
	p.endSegment()
	d.noteThread(parent, p)
	d.noteThread(child, c)
}

// Join orders the later accesses of thread n after all of thread child, which has ended.
func (d *Detector) Join(n, child int) {
	if d.order != HappensBefore {
		return
	}
	t, c := d.threadAt(n), d.threadAt(child)
	t.ended.joinClock(c.ended)
	t.ended.setSegment(child, c.segment)
	c.endSegment()
	d.noteThread(n, t)
	d.noteThread(child, c)
}

// Sync is a synchronization operation of thread n, the next one in the total order of all, after
// the given number of branches of the thread. The start and the end of a thread are operations of
// that thread. It cuts the thread's run; in ScheduleRelative, where an operation at position m
// begins a segment with the interval clock [m, next), all segments that have ended by m come
// before.
func (d *Detector) Sync(n int, branches uint64) {
	t := d.threadAt(n)
	t.syncs++
	t.base = branches
	defer d.noteThread(n, t)
	if d.order != ScheduleRelative {
		return
	}
	d.position.setSegment(n, t.segment)
	t.endSegment()
	t.ended = append(t.ended[:0], d.position...)
}
