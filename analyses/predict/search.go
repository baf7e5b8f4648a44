package predict

import (
	"cmp"
	"slices"
	"sort"
)

// Race is a sync-preserving race.
type Race struct {
	// First and Second are the accesses, in the order of the run, and Code their instructions.
	First, Second EventID
	Code          [2]uint64
	// Prefix has the events of each thread that precede both in a reordering: they are executed in the
	// order of the run, and the two next.
	Prefix Clock
}

// Bounds bound a search.
type Bounds struct {
	// Steps is how many times the last acquisition of a lock by a thread is looked up; 0: any number.
	Steps uint64
	// Places is how many pairs of threads and variables are examined for two instructions; 0: any
	// number.
	Places int
	// Stop, unless nil, is asked now and then whether to end the search.
	Stop func() bool
}

// isReached reports whether a search is to end.
func (b *Bounds) isReached(steps uint64) bool {
	return b.Steps > 0 && steps >= b.Steps || b.Stop != nil && b.Stop()
}

// Found is the result of a search.
type Found struct {
	Races []Race
	// Pairs is the number of pairs of instructions that access the same bytes by different threads,
	// one of them a write.
	Pairs int
	// Omitted are pairs of which some places were not examined because of Bounds.Places, and
	// Unfinished the ones that Bounds.Steps left.
	Omitted, Unfinished int
}

// Races reports whether two conflicting accesses are a sync-preserving race, and returns the events that
// precede them.
func (b *Builder) Races(x, y EventID) (prefix Clock, races bool) {
	c := newClosure(b)
	c.include(x)
	c.include(y)
	if !c.close() || c.has(x) || c.has(y) {
		return nil, false
	}
	return c.clock, true
}

// closure is a growing set of events: the sync-preserving closure (definition 3.1 of the paper).
type closure struct {
	b     *Builder
	locks []*lock
	clock Clock
	steps uint64
}

func newClosure(b *Builder) *closure {
	return &closure{b: b, locks: b.sharedLocks(), clock: make(Clock, len(b.threads))}
}

// include adds all that precedes an event in its thread, with all on which that depends.
func (c *closure) include(e EventID) { c.b.addUpTo(c.clock, int(c.b.owner[e]), c.b.local[e]) }

func (c *closure) has(e EventID) bool { return c.clock[c.b.owner[e]] > c.b.local[e] }

// close adds the releases that the critical sections of the set need: of two of one lock the earlier one has
// ended. It reports whether all of them have an end.
func (c *closure) close() bool {
	for grown := true; grown; {
		grown = false
		for _, l := range c.locks {
			more, ends := c.closeLock(l)
			if !ends {
				return false
			}
			grown = grown || more
		}
	}
	return true
}

func (c *closure) closeLock(l *lock) (grown, ends bool) {
	latest := NoEvent
	for n, list := range l.acquired {
		if i := c.lastOf(list, n); i >= 0 {
			latest = max(latest, list[i].at)
		}
	}
	for n, list := range l.acquired {
		i := c.lastOf(list, n)
		if i < 0 || list[i].at == latest {
			continue
		}
		if list[i].release < 0 {
			return grown, false
		}
		grown = c.b.addUpTo(c.clock, n, list[i].release+1) || grown
	}
	return grown, true
}

// lastOf returns the index of the last acquisition by a thread that is in the set, or -1.
func (c *closure) lastOf(list []acquisition, n int) int {
	c.steps++
	return sort.Search(len(list), func(i int) bool { return list[i].local >= c.clock[n] }) - 1
}

// accessList is the accesses of one instruction of one thread to the same bytes of a variable, in their order.
type accessList struct {
	refs []reference
}

func (l accessList) first() *reference { return &l.refs[0] }

// codePair is two instructions, the lower number first.
type codePair struct{ low, high int32 }

// place is two lists of conflicting accesses by different threads.
type place struct{ x, y accessList }

