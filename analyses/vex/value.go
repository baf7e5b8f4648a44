package vex

import "math/bits"

// Value is a value of up to 128 bits. Bits above the type's are 0.
type Value struct{ Lo, Hi uint64 }

func value(lo uint64) Value { return Value{Lo: lo} }

func boolean(b bool) Value {
	if b {
		return Value{Lo: 1}
	}
	return Value{}
}

// low returns the low n bits of x.
func low(x uint64, n int) uint64 {
	if n >= 64 {
		return x
	}
	return x & (1<<n - 1)
}

// signed returns the low n bits of x as a number with a sign.
func signed(x uint64, n int) int64 { return int64(x<<(64-n)) >> (64 - n) }

// lane returns lane i of lanes of n bits, up to 64.
func (v Value) lane(i, n int) uint64 {
	at := i * n
	if at < 64 {
		return low(v.Lo>>at, n)
	}
	return low(v.Hi>>(at-64), n)
}

// setLane sets a lane that is 0.
func (v *Value) setLane(i, n int, x uint64) {
	at := i * n
	if at < 64 {
		v.Lo |= low(x, n) << at
	} else {
		v.Hi |= low(x, n) << (at - 64)
	}
}

// truncate returns the low n bits of v.
func (v Value) truncate(n int) Value {
	if n <= 64 {
		return Value{Lo: low(v.Lo, n)}
	}
	return v
}

// multiply is the product of two unsigned numbers.
func multiply(x, y uint64) Value {
	hi, lo := bits.Mul64(x, y)
	return Value{lo, hi}
}

// multiplySigned is the product of two signed numbers.
func multiplySigned(x, y int64) Value {
	v := multiply(uint64(x), uint64(y))
	if x < 0 {
		v.Hi -= uint64(y)
	}
	if y < 0 {
		v.Hi -= uint64(x)
	}
	return v
}

// byteMask is what the bits of a V128 constant stand for: a bit for each byte.
func byteMask(mask uint64) Value {
	var v Value
	for i := range 16 {
		if mask>>i&1 != 0 {
			v.setLane(i, 8, 0xff)
		}
	}
	return v
}
