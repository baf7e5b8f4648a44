package hybrid

import "sort"

// Reducer prunes constraints by transitivity, which PEREGRINE does not: a constraint is left out if
// a path of kept constraints, synchronization operations and threads' own orders leads from its
// first instance to its second.
//
// It goes through the run once and keeps, for each thread, up to which place of each other thread
// everything precedes the thread's present place. Places are numbers of one trace, which are larger
// later on.
type Reducer struct {
	threads []progress
	// position is the same for the total order of synchronization operations.
	position orderedUpTo
}

// orderedUpTo has, for each thread, the end of the half-open range of its places that come before.
type orderedUpTo []uint64

func (k *orderedUpTo) raiseTo(thread int, end uint64) {
	for len(*k) <= thread {
		*k = append(*k, 0)
	}
	(*k)[thread] = max((*k)[thread], end)
}

func (k *orderedUpTo) joinWith(other orderedUpTo) {
	for thread, end := range other {
		k.raiseTo(thread, end)
	}
}

func (k orderedUpTo) covers(thread int, at uint64) bool { return thread < len(k) && at < k[thread] }

// progress has the knowledge of a thread from each of its places on, in order.
type progress []struct {
	at    uint64
	known orderedUpTo
}

// knownAt returns the knowledge at a place.
func (p progress) knownAt(at uint64) orderedUpTo {
	n := sort.Search(len(p), func(i int) bool { return p[i].at > at })
	if n == 0 {
		return nil
	}
	return p[n-1].known
}

// addKnown adds to the knowledge of a thread from a place on.
func (r *Reducer) addKnown(thread int, at uint64, what orderedUpTo) {
	for len(r.threads) <= thread {
		r.threads = append(r.threads, nil)
	}
	p := r.threads[thread]
	var now orderedUpTo
	if len(p) > 0 {
		now = append(now, p[len(p)-1].known...)
	}
	now.joinWith(what)
	if len(p) > 0 && p[len(p)-1].at == at {
		p[len(p)-1].known = now
		return
	}
	r.threads[thread] = append(p, struct {
		at    uint64
		known orderedUpTo
	}{at, now})
}

// Sync adds a synchronization operation of a thread, the next one in the total order, at a place in
// the trace.
func (r *Reducer) Sync(thread int, at uint64) {
	r.addKnown(thread, at, r.position)
	r.position.joinWith(r.threads[thread].knownAt(at))
	r.position.raiseTo(thread, at+1)
}

// Add takes a constraint, in the order of Subsumer.Add, and returns whether it is needed.
func (r *Reducer) Add(c Constraint) bool {
	first, second := c.First, c.Second
	var before, now orderedUpTo
	if second.Thread < len(r.threads) {
		now = r.threads[second.Thread].knownAt(second.At)
	}
	if now.covers(first.Thread, first.At) {
		return false
	}
	if first.Thread < len(r.threads) {
		before = append(before, r.threads[first.Thread].knownAt(first.At)...)
	}
	before.raiseTo(first.Thread, first.At+1)
	r.addKnown(second.Thread, second.At, before)
	return true
}
