package vex

import (
	"math"
	"math/big"
)

// Floating point is IEEE 754 with x86's rules for NaN: the result is the first operand that
// is a NaN, made quiet; an invalid operation gives the default NaN, which is negative.
const (
	defaultNaN64 = 0xfff8000000000000
	quietBit64   = 0x0008000000000000
	defaultNaN32 = 0xffc00000
	quietBit32   = 0x00400000
)

func isNaN64(x uint64) bool { return x<<1 > 0xffe0000000000000 }

func isNaN32(x uint64) bool { return uint32(x)<<1 > 0xff000000 }

func float64Of(x uint64) float64 { return math.Float64frombits(x) }

func float32Of(x uint64) float32 { return math.Float32frombits(uint32(x)) }

// resultBits64 returns the bits of the result of an operation on numbers.
func resultBits64(x float64) uint64 {
	if x != x {
		return defaultNaN64
	}
	return math.Float64bits(x)
}

func resultBits32(x float32) uint64 {
	if x != x {
		return defaultNaN32
	}
	return uint64(math.Float32bits(x))
}

// binaryFloat64 makes an operation on the bits of numbers.
func binaryFloat64(f func(x, y float64) float64) func(x, y uint64) uint64 {
	return func(x, y uint64) uint64 {
		switch {
		case isNaN64(x):
			return x | quietBit64
		case isNaN64(y):
			return y | quietBit64
		}
		return resultBits64(f(float64Of(x), float64Of(y)))
	}
}

func binaryFloat32(f func(x, y float32) float32) func(x, y uint64) uint64 {
	return func(x, y uint64) uint64 {
		switch {
		case isNaN32(x):
			return x | quietBit32
		case isNaN32(y):
			return y | quietBit32
		}
		return resultBits32(f(float32Of(x), float32Of(y)))
	}
}

func squareRoot64(x uint64) uint64 {
	if isNaN64(x) {
		return x | quietBit64
	}
	return resultBits64(math.Sqrt(float64Of(x)))
}

func squareRoot32(x uint64) uint64 {
	if isNaN32(x) {
		return x | quietBit32
	}
	return resultBits32(float32(math.Sqrt(float64(float32Of(x)))))
}

var (
	add64 = binaryFloat64(func(x, y float64) float64 { return x + y })
	sub64 = binaryFloat64(func(x, y float64) float64 { return x - y })
	mul64 = binaryFloat64(func(x, y float64) float64 { return x * y })
	div64 = binaryFloat64(func(x, y float64) float64 { return x / y })
	add32 = binaryFloat32(func(x, y float32) float32 { return x + y })
	sub32 = binaryFloat32(func(x, y float32) float32 { return x - y })
	mul32 = binaryFloat32(func(x, y float32) float32 { return x * y })
	div32 = binaryFloat32(func(x, y float32) float32 { return x / y })
)

// The minimum and maximum of SSE: the second operand unless the first compares less or
// greater.
func minFloat64(x, y uint64) uint64 { return chooseWord(float64Of(x) < float64Of(y), x, y) }
func maxFloat64(x, y uint64) uint64 { return chooseWord(float64Of(x) > float64Of(y), x, y) }
func minFloat32(x, y uint64) uint64 { return chooseWord(float32Of(x) < float32Of(y), x, y) }
func maxFloat32(x, y uint64) uint64 { return chooseWord(float32Of(x) > float32Of(y), x, y) }

func chooseWord(c bool, x, y uint64) uint64 {
	if c {
		return x
	}
	return y
}

// roundingModes are IRRoundingMode's, which are the processor's.
var roundingModes = [...]big.RoundingMode{big.ToNearestEven, big.ToNegativeInf, big.ToPositiveInf, big.ToZero}

// roundToInt rounds in a mode.
func roundToInt(mode uint64, x float64) float64 {
	return [...]func(float64) float64{math.RoundToEven, math.Floor, math.Ceil, math.Trunc}[mode&3](x)
}

