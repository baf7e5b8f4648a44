// Package wait provides the wait queues of the guest kernel: ordered lists of
// what is to be told when the state of a kernel object changes.
//
// A queue is plain data. It holds no goroutine, channel or closure, so that the
// kernel's whole state can be copied for a snapshot. The order of waking is the
// order of waiting.
package wait

// Waker is told that something it waits for may have happened. Events is a
// mask of poll events (unix.EPOLLIN and so on); all bits set means unknown.
// Wake must not call back into the queue that it is called from.
type Waker interface {
	Wake(events uint32)
}

// AnyEvent is the event mask of a wake-up whose cause is not known.
const AnyEvent = ^uint32(0)

// Queue is a list of wakers in the order in which they began to wait. The zero
// value is an empty queue.
type Queue struct {
	wakers []Waker
}

// Add appends w. A waker that is already in the queue keeps its place.
func (q *Queue) Add(w Waker) {
	for _, have := range q.wakers {
		if have == w {
			return
		}
	}
	q.wakers = append(q.wakers, w)
}

// Remove takes w out of the queue, if it is there.
func (q *Queue) Remove(w Waker) {
	for i, have := range q.wakers {
		if have == w {
			q.wakers = append(q.wakers[:i:i], q.wakers[i+1:]...)
			return
		}
	}
}

// Empty reports whether nothing waits.
func (q *Queue) Empty() bool { return len(q.wakers) == 0 }

// Wake tells every waker, oldest first. Wakers stay in the queue until they
// are removed.
func (q *Queue) Wake(events uint32) {
	// A waker may remove itself or others while it is told.
	for _, w := range append([]Waker(nil), q.wakers...) {
		w.Wake(events)
	}
}
