package vex

import (
	"math"
	"math/big"
)

// Floating point is IEEE 754 with x86's rules for NaN: the first operand that is
// one comes out, quiet; an invalid operation gives the default, which is
// negative.
const (
	defaultNaN64 = 0xfff8000000000000
	quietBit64   = 0x0008000000000000
	defaultNaN32 = 0xffc00000
	quietBit32   = 0x00400000
)

func isNaN64(x uint64) bool { return x<<1 > 0xffe0000000000000 }

func isNaN32(x uint64) bool { return uint32(x)<<1 > 0xff000000 }

func f64(x uint64) float64 { return math.Float64frombits(x) }

func f32(x uint64) float32 { return math.Float32frombits(uint32(x)) }

// result64 is the bits of what an operation on numbers gave.
func result64(x float64) uint64 {
	if x != x {
		return defaultNaN64
	}
	return math.Float64bits(x)
}

func result32(x float32) uint64 {
	if x != x {
		return defaultNaN32
	}
	return uint64(math.Float32bits(x))
}

// binary64 makes an operation on the bits of numbers.
func binary64(f func(x, y float64) float64) func(x, y uint64) uint64 {
	return func(x, y uint64) uint64 {
		switch {
		case isNaN64(x):
			return x | quietBit64
		case isNaN64(y):
			return y | quietBit64
		}
		return result64(f(f64(x), f64(y)))
	}
}

func binary32(f func(x, y float32) float32) func(x, y uint64) uint64 {
	return func(x, y uint64) uint64 {
		switch {
		case isNaN32(x):
			return x | quietBit32
		case isNaN32(y):
			return y | quietBit32
		}
		return result32(f(f32(x), f32(y)))
	}
}

func sqrt64(x uint64) uint64 {
	if isNaN64(x) {
		return x | quietBit64
	}
	return result64(math.Sqrt(f64(x)))
}

func sqrt32(x uint64) uint64 {
	if isNaN32(x) {
		return x | quietBit32
	}
	return result32(float32(math.Sqrt(float64(f32(x)))))
}

var (
	add64 = binary64(func(x, y float64) float64 { return x + y })
	sub64 = binary64(func(x, y float64) float64 { return x - y })
	mul64 = binary64(func(x, y float64) float64 { return x * y })
	div64 = binary64(func(x, y float64) float64 { return x / y })
	add32 = binary32(func(x, y float32) float32 { return x + y })
	sub32 = binary32(func(x, y float32) float32 { return x - y })
	mul32 = binary32(func(x, y float32) float32 { return x * y })
	div32 = binary32(func(x, y float32) float32 { return x / y })
)

// The minimum and maximum of SSE: the second operand unless the first is truly
// smaller or larger.
func min64(x, y uint64) uint64 { return choose(f64(x) < f64(y), x, y) }
func max64(x, y uint64) uint64 { return choose(f64(x) > f64(y), x, y) }
func min32(x, y uint64) uint64 { return choose(f32(x) < f32(y), x, y) }
func max32(x, y uint64) uint64 { return choose(f32(x) > f32(y), x, y) }

func choose(c bool, x, y uint64) uint64 {
	if c {
		return x
	}
	return y
}

// rounding are IRRoundingMode's, which are the processor's.
var rounding = [...]big.RoundingMode{big.ToNearestEven, big.ToNegativeInf, big.ToPositiveInf, big.ToZero}

// roundToInt rounds in a mode.
func roundToInt(mode uint64, x float64) float64 {
	return [...]func(float64) float64{math.RoundToEven, math.Floor, math.Ceil, math.Trunc}[mode&3](x)
}

// round64 is exact arithmetic rounded in a mode, for finite operands.
func round64(mode uint64, f func(z, x, y *big.Float), x, y float64) uint64 {
	z := new(big.Float).SetPrec(2200).SetMode(rounding[mode&3])
	f(z, big.NewFloat(x), big.NewFloat(y))
	return math.Float64bits(toFloat64(z, rounding[mode&3]))
}

