package alias

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// number is the region of values that are no addresses.
const number = -1

// mostParts is of how many regions a value can be; with more it may be anything.
const mostParts = 24

// Value is what a register or a word of memory may be. The zero Value is nothing: it
// was not set.
type Value struct {
	// any tells that it may be everything.
	any   bool
	parts []part // by region
}

// part is numbers, or offsets in a region.
type part struct {
	region int
	at     Interval
}

var (
	top     = Value{any: true}
	numbers = Value{parts: []part{{number, All}}}
	bit     = Value{parts: []part{{number, Range(0, 1)}}}
)

func numeric(at Interval) Value { return Value{parts: []part{{number, at}}} }

func pointer(region int, at Interval) Value { return Value{parts: []part{{region, at}}} }

func (v Value) none() bool { return !v.any && len(v.parts) == 0 }

// isNumber tells that it is no address.
func (v Value) isNumber() bool { return !v.any && len(v.parts) == 1 && v.parts[0].region == number }

// constant is the number that it is.
func (v Value) constant() (int64, bool) {
	if v.isNumber() && v.parts[0].at.One() {
		return v.parts[0].at.Low, true
	}
	return 0, false
}

func (v Value) equal(w Value) bool { return v.any == w.any && slices.Equal(v.parts, w.parts) }

func (v Value) String() string {
	switch {
	case v.any:
		return "?"
	case v.none():
		return "-"
	}
	var list []string
	for _, p := range v.parts {
		list = append(list, fmt.Sprintf("%d:%v", p.region, p.at))
	}
	return strings.Join(list, " ")
}

// merge is what either is; each combines intervals of one region.
func merge(v, w Value, both func(a, b Interval) Interval) Value {
	switch {
	case v.any || w.any:
		return top
	case len(w.parts) == 0:
		return v
	case len(v.parts) == 0:
		return w
	}
	if len(v.parts) == 1 && len(w.parts) == 1 && v.parts[0] == w.parts[0] {
		return v
	}
	out := make([]part, 0, len(v.parts)+len(w.parts))
	a, b := v.parts, w.parts
	for len(a) > 0 && len(b) > 0 {
		switch cmp.Compare(a[0].region, b[0].region) {
		case -1:
			out, a = append(out, a[0]), a[1:]
		case 1:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, part{a[0].region, both(a[0].at, b[0].at)}), a[1:], b[1:]
		}
	}
	out = append(append(out, a...), b...)
	if len(out) > mostParts {
		return top
	}
	return Value{parts: out}
}

func join(v, w Value) Value { return merge(v, w, Interval.Join) }

func widen(v, w Value) Value { return merge(v, w, Interval.Widen) }

// each applies a function to the intervals.
func (v Value) each(f func(p part) part) Value {
	if v.any {
		return v
	}
	var out Value
	for _, p := range v.parts {
		out = join(out, Value{parts: []part{f(p)}})
	}
	return out
}

// add is all sums. What is added to an address is a number.
func add(v, w Value) Value {
	if v.none() || w.none() {
		return Value{}
	}
	if !v.hasAddress() && w.hasAddress() {
		v, w = w, v
	}
	switch {
	case v.any && w.any:
		return top
	case v.any && !w.hasAddress(): // an address may be hidden
		return top
	}
	by := w.numbers()
	return v.each(func(p part) part { return part{p.region, p.at.Add(by)} })
}

func (v Value) hasAddress() bool {
	return slices.ContainsFunc(v.parts, func(p part) bool { return p.region != number })
}

// numbers is the interval of the numbers that it is, if it is one.
func (v Value) numbers() Interval {
	if !v.any && len(v.parts) > 0 && v.parts[0].region == number && len(v.parts) == 1 {
		return v.parts[0].at
	}
	return All
}

// subtract is all differences: of two addresses it is a number.
func subtract(v, w Value) Value {
	if v.none() || w.none() {
		return Value{}
	}
	switch {
	case w.any && v.any:
		return top
	case w.any && v.hasAddress():
		return join(v.each(func(p part) part { return part{p.region, All} }), numbers)
	case w.any || w.hasAddress():
		return numbers
	}
	by := w.numbers().Negate()
	return v.each(func(p part) part { return part{p.region, p.at.Add(by)} })
}

// scale is all products with a number.
func scale(v Value, by int64) Value {
	if !v.isNumber() || by <= 0 {
		return numbers
	}
	return numeric(v.parts[0].at.Scale(by))
}

// masked is v AND a number: of an address one that is aligned.
func masked(v Value, mask int64) Value {
	switch {
	case mask >= 0:
		return numeric(Range(0, mask))
	case v.any || v.hasAddress():
		return v.each(func(p part) part { return part{p.region, All} })
	}
	return numbers
}

// narrowed is a number of so many bits, extended with its sign or with zeros.
func narrowed(v Value, bits int, signed bool) Value {
	low, high := int64(0), int64(1)<<bits-1
	if signed {
		low, high = -int64(1)<<(bits-1), int64(1)<<(bits-1)-1
	}
	if v.none() {
		return v
	}
	if v.isNumber() && v.parts[0].at.Low >= low && v.parts[0].at.High <= high {
		return v
	}
	return numeric(Range(low, high))
}
