package points

import (
	"math"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/rand"
)

// DelaySchedules is the number of schedules of Delay with a number of delays at k points, at most 2^62: the number
// of multisets, since several delays may be at one point.
func DelaySchedules(bound int, k uint64) uint64 {
	n, x := uint64(1), float64(1)
	for i := range uint64(bound) {
		if x *= float64(k+i) / float64(i+1); x > 1<<62 {
			return 1 << 62
		}
		n = n * (k + i) / (i + 1)
	}
	return n
}

// placeDelays returns the points of the multiset with a rank, in ascending order. Successive ranks are far from
// each other: the numbers of multisets are permuted.
func placeDelays(bound int, k, rank uint64) []uint64 {
	k = max(1, k)
	total := DelaySchedules(bound, k)
	rank = permute(rank%total, total)
	list := make([]uint64, bound)
	least := uint64(1)
	for i := range list {
		for least < k {
			// Multisets with this point as the next: of the others among the points from it on.
			n := DelaySchedules(bound-i-1, k-least+1)
			if rank < n {
				break
			}
			rank -= n
			least++
		}
		list[i] = least
	}
	return list
}

// permute permutes the numbers below n by a multiplication with a number near the golden section of n.
func permute(x, n uint64) uint64 {
	if n >= 1<<31 {
		return x
	}
	by := uint64(float64(n)*(math.Sqrt(5)-1)/2) | 1
	for gcd(by, n) != 1 {
		by += 2
	}
	return x * by % n
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// preempting is the strategy Preempt.
type preempting struct {
	serial
	at    []uint64 // points of preemptions that are still to come
	asked uint64
}

func (s *preempting) Choose(c *Choice) arch.ThreadID {
	s.asked++
	preempts := false
	for len(s.at) > 0 && s.at[0] <= s.asked {
		s.at = s.at[1:]
		preempts = true
	}
	if others := without(c.Runnable, c.Current); preempts {
		return others[s.draw.Below(uint64(len(others)))]
	}
	return s.serial.Choose(c)
}

// periods is the strategy Period.
type periods struct {
	draw    rand.Stream
	number  int
	left    map[arch.ThreadID]uint64 // operations in a run; for look-up only
	ends    map[arch.ThreadID][]uint64
	ranks   map[arch.ThreadID][]uint64 // in each period; the lowest is the first
	done    map[arch.ThreadID]uint64   // operations
	period  int
	yielded arch.ThreadID
}

func newPeriods(draw rand.Stream, number int, left map[arch.ThreadID]uint64) *periods {
	return &periods{
		draw: draw, number: number, left: left, yielded: arch.NoThread, ends: map[arch.ThreadID][]uint64{},
		ranks: map[arch.ThreadID][]uint64{}, done: map[arch.ThreadID]uint64{},
	}
}

func (s *periods) Yield(t arch.ThreadID) { s.yielded = t }

func (s *periods) Choose(c *Choice) arch.ThreadID {
	others := without(c.Runnable, s.yielded)
	s.yielded = arch.NoThread
	for _, t := range others {
		s.prepare(t)
	}
	t := s.first(others)
	for t == arch.NoThread && s.period < s.number-1 {
		s.period++
		t = s.first(others)
	}
	if t == arch.NoThread {
		t = others[0]
	}
	if _, before := c.Next[t]; before {
		s.done[t]++
	}
	return t
}

// first returns the first thread that has operations left in the period: all have in the last one.
func (s *periods) first(among []arch.ThreadID) arch.ThreadID {
	best := arch.NoThread
	for _, t := range among {
		if s.period < s.number-1 && s.done[t] >= s.ends[t][s.period] {
			continue
		}
		if best == arch.NoThread || s.ranks[t][s.period] < s.ranks[best][s.period] {
			best = t
		}
	}
	return best
}

// prepare divides the operations of a new thread among the periods.
func (s *periods) prepare(t arch.ThreadID) {
	if s.ranks[t] != nil {
		return
	}
	for range s.number {
		s.ranks[t] = append(s.ranks[t], s.draw.Uint64())
		s.ends[t] = append(s.ends[t], s.draw.Below(s.left[t]+1))
	}
	slices.Sort(s.ends[t])
}
