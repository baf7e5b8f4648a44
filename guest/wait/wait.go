// Package wait provides the wait queues of the guest kernel: ordered lists of
// wakers to be called when the state of a kernel object changes.
//
// A queue is plain data. It holds no goroutine, channel or closure, so that the
// kernel's whole state can be copied for a snapshot. The order of waking is the
// order of waiting, except for wakers added with AddFirst.
package wait

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Waker is called when an event that it waits for may have occurred. Events is a
// mask of poll events (unix.EPOLLIN and so on); all bits set means unknown.
// Wake must not call back into the queue that it is called from.
type Waker interface {
	Wake(events uint32)
}

// Exclusive is a Waker of which, among several in a queue, one is enough: after the
// first that takes a wake-up, later ones are not called. Hang-ups and errors go
// to all.
type Exclusive interface {
	Waker
	// WakeOne is Wake; it returns whether the wake-up is taken.
	WakeOne(events uint32) bool
}

// AnyEvent is the event mask of a wake-up whose cause is not known.
const AnyEvent = ^uint32(0)

// toAll are the events for which all wakers are called.
const toAll = unix.EPOLLHUP | unix.EPOLLERR | unix.EPOLLRDHUP

// Queue is a list of wakers in the order in which they are called. The zero value
// is an empty queue.
//
// A queue is often part of a larger object, and waiters point to it. The list has a
// pointer of its own, so that the copies that a snapshot makes of object and
// waiters share one queue.
type Queue struct {
	list *list
}

type list struct{ wakers []Waker }

// Add appends w. A waker that is already in the queue keeps its place.
func (q *Queue) Add(w Waker) {
	if q.list == nil {
		q.list = &list{}
	}
	if !slices.Contains(q.list.wakers, w) {
		q.list.wakers = append(q.list.wakers, w)
	}
}

// AddFirst puts w, which must not be in the queue, before all others: Linux
// keeps the entries of epoll that way, exclusive ones excepted.
func (q *Queue) AddFirst(w Waker) {
	if q.list == nil {
		q.list = &list{}
	}
	q.list.wakers = slices.Insert(q.list.wakers, 0, w)
}

// Remove takes w out of the queue, if it is there.
func (q *Queue) Remove(w Waker) {
	if q.list == nil {
		return
	}
	for i, have := range q.list.wakers {
		if have == w {
			q.list.wakers = append(q.list.wakers[:i:i], q.list.wakers[i+1:]...)
			return
		}
	}
}

// Empty reports whether nothing waits.
func (q *Queue) Empty() bool { return q.list == nil || len(q.list.wakers) == 0 }

// Wake calls the wakers in order: all of them, but the exclusive ones only until one
// takes the wake-up. Wakers stay in the queue until they are removed.
func (q *Queue) Wake(events uint32) {
	if q.Empty() {
		return
	}
	taken := false
	// A waker may remove itself or others while it is called.
	for _, w := range append([]Waker(nil), q.list.wakers...) {
		x, exclusive := w.(Exclusive)
		switch {
		case !exclusive || events != AnyEvent && events&toAll != 0:
			w.Wake(events)
		case !taken:
			taken = x.WakeOne(events)
		}
	}
}
