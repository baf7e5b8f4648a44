package dmt

import (
	"cmp"
	"slices"
)

// threadsByID lists the threads by their ids.
func (c *turnController) threadsByID() []*turnThread {
	list := make([]*turnThread, 0, len(c.threads))
	for _, t := range c.threads {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *turnThread) int { return cmp.Compare(a.id, b.id) })
	return list
}

// threadQueue is a list of threads.
type threadQueue []*turnThread

func (q *threadQueue) addThread(t *turnThread) { *q = append(*q, t) }

func (q *threadQueue) removeThread(t *turnThread) {
	if i := slices.Index(*q, t); i >= 0 {
		*q = slices.Delete(*q, i, i+1)
	}
}

// uncountedOrder is an ordering that has no use for instructions.
type uncountedOrder struct{}

func (uncountedOrder) countInstructions(*turnThread, uint64)      {}
func (uncountedOrder) remainingBudget(*turnThread) (uint64, bool) { return 0, false }
func (uncountedOrder) hasSpentBudget(*turnThread) bool            { return false }

// firstComeOrder is TERN's first-come first-served order (section 5.1): a thread that reaches an
// operation does it as soon as no other thread is in one.
type firstComeOrder struct {
	uncountedOrder
	waiting threadQueue
}

func (*firstComeOrder) addRunnable(_, _ *turnThread) {}
func (*firstComeOrder) passTurn(*turnThread)         {}

func (f *firstComeOrder) removeThread(t *turnThread) { f.waiting.removeThread(t) }
func (f *firstComeOrder) addRequest(t *turnThread)   { f.waiting.addThread(t) }

func (f *firstComeOrder) nextInTurn() *turnThread {
	if len(f.waiting) == 0 {
		return nil
	}
	t := f.waiting[0]
	f.waiting.removeThread(t)
	return t
}

// roundRobinOrder is TERN's round-robin order (section 5.1, figure 6): only the thread at the head
// of the queue has the turn, and moves to the tail with the end of its operation. A thread that
// waits in the kernel is not in the queue; it joins at the tail when it is woken, like a new one.
//
// In TERN a thread that has waited for a second breaks out of the order. Here, where nothing may
// depend on time, the thread at the head passes its turn on after a number of instructions
// (fairness) without an operation.
type roundRobinOrder struct {
	line     threadQueue
	fairness uint64
}

func (r *roundRobinOrder) addRunnable(t, _ *turnThread) {
	t.clock = 0
	r.line.addThread(t)
}

func (r *roundRobinOrder) removeThread(t *turnThread)                { r.line.removeThread(t) }
func (r *roundRobinOrder) addRequest(*turnThread)                    {}
func (r *roundRobinOrder) countInstructions(t *turnThread, n uint64) { t.clock += n }

func (r *roundRobinOrder) passTurn(t *turnThread) {
	t.clock = 0
	r.line.removeThread(t)
	r.line.addThread(t)
}

func (r *roundRobinOrder) nextInTurn() *turnThread {
	if len(r.line) > 0 && r.line[0].state == asking {
		return r.line[0]
	}
	return nil
}

func (r *roundRobinOrder) remainingBudget(t *turnThread) (uint64, bool) {
	if t.state == acting {
		return r.fairness, true
	}
	return r.fairness - min(r.fairness, t.clock), true
}

func (r *roundRobinOrder) hasSpentBudget(t *turnThread) bool { return t.clock >= r.fairness }

// kendoOrder is the algorithm of Kendo (Olszewski, Ansel, Amarasinghe: Kendo: efficient
// deterministic multithreading in software, ASPLOS 2009). Each thread has a logical clock of the
// instructions that it has retired outside of operations. It may do an operation when its clock is
// the least of the clocks of all threads that do not wait in the kernel, the smaller id first among
// equals, and the operation adds one to its clock. A thread that is woken continues one after the
// clock of the thread that woke it, or at its own clock, if that is later.
//
// Kendo counts retired stores, as its processors count instructions inexactly; here instructions
// are exact. In Kendo an unlock does not wait for its turn, and a lock compares the logical time of
// the last unlock with its own; here the unlock waits as well, since whether the C library's mutex
// is free must not depend on timing.
type kendoOrder struct {
	present threadQueue // all that do not wait in the kernel
}

func (k *kendoOrder) addRunnable(t, by *turnThread) {
	switch {
	case by != nil:
		t.clock = max(t.clock, by.clock+1)
	case len(k.present) > 0:
		t.clock = max(t.clock, k.leastClockThread().clock)
	}
	k.present.addThread(t)
}

func (k *kendoOrder) removeThread(t *turnThread)              { k.present.removeThread(t) }
func (*kendoOrder) addRequest(*turnThread)                    {}
func (*kendoOrder) countInstructions(t *turnThread, n uint64) { t.clock += n }
func (*kendoOrder) passTurn(t *turnThread)                    { t.clock++ }
func (*kendoOrder) hasSpentBudget(*turnThread) bool           { return false }

// precedes reports whether t's turn is before u's.
func (t *turnThread) precedes(u *turnThread) bool {
	return t.clock < u.clock || t.clock == u.clock && t.id < u.id
}

// leastClockThread is the thread with the least clock.
func (k *kendoOrder) leastClockThread() *turnThread {
	first := k.present[0]
	for _, t := range k.present[1:] {
		if t.precedes(first) {
			first = t
		}
	}
	return first
}

func (k *kendoOrder) nextInTurn() *turnThread {
	if len(k.present) == 0 {
		return nil
	}
	if t := k.leastClockThread(); t.state == asking {
		return t
	}
	return nil
}

// remainingBudget ends where the clock of t passes that of the first thread that asks, which may
// have the turn then.
func (k *kendoOrder) remainingBudget(t *turnThread) (uint64, bool) {
	if t.state == acting {
		return 0, false
	}
	var first *turnThread
	for _, u := range k.present {
		if u != t && u.state == asking && (first == nil || u.precedes(first)) {
			first = u
		}
	}
	if first == nil || !t.precedes(first) {
		return 0, false
	}
	return first.clock - t.clock + 1, true
}