// toFloat64 rounds in a mode, which big.Float.Float64 does not.
func toFloat64(z *big.Float, mode big.RoundingMode) float64 {
	nearest, accuracy := z.Float64()
	down := accuracy == big.Above && (mode == big.ToNegativeInf || mode == big.ToZero && nearest > 0)
	up := accuracy == big.Below && (mode == big.ToPositiveInf || mode == big.ToZero && nearest < 0)
	switch {
	case down:
		return math.Nextafter(nearest, math.Inf(-1))
	case up:
		return math.Nextafter(nearest, math.Inf(1))
	}
	return nearest
}

// directed makes an operation with a rounding mode as its first argument.
func directed(nearest func(x, y uint64) uint64, exact func(z, x, y *big.Float)) opFunc {
	return func(a *[4]Value) Value {
		mode, x, y := a[0].Lo&3, a[1].Lo, a[2].Lo
		v := nearest(x, y)
		finite := !math.IsInf(f64(x), 0) && !math.IsInf(f64(y), 0) && !isNaN64(v) && f64(x) != 0 && f64(y) != 0
		if mode == 0 || !finite {
			return value(v)
		}
		return value(round64(mode, exact, f64(x), f64(y)))
	}
}

// toInteger converts in a mode; what does not fit is the integer indefinite.
func toInteger(n int) opFunc {
	return func(a *[4]Value) Value {
		x := roundToInt(a[0].Lo, f64(a[1].Lo))
		limit := math.Ldexp(1, n-1)
		if !(x >= -limit && x < limit) {
			return value(1 << (n - 1))
		}
		return value(low(uint64(int64(x)), n))
	}
}

func fromInteger(n int) opFunc {
	return func(a *[4]Value) Value {
		x := signed(a[1].Lo, n)
		if mode := rounding[a[0].Lo&3]; mode != big.ToNearestEven {
			return value(math.Float64bits(toFloat64(new(big.Float).SetInt64(x), mode)))
		}
		return value(math.Float64bits(float64(x)))
	}
}

func widen(x uint64) uint64 {
	if isNaN32(x) {
		return x>>31<<63 | 0x7ff<<52 | x&0x7fffff<<29 | quietBit64
	}
	return math.Float64bits(float64(f32(x)))
}

func narrow(mode, x uint64) uint64 {
	if isNaN64(x) {
		return x>>63<<31 | 0xff<<23 | x>>29&0x7fffff | quietBit32
	}
	nearest := float32(f64(x))
	switch exact := float64(nearest); {
	case exact > f64(x) && (mode == 1 || mode == 3 && nearest > 0):
		nearest = math.Nextafter32(nearest, float32(math.Inf(-1)))
	case exact < f64(x) && (mode == 2 || mode == 3 && nearest < 0):
		nearest = math.Nextafter32(nearest, float32(math.Inf(1)))
	}
	return uint64(math.Float32bits(nearest))
}

// Results of CmpF64 (IRCmpFResult).
const (
	compareUnordered = 0x45
	compareLess      = 0x01
	compareGreater   = 0x00
	compareEqual     = 0x40
)

func compareFloat(x, y uint64) uint64 {
	switch a, b := f64(x), f64(y); {
	case a < b:
		return compareLess
	case a > b:
		return compareGreater
	case a == b:
		return compareEqual
	}
	return compareUnordered
}

// unary64 makes a function of an argument that is no NaN.
func unary64(f func(x float64) float64) func(x uint64) uint64 {
	return func(x uint64) uint64 {
		if isNaN64(x) {
			return x | quietBit64
		}
		return result64(f(f64(x)))
	}
}

