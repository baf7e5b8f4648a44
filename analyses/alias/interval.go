package alias

import (
	"fmt"
	"math"
)

// Interval is numbers from Low to High, each Stride further than the one before;
// of one number the Stride is 0. Low and High may be as far as numbers go: then there
// is no bound.
type Interval struct {
	Low, High int64
	Stride    uint64
}

// All are all numbers, and Exactly is one.
var All = Interval{math.MinInt64, math.MaxInt64, 1}

// Exactly is one number.
func Exactly(x int64) Interval { return Interval{Low: x, High: x} }

// Range is the numbers from low to high.
func Range(low, high int64) Interval {
	if low == high {
		return Exactly(low)
	}
	return Interval{low, high, 1}
}

// One tells that it is one number.
func (a Interval) One() bool { return a.Low == a.High }

func (a Interval) String() string {
	switch {
	case a.One():
		return fmt.Sprint(a.Low)
	case a == All:
		return "*"
	}
	low, high := "", ""
	if a.Low != math.MinInt64 {
		low = fmt.Sprint(a.Low)
	}
	if a.High != math.MaxInt64 {
		high = fmt.Sprint(a.High)
	}
	return fmt.Sprintf("%s..%s/%d", low, high, a.Stride)
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func distance(a, b int64) uint64 {
	if a > b {
		a, b = b, a
	}
	return uint64(b) - uint64(a)
}

// anchor is a number of the interval, from which strides count: of one without a
// lower bound, its upper one.
func (a Interval) anchor() int64 {
	if a.Low == math.MinInt64 {
		return a.High
	}
	return a.Low
}

// Join is an interval with all numbers of both.
func (a Interval) Join(b Interval) Interval {
	if a == b {
		return a
	}
	stride := gcd(a.Stride, b.Stride)
	if a.anchored() && b.anchored() {
		stride = gcd(stride, distance(a.anchor(), b.anchor()))
	} else {
		stride = 1
	}
	return made(min(a.Low, b.Low), max(a.High, b.High), stride)
}

// anchored tells that there is a bound.
func (a Interval) anchored() bool { return a.Low != math.MinInt64 || a.High != math.MaxInt64 }

func made(low, high int64, stride uint64) Interval {
	if low == high {
		return Exactly(low)
	}
	c := Interval{low, high, max(stride, 1)}
	if !c.anchored() {
		c.Stride = 1
	}
	return c
}

// Widen is what a grows to if it goes on to grow as it does to b.
func (a Interval) Widen(b Interval) Interval {
	j := a.Join(b)
	if j.Low < a.Low {
		j.Low = math.MinInt64
	}
	if j.High > a.High {
		j.High = math.MaxInt64
	}
	return made(j.Low, j.High, j.Stride)
}

// plus adds without overflow: further than numbers go is no bound.
func plus(a, b int64) int64 {
	switch c := a + b; {
	case a == math.MaxInt64 || b == math.MaxInt64 || a > 0 && b > 0 && c < 0:
		return math.MaxInt64
	case a == math.MinInt64 || b == math.MinInt64 || a < 0 && b < 0 && c >= 0:
		return math.MinInt64
	default:
		return c
	}
}

// Add is all sums.
func (a Interval) Add(b Interval) Interval {
	low, high := plus(a.Low, b.Low), plus(a.High, b.High)
	if a.Low == math.MinInt64 || b.Low == math.MinInt64 {
		low = math.MinInt64
	}
	if low == math.MaxInt64 || high == math.MinInt64 {
		return All // around the end
	}
	return made(low, high, gcd(a.Stride, b.Stride))
}

// Negate is all numbers with the other sign.
func (a Interval) Negate() Interval {
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	if a.High != math.MaxInt64 {
		low = -a.High
	}
	if a.Low != math.MinInt64 {
		high = -a.Low
	}
	return made(low, high, a.Stride)
}

// Scale is all products with a positive number.
func (a Interval) Scale(by int64) Interval {
	scaled := func(x int64) int64 {
		if x == math.MinInt64 || x == math.MaxInt64 || x > math.MaxInt64/by || x < math.MinInt64/by {
			if x < 0 {
				return math.MinInt64
			}
			return math.MaxInt64
		}
		return x * by
	}
	return made(scaled(a.Low), scaled(a.High), a.Stride*uint64(by))
}

// Meets tells whether bytes at numbers of one interval, n behind each, and at those of
// another, k behind each, can be the same. Where a stride is further than both reach,
// and a bound says where it counts from, what is between does not count.
func (a Interval) Meets(n int, b Interval, k int) bool {
	if !a.One() || !b.One() {
		if plus(a.High, int64(n)) <= b.Low || plus(b.High, int64(k)) <= a.Low {
			return false
		}
	} else if a.Low+int64(n) <= b.Low || b.Low+int64(k) <= a.Low {
		return false
	}
	stride := gcd(a.Stride, b.Stride)
	if stride <= 1 || !a.anchored() || !b.anchored() {
		return true
	}
	// Bytes of a begin at anchor(a) modulo the stride.
	from := distance(a.anchor(), b.anchor()) % stride
	if b.anchor() < a.anchor() {
		from = (stride - from) % stride
	}
	return from < uint64(n) || stride-from < uint64(k)
}
