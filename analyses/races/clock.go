package races

// Order says what orders accesses of different threads.
type Order uint8

const (
	// HappensBefore orders by what Acquire, Release, Fork and Join say.
	HappensBefore Order = iota
	// ScheduleRelative orders by the total order of synchronization
	// operations, each of which is told by Sync.
	ScheduleRelative
)

// vector is a vector clock: for each thread's number the last of its segments
// that is known to have ended.
type vector []uint32

func (v vector) get(thread int) uint32 {
	if thread < len(v) {
		return v[thread]
	}
	return 0
}

// set makes v long enough.
func (v *vector) set(thread int, clock uint32) {
	for len(*v) <= thread {
		*v = append(*v, 0)
	}
	(*v)[thread] = clock
}

// join makes v the later of both, in each place.
func (v *vector) join(w vector) {
	for i, c := range w {
		if c > v.get(i) {
			v.set(i, c)
		}
	}
}

// thread is what is known of a thread.
//
// A thread's run is cut into segments, numbered from 1, by what it releases (or,
// in ScheduleRelative, by its synchronization operations). ended says which
// segments of others have ended before what the thread does now.
type thread struct {
	segment uint32
	ended   vector
	// syncs counts the thread's synchronization operations, and base is the
	// thread's branches at the last of them.
	syncs, base uint64
	process     int
}

// cut ends the thread's segment.
func (t *thread) cut() { t.segment++ }

// threadAt returns the state of thread number n, from its first segment on.
func (d *Detector) threadAt(n int) *thread {
	for len(d.threads) <= n {
		d.threads = append(d.threads, &thread{segment: 1})
	}
	return d.threads[n]
}

// Acquire orders what thread n does from now on after what was done before the
// releases of the object.
func (d *Detector) Acquire(n int, object uint64) {
	if d.order == HappensBefore {
		d.threadAt(n).ended.join(d.objects[object])
	}
}

// Release is the counterpart of Acquire. What was released before stays
// released: the object may be held by several, such as a semaphore or a barrier.
func (d *Detector) Release(n int, object uint64) {
	if d.order != HappensBefore {
		return
	}
	t := d.threadAt(n)
	released := d.objects[object]
	released.join(t.ended)
	released.set(n, t.segment)
	d.objects[object] = released
	t.cut()
}

// Retire tells that an object will not be acquired again.
func (d *Detector) Retire(object uint64) { delete(d.objects, object) }

// Fork orders what thread child does after what its parent has done.
func (d *Detector) Fork(parent, child int) {
	if d.order != HappensBefore {
		return
	}
	p, c := d.threadAt(parent), d.threadAt(child)
	c.ended.join(p.ended)
	c.ended.set(parent, p.segment)
	p.cut()
}

// Join orders what thread n does from now on after all that thread child did,
// which has ended.
func (d *Detector) Join(n, child int) {
	if d.order != HappensBefore {
		return
	}
	t, c := d.threadAt(n), d.threadAt(child)
	t.ended.join(c.ended)
	t.ended.set(child, c.segment)
	c.cut()
}

// Sync is a synchronization operation of thread n, the next one in the total
// order of all, when the thread has gone through so many branches. The start
// and the end of a thread are operations of that thread. It cuts the
// thread's run; in ScheduleRelative, where an operation at position m begins a
// segment with the interval clock [m, next), everything in segments that have
// ended by m comes before.
func (d *Detector) Sync(n int, branches uint64) {
	t := d.threadAt(n)
	t.syncs++
	t.base = branches
	if d.order != ScheduleRelative {
		return
	}
	d.position.set(n, t.segment)
	t.cut()
	t.ended = append(t.ended[:0], d.position...)
}
