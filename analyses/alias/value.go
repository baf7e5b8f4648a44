package alias

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// numberRegion is the region of values that are no addresses.
const numberRegion = -1

// maxParts is the most regions in a value; beyond it the value may be anything.
const maxParts = 24

// Value is the set of contents that a register or a word of memory may have. The zero Value
// is the empty set: it was not set.
type Value struct {
	// isTop is set if it may be anything.
	isTop bool
	parts []valuePart // by region
}

// valuePart is numbers, or offsets in a region.
type valuePart struct {
	region int
	at     Interval
}

var (
	topValue   = Value{isTop: true}
	anyNumber  = Value{parts: []valuePart{{numberRegion, All}}}
	truthValue = Value{parts: []valuePart{{numberRegion, Range(0, 1)}}}
)

func numberValue(at Interval) Value { return Value{parts: []valuePart{{numberRegion, at}}} }

func pointerValue(region int, at Interval) Value { return Value{parts: []valuePart{{region, at}}} }

func (v Value) isUnset() bool { return !v.isTop && len(v.parts) == 0 }

// isNumber reports whether it is no address.
func (v Value) isNumber() bool {
	return !v.isTop && len(v.parts) == 1 && v.parts[0].region == numberRegion
}

// asConstant returns its number if it is a single one.
func (v Value) asConstant() (int64, bool) {
	if v.isNumber() && v.parts[0].at.IsSingle() {
		return v.parts[0].at.Low, true
	}
	return 0, false
}

func (v Value) equalTo(w Value) bool { return v.isTop == w.isTop && slices.Equal(v.parts, w.parts) }

func (v Value) String() string {
	switch {
	case v.isTop:
		return "?"
	case v.isUnset():
		return "-"
	}
	var list []string
	for _, p := range v.parts {
		list = append(list, fmt.Sprintf("%d:%v", p.region, p.at))
	}
	return strings.Join(list, " ")
}

// mergeValues is the union of two values; both combines intervals of one region.
func mergeValues(v, w Value, both func(a, b Interval) Interval) Value {
	switch {
	case v.isTop || w.isTop:
		return topValue
	case len(w.parts) == 0:
		return v
	case len(v.parts) == 0:
		return w
	}
	if len(v.parts) == 1 && len(w.parts) == 1 && v.parts[0] == w.parts[0] {
		return v
	}
	out := make([]valuePart, 0, len(v.parts)+len(w.parts))
	a, b := v.parts, w.parts
	for len(a) > 0 && len(b) > 0 {
		switch cmp.Compare(a[0].region, b[0].region) {
		case -1:
			out, a = append(out, a[0]), a[1:]
		case 1:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, valuePart{a[0].region, both(a[0].at, b[0].at)}), a[1:], b[1:]
		}
	}
	out = append(append(out, a...), b...)
	if len(out) > maxParts {
		return topValue
	}
	return Value{parts: out}
}

func joinValues(v, w Value) Value { return mergeValues(v, w, Interval.Join) }

func widenValues(v, w Value) Value { return mergeValues(v, w, Interval.Widen) }

// mapParts applies a function to the intervals.
func (v Value) mapParts(f func(p valuePart) valuePart) Value {
	if v.isTop {
		return v
	}
	var out Value
	for _, p := range v.parts {
		out = joinValues(out, Value{parts: []valuePart{f(p)}})
	}
	return out
}

// addValues is all sums of a number and a number or an address. Two addresses have no sum in C: if
// both operands can only be addresses, the sum is any address of their regions.
func addValues(v, w Value) Value {
	switch {
	case v.isUnset() || w.isUnset():
		return Value{}
	case v.isTop && w.isTop:
		return topValue
	case v.isTop:
		return w.addAnything()
	case w.isTop:
		return v.addAnything()
	}
	number, isNumber := v.numberPart()
	other, isOtherNumber := w.numberPart()
	switch {
	case isNumber && isOtherNumber:
		return joinValues(w.shiftBy(number), v.shiftBy(other))
	case isNumber:
		return w.shiftBy(number)
	case isOtherNumber:
		return v.shiftBy(other)
	}
	return joinValues(anyOffset(v), anyOffset(w))
}

// addAnything is all sums with a word that may be anything: a number, if the value can only be an
// address.
func (v Value) addAnything() Value {
	if _, ok := v.numberPart(); ok {
		return topValue
	}
	return anyOffset(v)
}

// shiftBy adds a number to all contents.
func (v Value) shiftBy(by Interval) Value {
	return v.mapParts(func(p valuePart) valuePart { return valuePart{p.region, p.at.Add(by)} })
}

// numberPart returns the numbers of a value that is not Top.
func (v Value) numberPart() (Interval, bool) {
	if len(v.parts) > 0 && v.parts[0].region == numberRegion {
		return v.parts[0].at, true
	}
	return Interval{}, false
}

func (v Value) hasAddress() bool {
	return slices.ContainsFunc(v.parts, func(p valuePart) bool { return p.region != numberRegion })
}

// numberInterval is the interval of a value that is a number, otherwise all numbers.
func (v Value) numberInterval() Interval {
	if !v.isTop && len(v.parts) > 0 && v.parts[0].region == numberRegion && len(v.parts) == 1 {
		return v.parts[0].at
	}
	return All
}

// subtractValues is all differences of a number or an address and a number, and any number if the
// second operand may be an address: of the same region, as in C.
func subtractValues(v, w Value) Value {
	if v.isUnset() || w.isUnset() {
		return Value{}
	}
	by, isNumber := w.numberPart()
	if w.isTop {
		by, isNumber = All, true
	}
	out := Value{}
	if isNumber {
		out = v.shiftBy(by.Negate())
	}
	if w.isTop || w.hasAddress() {
		out = joinValues(out, anyNumber)
	}
	return out
}

// scaleValue is all products with a number.
func scaleValue(v Value, by int64) Value {
	if !v.isNumber() || by <= 0 {
		return anyNumber
	}
	return numberValue(v.parts[0].at.Scale(by))
}

// maskValue is v AND a number: for an address, an aligned address.
func maskValue(v Value, mask int64) Value {
	switch {
	case mask >= 0:
		return numberValue(Range(0, mask))
	case v.isTop || v.hasAddress():
		return v.mapParts(func(p valuePart) valuePart { return valuePart{p.region, All} })
	}
	return anyNumber
}

// truncateNumber is a number of bits bits, sign-extended or zero-extended.
func truncateNumber(v Value, bits int, signed bool) Value {
	low, high := int64(0), int64(1)<<bits-1
	if signed {
		low, high = -int64(1)<<(bits-1), int64(1)<<(bits-1)-1
	}
	if v.isUnset() {
		return v
	}
	if v.isNumber() && v.parts[0].at.Low >= low && v.parts[0].at.High <= high {
		return v
	}
	return numberValue(Range(low, high))
}
