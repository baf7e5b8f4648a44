package kernel

import "container/heap"

// expirer is notified when its timer expires.
type expirer interface{ expire(*Kernel) }

// timer is an entry of the queue.
type timer struct {
	deadline int64 // ns on the monotonic clock
	sequence uint64
	target   expirer
	index    int // in the heap, -1 when it is not in it
}

// timerQueue is a heap of timers, by deadline and then by the order in which they were set.
type timerQueue struct {
	heap timerHeap
	last uint64
}

func (q *timerQueue) add(deadline int64, target expirer) *timer {
	q.last++
	t := &timer{deadline: deadline, sequence: q.last, target: target}
	heap.Push(&q.heap, t)
	return t
}

func (q *timerQueue) cancel(t *timer) {
	if t.index >= 0 {
		heap.Remove(&q.heap, t.index)
	}
}

// NextTimer is the deadline of the earliest timer, in ns on the monotonic clock.
func (k *Kernel) NextTimer() (int64, bool) {
	if len(k.suppressed) > 0 {
		k.rearmSuppressed()
	}
	if len(k.timers.heap) == 0 {
		return 0, false
	}
	return max(0, k.timers.heap[0].deadline), true
}

// FireTimers moves the clock to now and expires the timers that are due.
func (k *Kernel) FireTimers(now int64) {
	k.SetNow(now)
	for len(k.timers.heap) > 0 && k.timers.heap[0].deadline <= k.now {
		t := heap.Pop(&k.timers.heap).(*timer)
		t.target.expire(k)
	}
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if h[i].deadline != h[j].deadline {
		return h[i].deadline < h[j].deadline
	}
	return h[i].sequence < h[j].sequence
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	t.index = -1
	*h = old[:len(old)-1]
	return t
}
