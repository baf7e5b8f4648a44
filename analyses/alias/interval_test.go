package alias

import (
	"math"
	"math/rand/v2"
	"testing"
)

// intervalMembers lists an interval's numbers, some of them if it has no bound.
func intervalMembers(a Interval) []int64 {
	from, to := a.Low, a.High
	if a.Low == math.MinInt64 {
		from = a.anchor() - 3*int64(a.Stride)
	}
	if a.High == math.MaxInt64 {
		to = from + 5*int64(a.Stride)
	}
	list := []int64{from}
	for x := from; a.Stride > 0 && x+int64(a.Stride) <= to; {
		x += int64(a.Stride)
		list = append(list, x)
	}
	return list
}

func hasMember(a Interval, x int64) bool {
	if x < a.Low || x > a.High {
		return false
	}
	return a.Stride <= 1 || absDifference(a.anchor(), x)%a.Stride == 0
}

func drawInterval(r *rand.Rand) Interval {
	low := int64(r.IntN(60)) - 30
	if r.IntN(3) == 0 {
		return Exactly(low)
	}
	stride := int64(1 + r.IntN(9))
	high := low + stride*int64(1+r.IntN(6))
	switch r.IntN(6) {
	case 0:
		return newInterval(math.MinInt64, high, uint64(stride), high)
	case 1:
		return newInterval(low, math.MaxInt64, uint64(stride), low)
	case 2:
		return newInterval(math.MinInt64, math.MaxInt64, uint64(stride), low)
	}
	return newInterval(low, high, uint64(stride), low)
}

// Intervals contain all results of arithmetic on their members, and two overlap if their
// members' bytes do.
func TestIntervals(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	apart := 0
	for range 20000 {
		a, b := drawInterval(r), drawInterval(r)
		n, k, by := 1+r.IntN(8), 1+r.IntN(8), int64(1+r.IntN(8))
		meet := false
		for _, x := range intervalMembers(a) {
			if !hasMember(a.Join(b), x) || !hasMember(a.Widen(b), x) || !hasMember(a.Negate(), -x) || !hasMember(a.Scale(by), x*by) {
				t.Fatalf("%v, %v: %d is left out", a, b, x)
			}
			for _, y := range intervalMembers(b) {
				if !hasMember(a.Add(b), x+y) || !hasMember(a.Join(b), y) || !hasMember(a.Widen(b), y) {
					t.Fatalf("%v, %v: %d or %d is left out", a, b, x, y)
				}
				meet = meet || x < y+int64(k) && y < x+int64(n)
			}
		}
		if meet && !a.MayOverlap(n, b, k) {
			t.Fatalf("%v of %d bytes meets %v of %d", a, n, b, k)
		}
		if !a.MayOverlap(n, b, k) {
			apart++
		}
	}
	if apart < 5000 {
		t.Errorf("%d pairs are apart", apart)
	}
}
