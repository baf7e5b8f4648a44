package solve_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/recorder/event"
)

const (
	l1 = event.ObjectID(1)
	c1 = event.ObjectID(2)
	s1 = event.ObjectID(3)
	b1 = event.ObjectID(4)
)

// sleeps has a thread wait on a condition, and wake unless it does so to the end.
func (l *litmus) sleeps(thread int, wakes bool) {
	l.sync(thread, model.Lock, l1)
	l.write(thread, x+uint64(4*thread), 1)
	l.sync(thread, model.Sleep, c1)
	l.sync(thread, model.Unlock, l1)
	if wakes {
		l.sync(thread, model.Wake, c1)
		l.sync(thread, model.Lock, l1)
		l.sync(thread, model.Unlock, l1)
	}
}

// wakesAfter has a thread wake others that it has seen to sleep.
func (l *litmus) wakesAfter(thread int, kind model.Kind, sleepers ...int) {
	l.sync(thread, model.Lock, l1)
	for _, s := range sleepers {
		l.bug(l.read(thread, x+uint64(4*s)), 1)
	}
	l.sync(thread, kind, c1)
	l.sync(thread, model.Unlock, l1)
}

// always and never expect that every memory model, or none, has a schedule.
func (l *litmus) always(t *testing.T, name string) {
	t.Helper()
	l.expect(t, name, model.SC, model.TSO, model.PSO)
}

func (l *litmus) never(t *testing.T, name string) {
	t.Helper()
	l.expect(t, name)
}

// POSIX, pthread_cond_signal: at least one thread that waits is woken; here, as long
// as nothing wakes spuriously, exactly one.
func TestConditions(t *testing.T) {
	two := func(kinds ...model.Kind) *litmus {
		l := newLitmus(2 + len(kinds))
		l.sleeps(0, true)
		l.sleeps(1, true)
		for i, k := range kinds {
			l.wakesAfter(2+i, k, 0, 1)
		}
		return l
	}
	two().never(t, "waking without a signal")
	two(model.Signal).never(t, "one signal for two")
	two(model.Signal, model.Signal).always(t, "two signals for two")
	two(model.Broadcast).always(t, "a broadcast for two")

	stuck := func(is bool, kind model.Kind) *litmus {
		l := newLitmus(2)
		l.Deadlocked = is
		l.sleeps(0, false)
		l.wakesAfter(1, kind, 0)
		return l
	}
	stuck(true, model.Signal).never(t, "a signal that is lost while a thread waits")
	stuck(true, model.Broadcast).never(t, "a broadcast that is lost while a thread waits")
	stuck(false, model.Signal).always(t, "a signal whose thread does not go on before the end")

	lost := newLitmus(2)
	lost.Deadlocked = true
	lost.sleeps(0, false)
	lost.wakesAfter(1, model.Signal)
	lost.always(t, "a signal before anybody waits")

	other := newLitmus(3)
	other.Deadlocked = true
	other.sleeps(0, true)
	other.sleeps(1, false)
	other.wakesAfter(2, model.Signal, 0, 1)
	other.always(t, "one of two is woken")
	other.wakesAfter(2, model.Signal, 0, 1)
	other.never(t, "a second signal wakes the other")
}

