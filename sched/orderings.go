package sched

import (
	"cmp"
	"slices"
)

// inOrder lists the threads by their ids.
func (c *turns) inOrder() []*taker {
	list := make([]*taker, 0, len(c.threads))
	for _, t := range c.threads {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *taker) int { return cmp.Compare(a.id, b.id) })
	return list
}

// queue is a list of threads.
type queue []*taker

func (q *queue) add(t *taker) { *q = append(*q, t) }

func (q *queue) remove(t *taker) {
	if i := slices.Index(*q, t); i >= 0 {
		*q = slices.Delete(*q, i, i+1)
	}
}

// uncounted is an ordering that has no use for instructions.
type uncounted struct{}

func (uncounted) ran(*taker, uint64)           {}
func (uncounted) budget(*taker) (uint64, bool) { return 0, false }
func (uncounted) spent(*taker) bool            { return false }

// firstCome is TERN's first-come first-served order (section 5.1): a thread that
// comes to an operation does it as soon as no other is in one.
type firstCome struct {
	uncounted
	waiting queue
}

func (*firstCome) joins(_, _ *taker) {}
func (*firstCome) passes(*taker)     {}

func (f *firstCome) leaves(t *taker) { f.waiting.remove(t) }
func (f *firstCome) asks(t *taker)   { f.waiting.add(t) }

func (f *firstCome) next() *taker {
	if len(f.waiting) == 0 {
		return nil
	}
	t := f.waiting[0]
	f.waiting.remove(t)
	return t
}

// roundRobin is TERN's round-robin order (section 5.1, figure 6): only the thread
// at the head of the queue has the turn, and goes to its tail with the end of its
// operation. A thread that waits in the kernel is not in the queue; it joins at
// the tail when it is woken, as a new one does.
//
// In TERN a thread that has waited for a second breaks out of the order. Here,
// where nothing may depend on time, the thread that is waited for passes its turn
// on after so many instructions (fairness) without an operation.
type roundRobin struct {
	line     queue
	fairness uint64
}

func (r *roundRobin) joins(t, _ *taker) {
	t.clock = 0
	r.line.add(t)
}

func (r *roundRobin) leaves(t *taker)        { r.line.remove(t) }
func (r *roundRobin) asks(*taker)            {}
func (r *roundRobin) ran(t *taker, n uint64) { t.clock += n }

func (r *roundRobin) passes(t *taker) {
	t.clock = 0
	r.line.remove(t)
	r.line.add(t)
}

func (r *roundRobin) next() *taker {
	if len(r.line) > 0 && r.line[0].state == asking {
		return r.line[0]
	}
	return nil
}

func (r *roundRobin) budget(t *taker) (uint64, bool) {
	if t.state == acting {
		return r.fairness, true
	}
	return r.fairness - min(r.fairness, t.clock), true
}

func (r *roundRobin) spent(t *taker) bool { return t.clock >= r.fairness }

// kendo is the algorithm of Kendo (Olszewski, Ansel, Amarasinghe: Kendo:
// efficient deterministic multithreading in software, ASPLOS 2009). Each thread
// has a logical clock of the instructions that it has retired outside of
// operations. It may do an operation when its clock is the least of all threads'
// that do not wait in the kernel, the smaller id first among equals, and the
// operation adds one to its clock. A thread that is woken goes on one behind the
// clock of the thread that woke it, or where it was, if that is later.
//
// Kendo counts retired stores, as its processors count instructions inexactly;
// here instructions are exact. In Kendo an unlock does not wait for its turn, and
// a lock compares the logical time of the last unlock with its own; here the
// unlock waits as well, since whether the C library's mutex is free must not
// depend on timing.
type kendo struct {
	present queue // all that do not wait in the kernel
}

func (k *kendo) joins(t, by *taker) {
	switch {
	case by != nil:
		t.clock = max(t.clock, by.clock+1)
	case len(k.present) > 0:
		t.clock = max(t.clock, k.least().clock)
	}
	k.present.add(t)
}

func (k *kendo) leaves(t *taker)      { k.present.remove(t) }
func (*kendo) asks(*taker)            {}
func (*kendo) ran(t *taker, n uint64) { t.clock += n }
func (*kendo) passes(t *taker)        { t.clock++ }
func (*kendo) spent(*taker) bool      { return false }

// before tells whether t's turn is before u's.
func (t *taker) before(u *taker) bool {
	return t.clock < u.clock || t.clock == u.clock && t.id < u.id
}

// least is the thread with the least clock.
func (k *kendo) least() *taker {
	first := k.present[0]
	for _, t := range k.present[1:] {
		if t.before(first) {
			first = t
		}
	}
	return first
}

func (k *kendo) next() *taker {
	if len(k.present) == 0 {
		return nil
	}
	if t := k.least(); t.state == asking {
		return t
	}
	return nil
}

// budget ends where the clock of t passes that of the first thread that asks:
// then the turn may be that one's.
func (k *kendo) budget(t *taker) (uint64, bool) {
	if t.state == acting {
		return 0, false
	}
	var first *taker
	for _, u := range k.present {
		if u != t && u.state == asking && (first == nil || u.before(first)) {
			first = u
		}
	}
	if first == nil || !t.before(first) {
		return 0, false
	}
	return first.clock - t.clock + 1, true
}
