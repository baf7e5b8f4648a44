package wait_test

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/wait"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// note writes down that it was woken, and leaves the queue if it has one.
type note struct {
	name  string
	log   *[]string
	leave *wait.Queue
}

func (n *note) Wake(uint32) {
	*n.log = append(*n.log, n.name)
	if n.leave != nil {
		n.leave.Remove(n)
	}
}

// single is an exclusive waker that takes the wake-ups selected by the test.
type single struct {
	note
	takes bool
}

func (s *single) WakeOne(events uint32) bool {
	s.Wake(events)
	return s.takes
}

func TestWakesInOrderOfWaiting(t *testing.T) {
	var log []string
	var q wait.Queue
	a, b, c := &note{name: "a", log: &log, leave: &q}, &note{name: "b", log: &log}, &note{name: "c", log: &log}
	q.Wake(wait.AnyEvent)
	for _, w := range []wait.Waker{a, b, c, a} {
		q.Add(w)
	}
	q.Wake(wait.AnyEvent)
	q.Remove(c)
	q.Remove(c)
	q.Wake(wait.AnyEvent)
	if want := []string{"a", "b", "c", "b"}; !slices.Equal(log, want) {
		t.Errorf("woken %v, want %v", log, want)
	}
	first := &note{name: "first", log: &log}
	log = nil
	q.AddFirst(first)
	q.Wake(wait.AnyEvent)
	if want := []string{"first", "b"}; !slices.Equal(log, want) {
		t.Errorf("woken %v, want %v", log, want)
	}
	q.Remove(first)
	if q.Remove(b); !q.Empty() {
		t.Error("queue is not empty")
	}
}

func TestExclusiveWakersShareOneWakeUp(t *testing.T) {
	for _, test := range []struct {
		name   string
		events uint32
		want   []string
	}{
		{"data", unix.EPOLLIN, []string{"declines", "all", "takes"}},
		{"unknown", wait.AnyEvent, []string{"declines", "all", "takes"}},
		{"hang-up", unix.EPOLLIN | unix.EPOLLHUP, []string{"declines", "all", "takes", "late"}},
	} {
		var log []string
		var q wait.Queue
		q.Add(&single{note: note{name: "declines", log: &log}})
		q.Add(&note{name: "all", log: &log})
		q.Add(&single{note: note{name: "takes", log: &log}, takes: true})
		q.Add(&single{note: note{name: "late", log: &log}, takes: true})
		if q.Wake(test.events); !slices.Equal(log, test.want) {
			t.Errorf("%s: woken %v, want %v", test.name, log, test.want)
		}
	}
}

// waiter points into the object that it waits for, as a blocked task does.
type object struct {
	_     int
	queue wait.Queue
}

type waiter struct {
	queue *wait.Queue
	woken int
}

func (w *waiter) Wake(uint32) { w.woken++ }

func TestCopiesOfAnObjectAndItsWaiterStayConnected(t *testing.T) {
	type world struct {
		waiter *waiter
		object *object
	}
	o := &object{}
	w := world{&waiter{queue: &o.queue}, o}
	w.waiter.queue.Add(w.waiter)
	c := deepcopy.Copy(deepcopy.New(), w)
	c.object.queue.Wake(wait.AnyEvent)
	if c.waiter.woken != 1 || w.waiter.woken != 0 {
		t.Fatalf("woken: copy %d, original %d; want 1, 0", c.waiter.woken, w.waiter.woken)
	}
	if c.waiter.queue.Remove(c.waiter); !c.object.queue.Empty() || o.queue.Empty() {
		t.Error("the copy's waiter left another queue than its own")
	}
}