// roundExact64 is exact arithmetic rounded in a mode, for finite operands.
func roundExact64(mode uint64, f func(z, x, y *big.Float), x, y float64) uint64 {
	z := new(big.Float).SetPrec(2200).SetMode(roundingModes[mode&3])
	f(z, big.NewFloat(x), big.NewFloat(y))
	return math.Float64bits(toFloat64(z, roundingModes[mode&3]))
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

// roundedOp makes an operation with a rounding mode as its first argument.
func roundedOp(nearest func(x, y uint64) uint64, exact func(z, x, y *big.Float)) opFunc {
	return func(a *[4]Value) Value {
		mode, x, y := a[0].Lo&3, a[1].Lo, a[2].Lo
		v := nearest(x, y)
		finite := !math.IsInf(float64Of(x), 0) && !math.IsInf(float64Of(y), 0) && !isNaN64(v) && float64Of(x) != 0 && float64Of(y) != 0
		if mode == 0 || !finite {
			return wordValue(v)
		}
		return wordValue(roundExact64(mode, exact, float64Of(x), float64Of(y)))
	}
}

// floatToInteger converts in a mode; a number that does not fit becomes the integer
// indefinite.
func floatToInteger(n int) opFunc {
	return func(a *[4]Value) Value {
		x := roundToInt(a[0].Lo, float64Of(a[1].Lo))
		limit := math.Ldexp(1, n-1)
		if !(x >= -limit && x < limit) {
			return wordValue(1 << (n - 1))
		}
		return wordValue(lowBits(uint64(int64(x)), n))
	}
}

func integerToFloat(n int) opFunc {
	return func(a *[4]Value) Value {
		x := signedBits(a[1].Lo, n)
		if mode := roundingModes[a[0].Lo&3]; mode != big.ToNearestEven {
			return wordValue(math.Float64bits(toFloat64(new(big.Float).SetInt64(x), mode)))
		}
		return wordValue(math.Float64bits(float64(x)))
	}
}

func widenFloat(x uint64) uint64 {
	if isNaN32(x) {
		return x>>31<<63 | 0x7ff<<52 | x&0x7fffff<<29 | quietBit64
	}
	return math.Float64bits(float64(float32Of(x)))
}

func narrowFloat(mode, x uint64) uint64 {
	if isNaN64(x) {
		return x>>63<<31 | 0xff<<23 | x>>29&0x7fffff | quietBit32
	}
	nearest := float32(float64Of(x))
	switch exact := float64(nearest); {
	case exact > float64Of(x) && (mode == 1 || mode == 3 && nearest > 0):
		nearest = math.Nextafter32(nearest, float32(math.Inf(-1)))
	case exact < float64Of(x) && (mode == 2 || mode == 3 && nearest < 0):
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
	switch a, b := float64Of(x), float64Of(y); {
	case a < b:
		return compareLess
	case a > b:
		return compareGreater
	case a == b:
		return compareEqual
	}
	return compareUnordered
}

// unaryFloat64 makes a function of an argument that is not NaN.
func unaryFloat64(f func(x float64) float64) func(x uint64) uint64 {
	return func(x uint64) uint64 {
		if isNaN64(x) {
			return x | quietBit64
		}
		return resultBits64(f(float64Of(x)))
	}
}

func addFloatOps(named map[string]opFunc) {
	named["AddF64"] = roundedOp(add64, func(z, x, y *big.Float) { z.Add(x, y) })
	named["SubF64"] = roundedOp(sub64, func(z, x, y *big.Float) { z.Sub(x, y) })
	named["MulF64"] = roundedOp(mul64, func(z, x, y *big.Float) { z.Mul(x, y) })
	named["DivF64"] = roundedOp(div64, func(z, x, y *big.Float) { z.Quo(x, y) })
	named["NegF64"] = unaryOp(func(x uint64) uint64 { return x ^ 1<<63 })
	named["AbsF64"] = unaryOp(func(x uint64) uint64 { return x &^ (1 << 63) })
	named["NegF32"] = unaryOp(func(x uint64) uint64 { return x ^ 1<<31 })
	named["AbsF32"] = unaryOp(func(x uint64) uint64 { return x &^ (1 << 31) })
	named["SqrtF64"] = func(a *[4]Value) Value { return wordValue(squareRoot64(a[1].Lo)) }
	named["CmpF64"] = binaryOp(32, compareFloat)
	named["F32toF64"] = unaryOp(widenFloat)
	named["F64toF32"] = func(a *[4]Value) Value { return wordValue(narrowFloat(a[0].Lo&3, a[1].Lo)) }
	named["F64toI16S"] = floatToInteger(16)
	named["F64toI32S"] = floatToInteger(32)
	named["F64toI64S"] = floatToInteger(64)
	named["I32StoF64"] = unaryOp(func(x uint64) uint64 { return math.Float64bits(float64(int32(x))) })
	named["I32UtoF64"] = unaryOp(func(x uint64) uint64 { return math.Float64bits(float64(uint32(x))) })
	named["I64StoF64"] = integerToFloat(64)
	named["RoundF64toInt"] = func(a *[4]Value) Value {
		return wordValue(unaryFloat64(func(x float64) float64 { return roundToInt(a[0].Lo, x) })(a[1].Lo))
	}
	named["RoundF32toInt"] = func(a *[4]Value) Value {
		return wordValue(narrowFloat(0, unaryFloat64(func(x float64) float64 { return roundToInt(a[0].Lo, x) })(widenFloat(a[1].Lo))))
	}
	named["RoundF64toF32"] = func(a *[4]Value) Value { return wordValue(widenFloat(narrowFloat(a[0].Lo&3, a[1].Lo))) }
	addX87Ops(named)
}

// addX87Ops adds the operations of x87 instructions; as everywhere in libVEX, with 64 bits
// and not 80.
func addX87Ops(named map[string]opFunc) {
	moded := func(f func(x float64) float64) opFunc {
		g := unaryFloat64(f)
		return func(a *[4]Value) Value { return wordValue(g(a[1].Lo)) }
	}
	moded2 := func(f func(x, y float64) float64) opFunc {
		g := binaryFloat64(f)
		return func(a *[4]Value) Value { return wordValue(g(a[1].Lo, a[2].Lo)) }
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
		return func(a *[4]Value) Value {
			return wordValue(remainderFlags(float64Of(a[1].Lo), float64Of(a[2].Lo), round))
		}
	}
	named["PRemC3210F64"] = quotient(math.Mod)
	named["PRem1C3210F64"] = quotient(math.Remainder)
}

// remainderFlags returns C3, C2, C1 and C0 of FPREM and FPREM1: the low three bits of the
// quotient, and C2 clear, as the reduction is complete.
func remainderFlags(x, y float64, remainder func(x, y float64) float64) uint64 {
	if math.IsNaN(x/y) || math.IsInf(x, 0) || math.IsInf(y, 0) {
		return 0
	}
	q := uint64(math.Abs(math.Mod((x-remainder(x, y))/y, 8)))
	return q&1<<1 | q>>1&1<<3 | q>>2&1
}
