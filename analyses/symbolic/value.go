package symbolic

import (
	"math/big"
	"math/bits"

	"github.com/heddle-dmt/heddle/analyses/vex"
)

// Value is a number of up to 128 bits. Bits above its size are 0.
type Value = vex.Value

func allOnes(n int) Value { return truncate(Value{Lo: ^uint64(0), Hi: ^uint64(0)}, n) }

func truncate(v Value, n int) Value {
	switch {
	case n >= 128:
		return v
	case n > 64:
		v.Hi &= 1<<(n-64) - 1
		return v
	case n == 64:
		return Value{Lo: v.Lo}
	}
	return Value{Lo: v.Lo & (1<<n - 1)}
}

func wordValue(x uint64) Value { return Value{Lo: x} }

func boolValue(b bool) Value {
	if b {
		return Value{Lo: 1}
	}
	return Value{}
}

func isZero(v Value) bool { return v == Value{} }

func bitAt(v Value, i int) bool {
	if i >= 64 {
		return v.Hi>>(i-64)&1 != 0
	}
	return v.Lo>>i&1 != 0
}

func complementBits(v Value, n int) Value { return truncate(Value{Lo: ^v.Lo, Hi: ^v.Hi}, n) }

func bitwiseAnd(x, y Value) Value { return Value{Lo: x.Lo & y.Lo, Hi: x.Hi & y.Hi} }
func bitwiseOr(x, y Value) Value  { return Value{Lo: x.Lo | y.Lo, Hi: x.Hi | y.Hi} }
func bitwiseXor(x, y Value) Value { return Value{Lo: x.Lo ^ y.Lo, Hi: x.Hi ^ y.Hi} }

func addWrapping(x, y Value, n int) Value {
	lo, carry := bits.Add64(x.Lo, y.Lo, 0)
	hi, _ := bits.Add64(x.Hi, y.Hi, carry)
	return truncate(Value{Lo: lo, Hi: hi}, n)
}

func subtractWrapping(x, y Value, n int) Value {
	lo, borrow := bits.Sub64(x.Lo, y.Lo, 0)
	hi, _ := bits.Sub64(x.Hi, y.Hi, borrow)
	return truncate(Value{Lo: lo, Hi: hi}, n)
}

func negateWrapping(x Value, n int) Value { return subtractWrapping(Value{}, x, n) }

func multiplyWrapping(x, y Value, n int) Value {
	hi, lo := bits.Mul64(x.Lo, y.Lo)
	return truncate(Value{Lo: lo, Hi: hi + x.Lo*y.Hi + x.Hi*y.Lo}, n)
}

func lessUnsigned(x, y Value) bool { return x.Hi < y.Hi || x.Hi == y.Hi && x.Lo < y.Lo }

// lessSigned compares signed numbers: adding half of the range to both makes them unsigned.
func lessSigned(x, y Value, n int) bool {
	half := shiftLeft(wordValue(1), n-1, n)
	return lessUnsigned(bitwiseXor(x, half), bitwiseXor(y, half))
}

func shiftLeft(x Value, by, n int) Value {
	switch {
	case by >= n:
		return Value{}
	case by >= 64:
		return truncate(Value{Hi: x.Lo << (by - 64)}, n)
	case by == 0:
		return x
	}
	return truncate(Value{Lo: x.Lo << by, Hi: x.Hi<<by | x.Lo>>(64-by)}, n)
}

func shiftRight(x Value, by int) Value {
	switch {
	case by >= 128:
		return Value{}
	case by >= 64:
		return Value{Lo: x.Hi >> (by - 64)}
	case by == 0:
		return x
	}
	return Value{Lo: x.Lo>>by | x.Hi<<(64-by), Hi: x.Hi >> by}
}

// signExtend widens a number of n bits to m.
func signExtend(x Value, n, m int) Value {
	if bitAt(x, n-1) {
		return truncate(bitwiseOr(x, complementBits(allOnes(n), 128)), m)
	}
	return x
}

func shiftRightSigned(x Value, by, n int) Value {
	by = min(by, n)
	if bitAt(x, n-1) {
		return complementBits(shiftRight(complementBits(x, n), by), n)
	}
	return shiftRight(x, by)
}

// shiftAmount is a shift distance, 128 if it is more.
func shiftAmount(v Value) int {
	if v.Hi != 0 || v.Lo > 128 {
		return 128
	}
	return int(v.Lo)
}

func toBigInt(v Value) *big.Int {
	x := new(big.Int).SetUint64(v.Hi)
	return x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(v.Lo))
}

func fromBigInt(x *big.Int) Value {
	low := new(big.Int).And(x, new(big.Int).SetUint64(^uint64(0)))
	return Value{Lo: low.Uint64(), Hi: new(big.Int).Rsh(x, 64).Uint64()}
}

// divideUnsigned returns quotient and remainder. By zero they are all ones and the
// dividend, as SMT-LIB defines.
func divideUnsigned(x, y Value, n int) (q, r Value) {
	switch {
	case isZero(y):
		return allOnes(n), x
	case x.Hi == 0 && y.Hi == 0:
		return wordValue(x.Lo / y.Lo), wordValue(x.Lo % y.Lo)
	}
	quotient, remainder := new(big.Int).QuoRem(toBigInt(x), toBigInt(y), new(big.Int))
	return fromBigInt(quotient), fromBigInt(remainder)
}

// divideSigned rounds to zero; the remainder has the dividend's sign.
func divideSigned(x, y Value, n int) (q, r Value) {
	negX, negY := bitAt(x, n-1), bitAt(y, n-1)
	if negX {
		x = negateWrapping(x, n)
	}
	if negY {
		y = negateWrapping(y, n)
	}
	q, r = divideUnsigned(x, y, n)
	if negX != negY {
		q = negateWrapping(q, n)
	}
	if negX {
		r = negateWrapping(r, n)
	}
	return q, r
}

func leadingZeros(x Value, n int) int {
	if x.Hi != 0 {
		return bits.LeadingZeros64(x.Hi) - (128 - n)
	}
	return bits.LeadingZeros64(x.Lo) - (64 - n)
}

func trailingZeros(x Value, n int) int {
	switch {
	case isZero(x):
		return n
	case x.Lo == 0:
		return 64 + bits.TrailingZeros64(x.Hi)
	}
	return bits.TrailingZeros64(x.Lo)
}
