package hybrid

import "sort"

// Reducer prunes constraints by transitivity, which PEREGRINE does not: one is
// left out if a path of kept constraints, synchronization operations and
// threads' own orders leads from its first instance to its second.
//
// It goes through the run once and keeps, for each thread, up to where in each
// other thread everything comes before what the thread does now. Places are
// numbers of one trace, which are larger later on.
type Reducer struct {
	threads []progress
	// position is the same for the total order of synchronization operations.
	position known
}

// known is, for each thread, the place up to which what it did comes before,
// this one not included.
type known []uint64

func (k *known) raise(thread int, end uint64) {
	for len(*k) <= thread {
		*k = append(*k, 0)
	}
	(*k)[thread] = max((*k)[thread], end)
}

func (k *known) join(other known) {
	for thread, end := range other {
		k.raise(thread, end)
	}
}

func (k known) covers(thread int, at uint64) bool { return thread < len(k) && at < k[thread] }

// progress is what a thread knew from which of its places on, in order.
type progress []struct {
	at    uint64
	known known
}

// at returns what was known at a place.
func (p progress) at(at uint64) known {
	n := sort.Search(len(p), func(i int) bool { return p[i].at > at })
	if n == 0 {
		return nil
	}
	return p[n-1].known
}

// learn adds to what a thread knows from a place on.
func (r *Reducer) learn(thread int, at uint64, what known) {
	for len(r.threads) <= thread {
		r.threads = append(r.threads, nil)
	}
	p := r.threads[thread]
	var now known
	if len(p) > 0 {
		now = append(now, p[len(p)-1].known...)
	}
	now.join(what)
	if len(p) > 0 && p[len(p)-1].at == at {
		p[len(p)-1].known = now
		return
	}
	r.threads[thread] = append(p, struct {
		at    uint64
		known known
	}{at, now})
}

// Sync tells of a synchronization operation of a thread, the next one in the
// total order, at a place in the trace.
func (r *Reducer) Sync(thread int, at uint64) {
	r.learn(thread, at, r.position)
	r.position.join(r.threads[thread].at(at))
	r.position.raise(thread, at+1)
}

// Keep tells whether the constraint is needed, in the order of Subsumer.Keep.
func (r *Reducer) Keep(c Constraint) bool {
	first, second := c.First, c.Second
	var before, now known
	if second.Thread < len(r.threads) {
		now = r.threads[second.Thread].at(second.At)
	}
	if now.covers(first.Thread, first.At) {
		return false
	}
	if first.Thread < len(r.threads) {
		before = append(before, r.threads[first.Thread].at(first.At)...)
	}
	before.raise(first.Thread, first.At+1)
	r.learn(second.Thread, second.At, before)
	return true
}
