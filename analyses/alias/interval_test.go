package alias

import (
	"math"
	"math/rand/v2"
	"testing"
)

// members lists an interval's numbers: of one without a bound some.
func members(a Interval) []int64 {
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

func has(a Interval, x int64) bool {
	if x < a.Low || x > a.High {
		return false
	}
	return a.Stride <= 1 || distance(a.anchor(), x)%a.Stride == 0
}

func random(r *rand.Rand) Interval {
	low := int64(r.IntN(60)) - 30
	if r.IntN(3) == 0 {
		return Exactly(low)
	}
	stride := int64(1 + r.IntN(9))
	high := low + stride*int64(1+r.IntN(6))
	switch r.IntN(6) {
	case 0:
		return made(math.MinInt64, high, uint64(stride), high)
	case 1:
		return made(low, math.MaxInt64, uint64(stride), low)
	case 2:
		return made(math.MinInt64, math.MaxInt64, uint64(stride), low)
	}
	return made(low, high, uint64(stride), low)
}

// Intervals have all results of arithmetic on their members, and two meet if their
// members' bytes do.
func TestIntervals(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	apart := 0
	for range 20000 {
		a, b := random(r), random(r)
		n, k, by := 1+r.IntN(8), 1+r.IntN(8), int64(1+r.IntN(8))
		meet := false
		for _, x := range members(a) {
			if !has(a.Join(b), x) || !has(a.Widen(b), x) || !has(a.Negate(), -x) || !has(a.Scale(by), x*by) {
				t.Fatalf("%v, %v: %d is left out", a, b, x)
			}
			for _, y := range members(b) {
				if !has(a.Add(b), x+y) || !has(a.Join(b), y) || !has(a.Widen(b), y) {
					t.Fatalf("%v, %v: %d or %d is left out", a, b, x, y)
				}
				meet = meet || x < y+int64(k) && y < x+int64(n)
			}
		}
		if meet && !a.Meets(n, b, k) {
			t.Fatalf("%v of %d bytes meets %v of %d", a, n, b, k)
		}
		if !a.Meets(n, b, k) {
			apart++
		}
	}
	if apart < 5000 {
		t.Errorf("%d pairs are apart", apart)
	}
}
