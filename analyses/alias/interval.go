package alias

import (
	"fmt"
	"math"
)

// Interval is the numbers from Low to High at distances of Stride; a single number has
// Stride 0. The extreme values of Low and High mean that there is no bound. If both are
// missing, Remainder is the remainder of the numbers modulo Stride.
type Interval struct {
	Low, High         int64
	Stride, Remainder uint64
}

// All is all numbers.
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

// IsSingle reports whether it is one number.
func (a Interval) IsSingle() bool { return a.Low == a.High }

func (a Interval) String() string {
	switch {
	case a.IsSingle():
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
		low = fmt.Sprintf("(%d)", a.Remainder)
	}
	return fmt.Sprintf("%s..%s/%d", low, high, a.Stride)
}

func greatestDivisor(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func absDifference(a, b int64) uint64 {
	if a > b {
		a, b = b, a
	}
	return uint64(b) - uint64(a)
}

// anchor is a number of the interval from which strides count: the lower bound, else the
// upper one, else the remainder.
func (a Interval) anchor() int64 {
	switch {
	case a.Low != math.MinInt64:
		return a.Low
	case a.High != math.MaxInt64:
		return a.High
	}
	return int64(a.Remainder)
}

// remainderOf is the remainder, not negative, of a number modulo a stride.
func remainderOf(x int64, stride uint64) uint64 {
	if x >= 0 {
		return uint64(x) % stride
	}
	return (stride - absDifference(0, x)%stride) % stride
}

// Join is the smallest interval found with all numbers of both.
func (a Interval) Join(b Interval) Interval {
	if a == b {
		return a
	}
	stride := greatestDivisor(greatestDivisor(a.Stride, b.Stride), absDifference(a.anchor(), b.anchor()))
	return newInterval(min(a.Low, b.Low), max(a.High, b.High), stride, a.anchor())
}

// newInterval is the numbers between two that are whole strides from an anchor.
func newInterval(low, high int64, stride uint64, anchor int64) Interval {
	if low == high {
		return Exactly(low)
	}
	c := Interval{Low: low, High: high, Stride: max(stride, 1)}
	if low == math.MinInt64 && high == math.MaxInt64 {
		c.Remainder = remainderOf(anchor, c.Stride)
	}
	return c
}

// Widen is the join of a and b without the bounds at which b exceeds a.
func (a Interval) Widen(b Interval) Interval {
	j := a.Join(b)
	anchor := j.anchor()
	if j.Low < a.Low {
		j.Low = math.MinInt64
	}
	if j.High > a.High {
		j.High = math.MaxInt64
	}
	return newInterval(j.Low, j.High, j.Stride, anchor)
}

// addSaturating adds without overflow: a sum out of range is no bound.
func addSaturating(a, b int64) int64 {
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
	low, high := addSaturating(a.Low, b.Low), addSaturating(a.High, b.High)
	if a.Low == math.MinInt64 || b.Low == math.MinInt64 {
		low = math.MinInt64
	}
	if low == math.MaxInt64 || high == math.MinInt64 {
		return All // sums may wrap
	}
	stride := max(greatestDivisor(a.Stride, b.Stride), 1)
	return newInterval(low, high, stride, int64((remainderOf(a.anchor(), stride)+remainderOf(b.anchor(), stride))%stride))
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
	return newInterval(low, high, stride, int64((stride-remainderOf(a.anchor(), stride))%stride))
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
	if a.IsSingle() && (scaled(a.Low) == math.MaxInt64 || scaled(a.Low) == math.MinInt64) || stride > math.MaxInt64/uint64(by) {
		return All
	}
	return newInterval(scaled(a.Low), scaled(a.High), a.Stride*uint64(by), int64(remainderOf(a.anchor(), stride))*by)
}

// MayOverlap reports whether n bytes from a number of one interval may overlap k bytes from
// a number of the other. Bounds are compared first, then remainders modulo the common
// stride.
func (a Interval) MayOverlap(n int, b Interval, k int) bool {
	if !a.IsSingle() || !b.IsSingle() {
		if addSaturating(a.High, int64(n)) <= b.Low || addSaturating(b.High, int64(k)) <= a.Low {
			return false
		}
	} else if a.Low+int64(n) <= b.Low || b.Low+int64(k) <= a.Low {
		return false
	}
	stride := greatestDivisor(a.Stride, b.Stride)
	if stride <= 1 {
		return true
	}
	// Bytes of a begin at anchor(a) modulo the stride.
	from := absDifference(a.anchor(), b.anchor()) % stride
	if b.anchor() < a.anchor() {
		from = (stride - from) % stride
	}
	return from < uint64(n) || stride-from < uint64(k)
}
