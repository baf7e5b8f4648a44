package kernel

import (
	"cmp"
	"container/heap"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
)

// expirer is notified when its timer expires.
type expirer interface{ expire(*Kernel) }

// namedExpirer is an expirer of a clock, whose timerName says what the timer is for.
type namedExpirer interface {
	expirer
	timerName() timerName
}

// timerName is a kind of timer, its process or thread, and its number there.
type timerName struct {
	kind   timerKind
	owner  arch.ThreadID
	number uint64
}

type timerKind uint8

const (
	taskTimer     timerKind = iota // of a system call that waits; the number is the call's
	intervalTimer                  // setitimer(2)
	processTimer                   // timer_create(2)
	fileTimer                      // timerfd_create(2); the number is the descriptor's when it was made
)

func (a timerName) compare(b timerName) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.owner, b.owner), cmp.Compare(a.number, b.number))
}

// timer is an entry of the queue.
type timer struct {
	deadline int64 // ns on the monotonic clock
	sequence uint64
	target   namedExpirer
	index    int // in the heap, -1 when it is not in it
	queue    *timerQueue
}

// timerQueue is a heap of timers, by deadline and then by the order in which they were set.
type timerQueue struct {
	heap timerHeap
	last uint64
}

func (q *timerQueue) add(deadline int64, target namedExpirer) *timer {
	q.last++
	t := &timer{deadline: deadline, sequence: q.last, target: target, queue: q}
	heap.Push(&q.heap, t)
	return t
}

func (t *timer) cancel() {
	if t.index >= 0 {
		heap.Remove(&t.queue.heap, t.index)
	}
}

// NextTimer is the deadline of the earliest timer outside of the service, in ns on the monotonic clock.
func (k *Kernel) NextTimer() (int64, bool) {
	if len(k.suppressed) > 0 {
		k.rearmSuppressed()
	}
	return k.host.nextTimer()
}

// NextTimerIsSleep reports whether the earliest timer outside of the service ends a call of a thread that waits for a time
// to pass and for nothing else.
func (k *Kernel) NextTimerIsSleep() bool {
	if len(k.host.timers.heap) == 0 {
		return false
	}
	t, isTask := k.host.timers.heap[0].target.(*Task)
	return isTask && linux.Has(t.call.number, linux.Sleeps)
}

// FireTimers moves the clock to now and expires the timers outside of the service that are due.
func (k *Kernel) FireTimers(now int64) {
	k.SetNow(now)
	k.fireTimers(k.host)
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
