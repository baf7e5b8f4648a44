package symbolic

import (
	"math/big"
	"math/bits"

	"github.com/heddle-dmt/heddle/analyses/vex"
)

// Value is a number of up to 128 bits. Bits above its size are 0.
type Value = vex.Value

func ones(n int) Value { return truncate(Value{Lo: ^uint64(0), Hi: ^uint64(0)}, n) }

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

func word(x uint64) Value { return Value{Lo: x} }

func truth(b bool) Value {
	if b {
		return Value{Lo: 1}
	}
	return Value{}
}

func isZero(v Value) bool { return v == Value{} }

func bit(v Value, i int) bool {
	if i >= 64 {
		return v.Hi>>(i-64)&1 != 0
	}
	return v.Lo>>i&1 != 0
}

func not(v Value, n int) Value { return truncate(Value{Lo: ^v.Lo, Hi: ^v.Hi}, n) }

func and(x, y Value) Value { return Value{Lo: x.Lo & y.Lo, Hi: x.Hi & y.Hi} }
func or(x, y Value) Value  { return Value{Lo: x.Lo | y.Lo, Hi: x.Hi | y.Hi} }
func xor(x, y Value) Value { return Value{Lo: x.Lo ^ y.Lo, Hi: x.Hi ^ y.Hi} }

func add(x, y Value, n int) Value {
	lo, carry := bits.Add64(x.Lo, y.Lo, 0)
	hi, _ := bits.Add64(x.Hi, y.Hi, carry)
	return truncate(Value{Lo: lo, Hi: hi}, n)
}

func sub(x, y Value, n int) Value {
	lo, borrow := bits.Sub64(x.Lo, y.Lo, 0)
	hi, _ := bits.Sub64(x.Hi, y.Hi, borrow)
	return truncate(Value{Lo: lo, Hi: hi}, n)
}

func negate(x Value, n int) Value { return sub(Value{}, x, n) }

func mul(x, y Value, n int) Value {
	hi, lo := bits.Mul64(x.Lo, y.Lo)
	return truncate(Value{Lo: lo, Hi: hi + x.Lo*y.Hi + x.Hi*y.Lo}, n)
}

func less(x, y Value) bool { return x.Hi < y.Hi || x.Hi == y.Hi && x.Lo < y.Lo }

// lessSigned compares numbers with a sign: without it once both are moved up by
// half of the range.
func lessSigned(x, y Value, n int) bool {
	half := shiftLeft(word(1), n-1, n)
	return less(xor(x, half), xor(y, half))
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
	if bit(x, n-1) {
		return truncate(or(x, not(ones(n), 128)), m)
	}
	return x
}

func shiftRightSigned(x Value, by, n int) Value {
	by = min(by, n)
	if bit(x, n-1) {
		return not(shiftRight(not(x, n), by), n)
	}
	return shiftRight(x, by)
}

// shiftAmount is by how much to shift, which is 128 if it is more.
func shiftAmount(v Value) int {
	if v.Hi != 0 || v.Lo > 128 {
		return 128
	}
	return int(v.Lo)
}

func toBig(v Value) *big.Int {
	x := new(big.Int).SetUint64(v.Hi)
	return x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(v.Lo))
}

func fromBig(x *big.Int) Value {
	low := new(big.Int).And(x, new(big.Int).SetUint64(^uint64(0)))
	return Value{Lo: low.Uint64(), Hi: new(big.Int).Rsh(x, 64).Uint64()}
}

// divide is quotient and remainder. By zero they are all ones and the dividend,
// as SMT-LIB has it.
func divide(x, y Value, n int) (q, r Value) {
	switch {
	case isZero(y):
		return ones(n), x
	case x.Hi == 0 && y.Hi == 0:
		return word(x.Lo / y.Lo), word(x.Lo % y.Lo)
	}
	quotient, remainder := new(big.Int).QuoRem(toBig(x), toBig(y), new(big.Int))
	return fromBig(quotient), fromBig(remainder)
}

// divideSigned rounds to zero; the remainder has the dividend's sign.
func divideSigned(x, y Value, n int) (q, r Value) {
	negX, negY := bit(x, n-1), bit(y, n-1)
	if negX {
		x = negate(x, n)
	}
	if negY {
		y = negate(y, n)
	}
	q, r = divide(x, y, n)
	if negX != negY {
		q = negate(q, n)
	}
	if negX {
		r = negate(r, n)
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
