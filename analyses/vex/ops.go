package vex

import (
	"fmt"
	"math/bits"
	"sync"
)

// An opFunc computes an operation. There are always four arguments; those that
// the operation does not have are 0.
type opFunc func(a *[4]Value) Value

// ops has the meaning of each operation that is known, by number.
var ops = sync.OnceValue(func() []opFunc {
	named := map[string]opFunc{}
	integerOps(named)
	conversionOps(named)
	wideOps(named)
	floatOps(named)
	vectorOps(named)
	vectorFloatOps(named)
	table := make([]opFunc, len(opNames()))
	for i, name := range opNames() {
		table[i] = named[name]
	}
	return table
})

func ofOne(f func(x uint64) uint64) opFunc {
	return func(a *[4]Value) Value { return value(f(a[0].Lo)) }
}

func ofTwo(n int, f func(x, y uint64) uint64) opFunc {
	return func(a *[4]Value) Value { return value(low(f(a[0].Lo, a[1].Lo), n)) }
}

func compare(f func(x, y uint64) bool) opFunc {
	return func(a *[4]Value) Value { return boolean(f(a[0].Lo, a[1].Lo)) }
}

func integerOps(named map[string]opFunc) {
	for _, n := range []int{8, 16, 32, 64} {
		set := func(format string, f opFunc) { named[fmt.Sprintf(format, n)] = f }
		set("Add%d", ofTwo(n, func(x, y uint64) uint64 { return x + y }))
		set("Sub%d", ofTwo(n, func(x, y uint64) uint64 { return x - y }))
		set("Mul%d", ofTwo(n, func(x, y uint64) uint64 { return x * y }))
		set("And%d", ofTwo(n, func(x, y uint64) uint64 { return x & y }))
		set("Or%d", ofTwo(n, func(x, y uint64) uint64 { return x | y }))
		set("Xor%d", ofTwo(n, func(x, y uint64) uint64 { return x ^ y }))
		set("Not%d", ofTwo(n, func(x, _ uint64) uint64 { return ^x }))
		set("Shl%d", ofTwo(n, func(x, y uint64) uint64 { return x << y }))
		set("Shr%d", ofTwo(n, func(x, y uint64) uint64 { return x >> y }))
		set("Sar%d", ofTwo(n, func(x, y uint64) uint64 { return uint64(signed(x, n) >> y) }))
		equal := compare(func(x, y uint64) bool { return x == y })
		different := compare(func(x, y uint64) bool { return x != y })
		set("CmpEQ%d", equal)
		set("CasCmpEQ%d", equal)
		set("CmpNE%d", different)
		set("CasCmpNE%d", different)
		set("ExpCmpNE%d", different)
		if n >= 32 {
			set("CmpLT%dU", compare(func(x, y uint64) bool { return x < y }))
			set("CmpLE%dU", compare(func(x, y uint64) bool { return x <= y }))
			set("CmpLT%dS", compare(func(x, y uint64) bool { return signed(x, n) < signed(y, n) }))
			set("CmpLE%dS", compare(func(x, y uint64) bool { return signed(x, n) <= signed(y, n) }))
			set("Clz%d", ofOne(func(x uint64) uint64 { return uint64(bits.LeadingZeros64(x) - (64 - n)) }))
			set("Ctz%d", ofOne(func(x uint64) uint64 { return uint64(bits.TrailingZeros64(x)) }))
		}
	}
	named["And1"] = ofTwo(1, func(x, y uint64) uint64 { return x & y })
	named["Or1"] = ofTwo(1, func(x, y uint64) uint64 { return x | y })
	named["Not1"] = ofTwo(1, func(x, _ uint64) uint64 { return ^x })
}

