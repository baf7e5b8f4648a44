package schedule

import (
	"fmt"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
)

// synchronize executes an event that is no access, or returns why it has to wait.
func (r *runner) synchronize(id model.ID, e *model.Event) string {
	switch e.Kind {
	case model.StoreFence:
		if r.model != model.SC {
			r.buffers[e.Thread] = append(r.buffers[e.Thread], pending{id: id})
		}
	case model.Fork:
		if before, ok := r.previousForks[id]; ok && r.nextEvents[r.Events[before].Thread] <= r.Events[before].Number {
			return "another thread is made first"
		}
	case model.Begin:
		return r.beginThread(e)
	case model.Join:
		return r.joinThread(e)
	case model.Lock:
		return r.acquireLock(e)
	case model.Unlock:
		return r.releaseLock(e)
	case model.TryFailed:
		if l := r.locks[e.Object]; l == nil || l.depth == 0 && (e.Shared || len(l.readers) == 0) {
			return "the lock is free"
		}
	case model.Sleep:
		r.waiting[e.Object] = append(r.waiting[e.Object], waiter{thread: e.Thread, sleep: id})
	case model.Wake:
		if !e.TimedOut && slices.ContainsFunc(r.waiting[e.Object], func(w waiter) bool { return w.thread == e.Thread && !w.woken }) {
			return "the thread sleeps"
		}
		r.waiting[e.Object] = slices.DeleteFunc(r.waiting[e.Object], func(w waiter) bool { return w.thread == e.Thread })
	case model.Signal, model.Broadcast:
		return r.wakeWaiters(e)
	case model.Arrive:
		r.arrived[e.Object]++
	case model.Leave:
		return r.leaveBarrier(e)
	case model.Post:
		r.units[e.Object]++
	case model.Take:
		if r.units[e.Object] == 0 {
			return "the semaphore is 0"
		}
		r.units[e.Object]--
	}
	return ""
}

func (r *runner) beginThread(e *model.Event) string {
	for i := range r.Threads {
		for _, id := range r.Threads[i].Events[:r.nextEvents[i]] {
			if f := &r.Events[id]; f.Kind == model.Fork && f.Peer == e.Thread {
				return ""
			}
		}
	}
	return "the thread has not been forked"
}

func (r *runner) joinThread(e *model.Event) string {
	events := r.Threads[e.Peer].Events
	if n := len(events); n == 0 || r.nextEvents[e.Peer] < n || r.Events[events[n-1]].Kind != model.End {
		return fmt.Sprintf("thread %s has not ended", r.Threads[e.Peer].Name)
	}
	return ""
}

func (r *runner) acquireLock(e *model.Event) string {
	l := r.locks[e.Object]
	if l == nil {
		l = &lock{readers: map[int]int{}}
		r.locks[e.Object] = l
	}
	switch {
	case l.depth > 0 && l.owner != e.Thread:
		return fmt.Sprintf("thread %s has the lock", r.Threads[l.owner].Name)
	case e.Shared && l.depth == 0:
		l.readers[e.Thread]++
	case len(l.readers) > 0 && (len(l.readers) > 1 || l.readers[e.Thread] == 0):
		return "readers have the lock"
	default:
		l.owner = e.Thread
		l.depth++
	}
	return ""
}

func (r *runner) releaseLock(e *model.Event) string {
	l := r.locks[e.Object]
	switch {
	case l != nil && l.depth > 0 && l.owner == e.Thread:
		l.depth--
	case l != nil && l.readers[e.Thread] > 0:
		if l.readers[e.Thread]--; l.readers[e.Thread] == 0 {
			delete(l.readers, e.Thread)
		}
	default:
		return "the thread does not have the lock"
	}
	return ""
}

// wakeWaiters wakes the waiting thread that continues first, or has waited longest, or all.
func (r *runner) wakeWaiters(e *model.Event) string {
	first, when := -1, 0
	for i, w := range r.waiting[e.Object] {
		if w.woken {
			continue
		}
		d := r.wakeDeadline(w)
		if e.Kind == model.Broadcast {
			if d == never {
				return fmt.Sprintf("it wakes thread %s", r.Threads[w.thread].Name)
			}
			r.waiting[e.Object][i].woken = true
		} else if first < 0 || d < when && !r.FIFOSignals {
			first, when = i, d
		}
	}
	if first < 0 {
		return ""
	}
	if when == never {
		return fmt.Sprintf("it wakes thread %s", r.Threads[r.waiting[e.Object][first].thread].Name)
	}
	r.waiting[e.Object][first].woken = true
	return ""
}

// leaveBarrier waits until the thread's round at the barrier is full.
func (r *runner) leaveBarrier(e *model.Event) string {
	rounds := 0
	for _, id := range r.Threads[e.Thread].Events[:e.Number] {
		if x := &r.Events[id]; x.Kind == model.Arrive && x.Object == e.Object {
			rounds++
		}
	}
	if arrive := &r.Events[r.Threads[e.Thread].Events[e.Number-1]]; r.arrived[e.Object] < rounds*arrive.Count {
		return "threads are missing at the barrier"
	}
	return ""
}