func floatOps(named map[string]opFunc) {
	named["AddF64"] = directed(add64, func(z, x, y *big.Float) { z.Add(x, y) })
	named["SubF64"] = directed(sub64, func(z, x, y *big.Float) { z.Sub(x, y) })
	named["MulF64"] = directed(mul64, func(z, x, y *big.Float) { z.Mul(x, y) })
	named["DivF64"] = directed(div64, func(z, x, y *big.Float) { z.Quo(x, y) })
	named["NegF64"] = ofOne(func(x uint64) uint64 { return x ^ 1<<63 })
	named["AbsF64"] = ofOne(func(x uint64) uint64 { return x &^ (1 << 63) })
	named["NegF32"] = ofOne(func(x uint64) uint64 { return x ^ 1<<31 })
	named["AbsF32"] = ofOne(func(x uint64) uint64 { return x &^ (1 << 31) })
	named["SqrtF64"] = func(a *[4]Value) Value { return value(sqrt64(a[1].Lo)) }
	named["CmpF64"] = ofTwo(32, compareFloat)
	named["F32toF64"] = ofOne(widen)
	named["F64toF32"] = func(a *[4]Value) Value { return value(narrow(a[0].Lo&3, a[1].Lo)) }
	named["F64toI16S"] = toInteger(16)
	named["F64toI32S"] = toInteger(32)
	named["F64toI64S"] = toInteger(64)
	named["I32StoF64"] = ofOne(func(x uint64) uint64 { return math.Float64bits(float64(int32(x))) })
	named["I32UtoF64"] = ofOne(func(x uint64) uint64 { return math.Float64bits(float64(uint32(x))) })
	named["I64StoF64"] = fromInteger(64)
	named["RoundF64toInt"] = func(a *[4]Value) Value {
		return value(unary64(func(x float64) float64 { return roundToInt(a[0].Lo, x) })(a[1].Lo))
	}
	named["RoundF32toInt"] = func(a *[4]Value) Value {
		return value(narrow(0, unary64(func(x float64) float64 { return roundToInt(a[0].Lo, x) })(widen(a[1].Lo))))
	}
	named["RoundF64toF32"] = func(a *[4]Value) Value { return value(widen(narrow(a[0].Lo&3, a[1].Lo))) }
	x87Ops(named)
}

// x87Ops are those that the x87 has instructions for. As everywhere in libVEX,
// in 64 bits and not in 80.
func x87Ops(named map[string]opFunc) {
	moded := func(f func(x float64) float64) opFunc {
		g := unary64(f)
		return func(a *[4]Value) Value { return value(g(a[1].Lo)) }
	}
	moded2 := func(f func(x, y float64) float64) opFunc {
		g := binary64(f)
		return func(a *[4]Value) Value { return value(g(a[1].Lo, a[2].Lo)) }
	}
	named["SinF64"] = moded(math.Sin)
	named["CosF64"] = moded(math.Cos)
	named["TanF64"] = moded(math.Tan)
	named["2xm1F64"] = moded(func(x float64) float64 { return math.Exp2(x) - 1 })
	named["AtanF64"] = moded2(math.Atan2)
	named["Yl2xF64"] = moded2(func(y, x float64) float64 { return y * math.Log2(x) })
	named["Yl2xp1F64"] = moded2(func(y, x float64) float64 { return y * math.Log1p(x) / math.Ln2 })
	named["ScaleF64"] = moded2(func(x, y float64) float64 {
		return math.Ldexp(x, int(max(min(math.Trunc(y), 100_000), -100_000)))
	})
	named["PRemF64"] = moded2(math.Mod)
	named["PRem1F64"] = moded2(math.Remainder)
	quotient := func(round func(x, y float64) float64) opFunc {
		return func(a *[4]Value) Value { return value(remainderFlags(f64(a[1].Lo), f64(a[2].Lo), round)) }
	}
	named["PRemC3210F64"] = quotient(math.Mod)
	named["PRem1C3210F64"] = quotient(math.Remainder)
}

// remainderFlags is C3, C2, C1 and C0 of FPREM and FPREM1: the low three bits of
// the quotient, and C2 clear, as the reduction is complete.
func remainderFlags(x, y float64, remainder func(x, y float64) float64) uint64 {
	if math.IsNaN(x/y) || math.IsInf(x, 0) || math.IsInf(y, 0) {
		return 0
	}
	q := uint64(math.Abs(math.Mod((x-remainder(x, y))/y, 8)))
	return q&1<<1 | q>>1&1<<3 | q>>2&1
}