// Search finds a race of each two instructions that have one.
func (b *Builder) Search(bounds Bounds) Found {
	places, order, omitted := b.findPlaces(bounds.Places)
	found := Found{Pairs: len(order), Omitted: omitted}
	locks := b.sharedLocks()
	left := append([]codePair(nil), order...)
	steps := uint64(0)
	// Each pair gets a place in turn, so that a bound leaves none out altogether.
	for n := 0; len(left) > 0; n++ {
		left = slices.DeleteFunc(left, func(k codePair) bool {
			if n >= len(places[k]) {
				return true
			}
			if bounds.isReached(steps) {
				return false
			}
			c := &closure{b: b, locks: locks, clock: make(Clock, len(b.threads))}
			r := c.sweep(places[k][n].x.refs, places[k][n].y.refs)
			steps += c.steps + 1
			if r != nil {
				r.Code = [2]uint64{b.code[k.low], b.code[k.high]}
				found.Races = append(found.Races, *r)
			}
			return r != nil
		})
		if bounds.isReached(steps) {
			break
		}
	}
	found.Unfinished = len(left)
	slices.SortFunc(found.Races, func(x, y Race) int {
		return cmp.Or(cmp.Compare(x.Second, y.Second), cmp.Compare(x.First, y.First))
	})
	return found
}

// sweep finds the first race of accesses of two lists: the set grows along both, so that an access that is in
// it is in all later ones (section 4.3 of the paper).
func (c *closure) sweep(x, y []reference) *Race {
	for len(x) > 0 && len(y) > 0 {
		c.include(x[0].event)
		c.include(y[0].event)
		if !c.close() {
			return nil
		}
		if i, j := c.skip(x), c.skip(y); i+j > 0 {
			x, y = x[i:], y[j:]
			continue
		}
		return &Race{First: min(x[0].event, y[0].event), Second: max(x[0].event, y[0].event), Prefix: slices.Clone(c.clock)}
	}
	return nil
}

// skip returns how many of the accesses are in the set.
func (c *closure) skip(list []reference) int {
	n := int(c.b.owner[list[0].event])
	return sort.Search(len(list), func(i int) bool { return c.b.local[list[i].event] >= c.clock[n] })
}

// findPlaces returns the places at which two instructions conflict, at most the given number for each two, and
// the pairs in the order in which they were found.
func (b *Builder) findPlaces(most int) (places map[codePair][]place, order []codePair, omitted int) {
	places = map[codePair][]place{}
	cut := map[codePair]bool{}
	slices.SortStableFunc(b.refs, b.compareReferences)
	for i := 0; i < len(b.refs); {
		j := i
		var lists []accessList
		for ; j < len(b.refs) && b.refs[j].variable == b.refs[i].variable; j++ {
			if j == i || !b.sameList(&b.refs[j-1], &b.refs[j]) {
				lists = append(lists, accessList{b.refs[j:j]})
			}
			l := &lists[len(lists)-1]
			l.refs = l.refs[:len(l.refs)+1]
		}
		i = j
		for m, x := range lists {
			for _, y := range lists[m+1:] {
				if !b.conflict(x.first(), y.first()) {
					continue
				}
				k := codePair{min(x.first().code, y.first().code), max(x.first().code, y.first().code)}
				if len(places[k]) == 0 {
					order = append(order, k)
				}
				if most > 0 && len(places[k]) >= most {
					cut[k] = true
				} else {
					places[k] = append(places[k], place{x, y})
				}
			}
		}
	}
	return places, order, len(cut)
}

func (b *Builder) compareReferences(x, y reference) int {
	return cmp.Or(
		cmp.Compare(x.variable, y.variable), cmp.Compare(b.owner[x.event], b.owner[y.event]), cmp.Compare(x.code, y.code),
		cmp.Compare(x.from, y.from), cmp.Compare(x.to, y.to), compareBools(x.write, y.write), compareBools(x.atomic, y.atomic),
		cmp.Compare(x.event, y.event),
	)
}

func compareBools(x, y bool) int {
	switch {
	case x == y:
		return 0
	case y:
		return -1
	}
	return 1
}

func (b *Builder) sameList(x, y *reference) bool {
	a, c := *x, *y
	owners := b.owner[a.event] == b.owner[c.event]
	a.event, c.event = 0, 0
	return owners && a == c
}

func (b *Builder) conflict(x, y *reference) bool {
	return b.owner[x.event] != b.owner[y.event] && (x.write || y.write) && !(x.atomic && y.atomic) && x.from < y.to && y.from < x.to
}
