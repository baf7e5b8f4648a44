package vex

import (
	"fmt"
	"math/bits"
	"sync"
)

// opFunc computes an operation. There are always four arguments; unused ones are 0.
type opFunc func(a *[4]Value) Value

// operationFuncs has the function of each known operation, by number.
var operationFuncs = sync.OnceValue(func() []opFunc {
	named := map[string]opFunc{}
	addIntegerOps(named)
	addConversionOps(named)
	addWideOps(named)
	addFloatOps(named)
	addVectorOps(named)
	addVectorFloatOps(named)
	table := make([]opFunc, len(opNames()))
	for i, name := range opNames() {
		table[i] = named[name]
	}
	return table
})

func unaryOp(f func(x uint64) uint64) opFunc {
	return func(a *[4]Value) Value { return wordValue(f(a[0].Lo)) }
}

func binaryOp(n int, f func(x, y uint64) uint64) opFunc {
	return func(a *[4]Value) Value { return wordValue(lowBits(f(a[0].Lo, a[1].Lo), n)) }
}

func comparisonOp(f func(x, y uint64) bool) opFunc {
	return func(a *[4]Value) Value { return boolValue(f(a[0].Lo, a[1].Lo)) }
}

func addIntegerOps(named map[string]opFunc) {
	for _, n := range []int{8, 16, 32, 64} {
		set := func(format string, f opFunc) { named[fmt.Sprintf(format, n)] = f }
		set("Add%d", binaryOp(n, func(x, y uint64) uint64 { return x + y }))
		set("Sub%d", binaryOp(n, func(x, y uint64) uint64 { return x - y }))
		set("Mul%d", binaryOp(n, func(x, y uint64) uint64 { return x * y }))
		set("And%d", binaryOp(n, func(x, y uint64) uint64 { return x & y }))
		set("Or%d", binaryOp(n, func(x, y uint64) uint64 { return x | y }))
		set("Xor%d", binaryOp(n, func(x, y uint64) uint64 { return x ^ y }))
		set("Not%d", binaryOp(n, func(x, _ uint64) uint64 { return ^x }))
		set("Shl%d", binaryOp(n, func(x, y uint64) uint64 { return x << y }))
		set("Shr%d", binaryOp(n, func(x, y uint64) uint64 { return x >> y }))
		set("Sar%d", binaryOp(n, func(x, y uint64) uint64 { return uint64(signedBits(x, n) >> y) }))
		equal := comparisonOp(func(x, y uint64) bool { return x == y })
		different := comparisonOp(func(x, y uint64) bool { return x != y })
		set("CmpEQ%d", equal)
		set("CasCmpEQ%d", equal)
		set("CmpNE%d", different)
		set("CasCmpNE%d", different)
		set("ExpCmpNE%d", different)
		if n >= 32 {
			set("CmpLT%dU", comparisonOp(func(x, y uint64) bool { return x < y }))
			set("CmpLE%dU", comparisonOp(func(x, y uint64) bool { return x <= y }))
			set("CmpLT%dS", comparisonOp(func(x, y uint64) bool { return signedBits(x, n) < signedBits(y, n) }))
			set("CmpLE%dS", comparisonOp(func(x, y uint64) bool { return signedBits(x, n) <= signedBits(y, n) }))
			set("Clz%d", unaryOp(func(x uint64) uint64 { return uint64(bits.LeadingZeros64(x) - (64 - n)) }))
			set("Ctz%d", unaryOp(func(x uint64) uint64 { return uint64(bits.TrailingZeros64(x)) }))
		}
	}
	named["And1"] = binaryOp(1, func(x, y uint64) uint64 { return x & y })
	named["Or1"] = binaryOp(1, func(x, y uint64) uint64 { return x | y })
	named["Not1"] = binaryOp(1, func(x, _ uint64) uint64 { return ^x })
}

