package alias

import (
	"fmt"
	"math"
)

// Interval is numbers from Low to High, each Stride further than the one before;
// of one number the Stride is 0. Low and High may be as far as numbers go: then there
// is no bound, and, if both are, Rest is what divisions by Stride leave.
type Interval struct {
	Low, High    int64
	Stride, Rest uint64
}

// All are all numbers, and Exactly is one.
var All = Interval{Low: math.MinInt64, High: math.MaxInt64, Stride: 1}

// Exactly is one number.
func Exactly(x int64) Interval { return Interval{Low: x, High: x} }

// Range is the numbers from low to high.
func Range(low, high int64) Interval {
	if low == high {
		return Exactly(low)
	}
	return Interval{Low: low, High: high, Stride: 1}
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
	if low+high == "" {
		low = fmt.Sprintf("(%d)", a.Rest)
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

// anchor is a number from which strides count: the lower bound, or the upper one, if
// there is one.
func (a Interval) anchor() int64 {
	switch {
	case a.Low != math.MinInt64:
		return a.Low
	case a.High != math.MaxInt64:
		return a.High
	}
	return int64(a.Rest)
}

// rest is what a division of a number by a stride leaves.
func rest(x int64, stride uint64) uint64 {
	if x >= 0 {
		return uint64(x) % stride
	}
	return (stride - distance(0, x)%stride) % stride
}

// Join is an interval with all numbers of both.
func (a Interval) Join(b Interval) Interval {
	if a == b {
		return a
	}
	stride := gcd(gcd(a.Stride, b.Stride), distance(a.anchor(), b.anchor()))
	return made(min(a.Low, b.Low), max(a.High, b.High), stride, a.anchor())
}

// made is the numbers between two that are whole strides from another.
func made(low, high int64, stride uint64, anchor int64) Interval {
	if low == high {
		return Exactly(low)
	}
	c := Interval{Low: low, High: high, Stride: max(stride, 1)}
	if low == math.MinInt64 && high == math.MaxInt64 {
		c.Rest = rest(anchor, c.Stride)
	}
	return c
}

// Widen is what a grows to if it goes on to grow as it does to b.
func (a Interval) Widen(b Interval) Interval {
	j := a.Join(b)
	anchor := j.anchor()
	if j.Low < a.Low {
		j.Low = math.MinInt64
	}
	if j.High > a.High {
		j.High = math.MaxInt64
	}
	return made(j.Low, j.High, j.Stride, anchor)
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
	stride := max(gcd(a.Stride, b.Stride), 1)
	return made(low, high, stride, int64((rest(a.anchor(), stride)+rest(b.anchor(), stride))%stride))
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
	stride := max(a.Stride, 1)
	return made(low, high, stride, int64((stride-rest(a.anchor(), stride))%stride))
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
	stride := max(a.Stride, 1)
	if a.One() && (scaled(a.Low) == math.MaxInt64 || scaled(a.Low) == math.MinInt64) || stride > math.MaxInt64/uint64(by) {
		return All
	}
	return made(scaled(a.Low), scaled(a.High), a.Stride*uint64(by), int64(rest(a.anchor(), stride))*by)
}

// Meets tells whether bytes at numbers of one interval, n behind each, and at those of
// another, k behind each, can be the same. Where a stride is further than both reach
// what is between does not count.
func (a Interval) Meets(n int, b Interval, k int) bool {
	if !a.One() || !b.One() {
		if plus(a.High, int64(n)) <= b.Low || plus(b.High, int64(k)) <= a.Low {
			return false
		}
	} else if a.Low+int64(n) <= b.Low || b.Low+int64(k) <= a.Low {
		return false
	}
	stride := gcd(a.Stride, b.Stride)
	if stride <= 1 {
		return true
	}
	// Bytes of a begin at anchor(a) modulo the stride.
	from := distance(a.anchor(), b.anchor()) % stride
	if b.anchor() < a.anchor() {
		from = (stride - from) % stride
	}
	return from < uint64(n) || stride-from < uint64(k)
}