// conversionOps are those between integers of up to 64 bits.
func conversionOps(named map[string]opFunc) {
	sizes := []int{1, 8, 16, 32, 64}
	for i, from := range sizes {
		for _, to := range sizes[i+1:] {
			named[fmt.Sprintf("%dUto%d", from, to)] = ofOne(func(x uint64) uint64 { return x })
			named[fmt.Sprintf("%dSto%d", from, to)] = ofOne(func(x uint64) uint64 { return low(uint64(signed(x, from)), to) })
			if from == 1 && to != 32 && to != 64 {
				continue
			}
			named[fmt.Sprintf("%dto%d", to, from)] = ofOne(func(x uint64) uint64 { return low(x, from) })
		}
	}
	for _, n := range []int{8, 16, 32} {
		named[fmt.Sprintf("%dHIto%d", 2*n, n)] = ofOne(func(x uint64) uint64 { return x >> n })
		named[fmt.Sprintf("%dHLto%d", n, 2*n)] = ofTwo(2*n, func(x, y uint64) uint64 { return x<<n | y })
		named[fmt.Sprintf("MullU%d", n)] = ofTwo(2*n, func(x, y uint64) uint64 { return x * y })
		named[fmt.Sprintf("MullS%d", n)] = ofTwo(2*n, func(x, y uint64) uint64 { return uint64(signed(x, n) * signed(y, n)) })
	}
	// Quotient low, remainder high. What the processor would trap on has no
	// meaning here, as in libVEX.
	named["DivModU64to32"] = ofTwo(64, func(x, y uint64) uint64 {
		if y == 0 {
			return 0
		}
		return x%y<<32 | low(x/y, 32)
	})
	named["DivModS64to32"] = ofTwo(64, func(x, y uint64) uint64 {
		d := signed(y, 32)
		if d == 0 {
			return 0
		}
		return uint64(int64(x)%d)<<32 | low(uint64(int64(x)/d), 32)
	})
}

// wideOps are those on I128 and between it, V128 and smaller ones.
func wideOps(named map[string]opFunc) {
	first := func(a *[4]Value) Value { return a[0] }
	high := func(a *[4]Value) Value { return value(a[0].Hi) }
	pair := func(a *[4]Value) Value { return Value{a[1].Lo, a[0].Lo} }
	named["128to64"] = func(a *[4]Value) Value { return value(a[0].Lo) }
	named["128HIto64"] = high
	named["64HLto128"] = pair
	named["MullU64"] = func(a *[4]Value) Value { return multiply(a[0].Lo, a[1].Lo) }
	named["MullS64"] = func(a *[4]Value) Value { return multiplySigned(int64(a[0].Lo), int64(a[1].Lo)) }
	named["DivModU128to64"] = func(a *[4]Value) Value { return divide(a[0], a[1].Lo) }
	named["DivModS128to64"] = func(a *[4]Value) Value { return divideSigned(a[0], int64(a[1].Lo)) }

	named["V128to64"] = func(a *[4]Value) Value { return value(a[0].Lo) }
	named["V128HIto64"] = high
	named["V128to32"] = func(a *[4]Value) Value { return a[0].truncate(32) }
	named["64HLtoV128"] = pair
	named["32UtoV128"] = first
	named["64UtoV128"] = first
	named["SetV128lo32"] = func(a *[4]Value) Value { return Value{a[0].Lo&^0xffffffff | a[1].Lo, a[0].Hi} }
	named["SetV128lo64"] = func(a *[4]Value) Value { return Value{a[1].Lo, a[0].Hi} }
	named["ReinterpF64asI64"] = first
	named["ReinterpI64asF64"] = first
	named["ReinterpF32asI32"] = first
	named["ReinterpI32asF32"] = first
	named["ReinterpV128asI128"] = first
	named["ReinterpI128asV128"] = first
	named["NotV128"] = func(a *[4]Value) Value { return Value{^a[0].Lo, ^a[0].Hi} }
	named["AndV128"] = func(a *[4]Value) Value { return Value{a[0].Lo & a[1].Lo, a[0].Hi & a[1].Hi} }
	named["OrV128"] = func(a *[4]Value) Value { return Value{a[0].Lo | a[1].Lo, a[0].Hi | a[1].Hi} }
	named["XorV128"] = func(a *[4]Value) Value { return Value{a[0].Lo ^ a[1].Lo, a[0].Hi ^ a[1].Hi} }
}

// divide is quotient and remainder; 0 where the processor would trap.
func divide(x Value, y uint64) Value {
	if y == 0 || x.Hi >= y {
		return Value{}
	}
	quotient, remainder := bits.Div64(x.Hi, x.Lo, y)
	return Value{quotient, remainder}
}

func (v Value) negated() Value {
	lo, borrow := bits.Sub64(0, v.Lo, 0)
	hi, _ := bits.Sub64(0, v.Hi, borrow)
	return Value{lo, hi}
}

func divideSigned(x Value, y int64) Value {
	negative := int64(x.Hi) < 0
	if negative {
		x = x.negated()
	}
	d := uint64(y)
	if y < 0 {
		d = -d
	}
	v := divide(x, d)
	if negative != (y < 0) {
		v.Lo = -v.Lo
	}
	if negative {
		v.Hi = -v.Hi
	}
	return v
}

// Apply computes an operation by its name.
func Apply(name string, args ...Value) Value {
	var a [4]Value
	copy(a[:], args)
	return ops()[opNumber(name)](&a)
}
