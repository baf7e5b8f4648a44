package complementary

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Order is the threads of a replica by priority, the first one first.
type Order []arch.ThreadID

// Reverse is the order of the complementary replica.
func (o Order) Reverse() Order {
	r := slices.Clone(o)
	slices.Reverse(r)
	return r
}

// Constraints counts happens-before constraints between pairs of threads.
type Constraints map[Pair]uint64

// Pair is two threads, the lower number first.
type Pair struct{ A, B arch.ThreadID }

func orderedPair(a, b arch.ThreadID) Pair { return Pair{min(a, b), max(a, b)} }

// Add counts n constraints between two threads.
func (c Constraints) Add(a, b arch.ThreadID, n uint64) {
	if a != b && n > 0 {
		c[orderedPair(a, b)] += n
	}
}

// Between is how many were counted between two threads.
func (c Constraints) Between(a, b arch.ThreadID) uint64 { return c[orderedPair(a, b)] }

// Inversions is how many constraints are between threads that are not next to
// each other in an order: those through which a third thread may come to stand
// the same way in both schedules (section 3.4.2).
func (c Constraints) Inversions(o Order) uint64 {
	n := uint64(0)
	for i, a := range o {
		for _, b := range o[min(i+2, len(o)):] {
			n += c.Between(a, b)
		}
	}
	return n
}

// Greedy orders threads so that those with many constraints are next to each
// other (section 3.4.2): first the two with the most, then again and again the
// one with the most to either end. Threads without any follow in the order in
// which they are given, which also decides between equals.
func (c Constraints) Greedy(threads []arch.ThreadID) Order {
	left := slices.Clone(threads)
	if len(left) < 3 {
		return left
	}
	a, b := c.busiestPair(left)
	o := Order{left[a], left[b]}
	left = withoutIndex(withoutIndex(left, b), a)
	for len(left) > 0 {
		o, left = c.extendOrder(o, left)
	}
	return o
}

// busiestPair returns the places of the two threads with the most constraints.
func (c Constraints) busiestPair(list []arch.ThreadID) (a, b int) {
	a, b = 0, 1
	for i := range list {
		for j := i + 1; j < len(list); j++ {
			if c.Between(list[i], list[j]) > c.Between(list[a], list[b]) {
				a, b = i, j
			}
		}
	}
	return a, b
}

// extendOrder puts one of the threads that are left at an end of the order.
func (c Constraints) extendOrder(o Order, left []arch.ThreadID) (Order, []arch.ThreadID) {
	best, most, front := 0, uint64(0), false
	for i, t := range left {
		if n := c.Between(o[len(o)-1], t); n > most {
			best, most, front = i, n, false
		}
		if n := c.Between(o[0], t); n > most {
			best, most, front = i, n, true
		}
	}
	t := left[best]
	left = withoutIndex(left, best)
	if front {
		return slices.Insert(o, 0, t), left
	}
	return append(o, t), left
}

func withoutIndex(list []arch.ThreadID, i int) []arch.ThreadID {
	return slices.Delete(slices.Clone(list), i, i+1)
}

// mostExact bounds the threads for which Exact tries every order: 7! / 2.
const mostExact = 7

// Exact is an order with the fewest Inversions, for the constraints of an epoch
// that has been executed already (section 3.4.2 proposes it): of several the one
// that comes first when each is read from its lower end. With more threads than
// mostExact it is Greedy.
func (c Constraints) Exact(threads []arch.ThreadID) Order {
	if len(threads) > mostExact {
		return c.Greedy(threads)
	}
	best := Order(slices.Clone(threads))
	fewest := c.Inversions(best)
	forEachPermutation(slices.Clone(threads), 0, func(o Order) {
		if n := c.Inversions(o); n < fewest {
			best, fewest = slices.Clone(o), n
		}
	})
	return best
}

// forEachPermutation calls f with every permutation that leaves o's first n as they are.
func forEachPermutation(o Order, n int, f func(Order)) {
	if n == len(o) {
		f(o)
		return
	}
	for i := n; i < len(o); i++ {
		o[n], o[i] = o[i], o[n]
		forEachPermutation(o, n+1, f)
		o[n], o[i] = o[i], o[n]
	}
}

// List is the counts, by pair.
func (c Constraints) List() []Count {
	list := make([]Count, 0, len(c))
	for p, n := range c {
		list = append(list, Count{p.A, p.B, n})
	}
	slices.SortFunc(list, func(x, y Count) int { return cmp.Or(cmp.Compare(x.A, y.A), cmp.Compare(x.B, y.B)) })
	return list
}

// Count is how many constraints there are between two threads.
type Count struct {
	A, B arch.ThreadID
	N    uint64
}