// addConversionOps adds the conversions between integers of up to 64 bits.
func addConversionOps(named map[string]opFunc) {
	sizes := []int{1, 8, 16, 32, 64}
	for i, from := range sizes {
		for _, to := range sizes[i+1:] {
			named[fmt.Sprintf("%dUto%d", from, to)] = unaryOp(func(x uint64) uint64 { return x })
			named[fmt.Sprintf("%dSto%d", from, to)] = unaryOp(func(x uint64) uint64 { return lowBits(uint64(signedBits(x, from)), to) })
			if from == 1 && to != 32 && to != 64 {
				continue
			}
			named[fmt.Sprintf("%dto%d", to, from)] = unaryOp(func(x uint64) uint64 { return lowBits(x, from) })
		}
	}
	for _, n := range []int{8, 16, 32} {
		named[fmt.Sprintf("%dHIto%d", 2*n, n)] = unaryOp(func(x uint64) uint64 { return x >> n })
		named[fmt.Sprintf("%dHLto%d", n, 2*n)] = binaryOp(2*n, func(x, y uint64) uint64 { return x<<n | y })
		named[fmt.Sprintf("MullU%d", n)] = binaryOp(2*n, func(x, y uint64) uint64 { return x * y })
		named[fmt.Sprintf("MullS%d", n)] = binaryOp(2*n, func(x, y uint64) uint64 { return uint64(signedBits(x, n) * signedBits(y, n)) })
	}
	// Quotient low, remainder high. Where the processor would trap the result is undefined,
	// as in libVEX.
	named["DivModU64to32"] = binaryOp(64, func(x, y uint64) uint64 {
		if y == 0 {
			return 0
		}
		return x%y<<32 | lowBits(x/y, 32)
	})
	named["DivModS64to32"] = binaryOp(64, func(x, y uint64) uint64 {
		d := signedBits(y, 32)
		if d == 0 {
			return 0
		}
		return uint64(int64(x)%d)<<32 | lowBits(uint64(int64(x)/d), 32)
	})
}

// addWideOps adds the operations on I128 and V128, and conversions to smaller types.
func addWideOps(named map[string]opFunc) {
	first := func(a *[4]Value) Value { return a[0] }
	high := func(a *[4]Value) Value { return wordValue(a[0].Hi) }
	pair := func(a *[4]Value) Value { return Value{a[1].Lo, a[0].Lo} }
	named["128to64"] = func(a *[4]Value) Value { return wordValue(a[0].Lo) }
	named["128HIto64"] = high
	named["64HLto128"] = pair
	named["MullU64"] = func(a *[4]Value) Value { return multiplyWide(a[0].Lo, a[1].Lo) }
	named["MullS64"] = func(a *[4]Value) Value { return multiplyWideSigned(int64(a[0].Lo), int64(a[1].Lo)) }
	named["DivModU128to64"] = func(a *[4]Value) Value { return divideWide(a[0], a[1].Lo) }
	named["DivModS128to64"] = func(a *[4]Value) Value { return divideWideSigned(a[0], int64(a[1].Lo)) }

	named["V128to64"] = func(a *[4]Value) Value { return wordValue(a[0].Lo) }
	named["V128HIto64"] = high
	named["V128to32"] = func(a *[4]Value) Value { return a[0].truncateTo(32) }
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

// divideWide returns quotient and remainder; 0 where the processor would trap.
func divideWide(x Value, y uint64) Value {
	if y == 0 || x.Hi >= y {
		return Value{}
	}
	quotient, remainder := bits.Div64(x.Hi, x.Lo, y)
	return Value{quotient, remainder}
}

func (v Value) negateWide() Value {
	lo, borrow := bits.Sub64(0, v.Lo, 0)
	hi, _ := bits.Sub64(0, v.Hi, borrow)
	return Value{lo, hi}
}

func divideWideSigned(x Value, y int64) Value {
	negative := int64(x.Hi) < 0
	if negative {
		x = x.negateWide()
	}
	d := uint64(y)
	if y < 0 {
		d = -d
	}
	v := divideWide(x, d)
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
	return operationFuncs()[opNumber(name)](&a)
}