func TestLocks(t *testing.T) {
	// Two threads in their regions at the same time.
	both := func(shared ...bool) *litmus {
		l := newLitmus(2)
		for i, a := range []uint64{x, y} {
			l.add(model.Event{Kind: model.Lock, Thread: i, Object: l1, Shared: shared[i]})
			l.write(i, a, 1)
			l.sync(i, model.Fence, 0)
			l.bug(l.read(i, x+y-a), 1)
			l.add(model.Event{Kind: model.Unlock, Thread: i, Object: l1, Shared: shared[i]})
		}
		return l
	}
	both(false, false).never(t, "two with a mutex")
	both(true, false).never(t, "a reader and a writer")
	both(true, true).always(t, "two readers")

	open := newLitmus(2)
	open.sync(0, model.Lock, l1)
	open.sync(1, model.Lock, s1)
	open.always(t, "two locks, each held to the end")
	open.sync(1, model.Lock, l1)
	open.never(t, "one lock, held by two to the end")

	again := newLitmus(2)
	for _, k := range []model.Kind{model.Lock, model.Lock, model.Unlock} {
		again.sync(0, k, l1)
	}
	again.write(0, x, 1)
	again.write(0, x, 2)
	again.sync(0, model.Unlock, l1)
	again.sync(1, model.Lock, l1)
	again.bug(again.read(1, x), 1)
	again.never(t, "a lock that is taken twice is held to the second unlock")

	try := func(held, asked, over bool) *litmus {
		l := newLitmus(2)
		l.add(model.Event{Kind: model.Lock, Object: l1, Shared: held})
		l.add(model.Event{Kind: model.Unlock, Object: l1, Shared: held})
		l.write(0, x, 1)
		if over {
			l.bug(l.read(1, x), 1)
		}
		l.add(model.Event{Kind: model.TryFailed, Thread: 1, Object: l1, Shared: asked})
		return l
	}
	try(false, false, false).always(t, "an attempt that meets the holder")
	try(false, true, false).always(t, "a reader's attempt that meets a writer")
	try(true, false, false).always(t, "a writer's attempt that meets a reader")
	try(true, true, false).never(t, "a reader's attempt that meets a reader")
	try(false, false, true).never(t, "an attempt after the unlock")
}

func TestSemaphoresBarriersAndThreads(t *testing.T) {
	semaphore := func(units, takes int, before bool) *litmus {
		l := newLitmus(3)
		l.Semaphores[s1] = units
		for i := range takes {
			l.sync(i, model.Take, s1)
		}
		l.write(0, x, 1)
		if before {
			l.bug(l.read(2, x), 1)
		}
		l.sync(2, model.Post, s1)
		return l
	}
	semaphore(0, 1, false).always(t, "a unit for one")
	semaphore(0, 1, true).never(t, "a unit that is taken before it is there")
	semaphore(1, 1, true).always(t, "a unit that was there at the begin")
	semaphore(0, 2, false).never(t, "a unit for two")
	semaphore(1, 2, false).always(t, "two units for two")

	barrier := func(behind bool) *litmus {
		l := newLitmus(2)
		meet := func(thread int) {
			l.add(model.Event{Kind: model.Arrive, Thread: thread, Object: b1, Count: 2})
			l.add(model.Event{Kind: model.Leave, Thread: thread, Object: b1})
		}
		l.write(0, x, 1)
		meet(0)
		if behind {
			meet(1)
		}
		l.bug(l.read(1, x), 0)
		if !behind {
			meet(1)
		}
		return l
	}
	barrier(true).never(t, "an old value behind a barrier")
	barrier(false).always(t, "an old value before a barrier")

	alone := newLitmus(1)
	alone.add(model.Event{Kind: model.Arrive, Object: b1, Count: 2})
	alone.always(t, "a barrier that one has come to")
	alone.add(model.Event{Kind: model.Leave, Object: b1})
	alone.never(t, "a barrier that one alone leaves")

	thread := newLitmus(2)
	thread.write(0, x, 1)
	thread.add(model.Event{Kind: model.Fork, Peer: 1})
	thread.add(model.Event{Kind: model.Begin, Thread: 1})
	thread.bug(thread.read(1, x), 1)
	thread.write(1, y, 1)
	thread.add(model.Event{Kind: model.Join, Peer: 1})
	thread.never(t, "a thread that is joined and has not ended")
	thread.add(model.Event{Kind: model.End, Thread: 1})
	thread.always(t, "a thread that is forked and joined")
	thread.bug(thread.read(0, y), 0)
	thread.never(t, "an old value behind a join")
}

// clone(2) numbers a process's threads in the order of their creation: in another order than the
// recorded one they would have other numbers.
func TestThreadsAreMadeInTheirOrder(t *testing.T) {
	made := func(order ...int) *litmus {
		l := newLitmus(4)
		for i, n := range order {
			l.Threads[i+1].CreationOrder = n
		}
		fork := func(by, peer int) { l.add(model.Event{Kind: model.Fork, Thread: by, Peer: peer}) }
		fork(0, 1)
		fork(0, 2)
		l.write(0, x, 1)
		l.sync(1, model.Begin, 0)
		l.bug(l.read(1, x), 1)
		fork(1, 3)
		return l
	}
	made(0, 0, 0).always(t, "in any order")
	made(1, 2, 3).always(t, "the thread made behind the write as the last")
	made(1, 3, 2).never(t, "a thread made behind the write and before another")
}
