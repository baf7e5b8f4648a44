package vex

import "math/bits"

// Value is a value of up to 128 bits. Bits above the type's are 0.
type Value struct{ Lo, Hi uint64 }

func wordValue(lo uint64) Value { return Value{Lo: lo} }

func boolValue(b bool) Value {
	if b {
		return Value{Lo: 1}
	}
	return Value{}
}

// lowBits returns the low n bits of x.
func lowBits(x uint64, n int) uint64 {
	if n >= 64 {
		return x
	}
	return x & (1<<n - 1)
}

// signedBits returns the low n bits of x as a signed number.
func signedBits(x uint64, n int) int64 { return int64(x<<(64-n)) >> (64 - n) }

// laneOf returns lane i of lanes of n bits, up to 64.
func (v Value) laneOf(i, n int) uint64 {
	at := i * n
	if at < 64 {
		return lowBits(v.Lo>>at, n)
	}
	return lowBits(v.Hi>>(at-64), n)
}

// setLane sets a lane that is 0.
func (v *Value) setLane(i, n int, x uint64) {
	at := i * n
	if at < 64 {
		v.Lo |= lowBits(x, n) << at
	} else {
		v.Hi |= lowBits(x, n) << (at - 64)
	}
}

// truncateTo returns the low n bits of v.
func (v Value) truncateTo(n int) Value {
	if n <= 64 {
		return Value{Lo: lowBits(v.Lo, n)}
	}
	return v
}

// multiplyWide is the product of two unsigned numbers.
func multiplyWide(x, y uint64) Value {
	hi, lo := bits.Mul64(x, y)
	return Value{lo, hi}
}

// multiplyWideSigned is the product of two signed numbers.
func multiplyWideSigned(x, y int64) Value {
	v := multiplyWide(uint64(x), uint64(y))
	if x < 0 {
		v.Hi -= uint64(y)
	}
	if y < 0 {
		v.Hi -= uint64(x)
	}
	return v
}

// expandByteMask is the value of a V128 constant, which has a bit for each byte.
func expandByteMask(mask uint64) Value {
	var v Value
	for i := range 16 {
		if mask>>i&1 != 0 {
			v.setLane(i, 8, 0xff)
		}
	}
	return v
}
