package vex

import (
	"fmt"

	"github.com/heddle-dmt/heddle/emu/floats"
)

// lanewiseOp makes an operation that is the same in each of count lanes of n bits.
func lanewiseOp(n, count int, f func(x, y uint64) uint64) opFunc {
	return func(a *[4]Value) Value {
		var v Value
		for i := range count {
			v.setLane(i, n, f(a[0].laneOf(i, n), a[1].laneOf(i, n)))
		}
		return v
	}
}

// allOnesIf is all ones if c, otherwise 0.
func allOnesIf(c bool) uint64 { return chooseWord(c, ^uint64(0), 0) }

// saturate limits a number to n bits, signed or not.
func saturate(x int64, n int, sign bool) uint64 {
	least, most := int64(0), int64(1)<<n-1
	if sign {
		least, most = -1<<(n-1), 1<<(n-1)-1
	}
	return uint64(max(least, min(most, x)))
}

// laneShape is lanes that fill 64 or 128 bits.
type laneShape struct{ n, count int }

var laneShapes = []laneShape{{8, 8}, {16, 4}, {32, 2}, {8, 16}, {16, 8}, {32, 4}, {64, 2}}

func (s laneShape) opName(format string) string { return fmt.Sprintf(format, s.n, s.count) }

func addVectorOps(named map[string]opFunc) {
	for _, s := range laneShapes {
		n := s.n
		set := func(format string, f func(x, y uint64) uint64) { named[s.opName(format)] = lanewiseOp(n, s.count, f) }
		set("Add%dx%d", func(x, y uint64) uint64 { return x + y })
		set("Sub%dx%d", func(x, y uint64) uint64 { return x - y })
		set("Mul%dx%d", func(x, y uint64) uint64 { return x * y })
		set("CmpEQ%dx%d", func(x, y uint64) uint64 { return allOnesIf(x == y) })
		set("CmpGT%dSx%d", func(x, y uint64) uint64 { return allOnesIf(signedBits(x, n) > signedBits(y, n)) })
		set("Max%dUx%d", func(x, y uint64) uint64 { return max(x, y) })
		set("Min%dUx%d", func(x, y uint64) uint64 { return min(x, y) })
		set("Max%dSx%d", func(x, y uint64) uint64 { return uint64(max(signedBits(x, n), signedBits(y, n))) })
		set("Min%dSx%d", func(x, y uint64) uint64 { return uint64(min(signedBits(x, n), signedBits(y, n))) })
		set("Avg%dUx%d", func(x, y uint64) uint64 { return (x + y + 1) >> 1 })
		set("Abs%dx%d", func(x, _ uint64) uint64 { return uint64(max(signedBits(x, n), -signedBits(x, n))) })
		s.addShifts(named)
		s.addInterleaves(named)
		if n < 64 {
			s.addSaturating(named)
		}
	}
	named["GetMSBs8x16"] = func(a *[4]Value) Value { return wordValue(topBitsOfBytes(a[0], 16)) }
	named["GetMSBs8x8"] = func(a *[4]Value) Value { return wordValue(topBitsOfBytes(a[0], 8)) }
	named["PermOrZero8x16"] = permuteOrZero
	named["Perm8x16"] = func(a *[4]Value) Value { return permuteBytes(a, 16) }
	named["Perm8x8"] = func(a *[4]Value) Value { return permuteBytes(a, 8) }
	named["MullEven32Ux4"] = func(a *[4]Value) Value {
		return Value{a[0].laneOf(0, 32) * a[1].laneOf(0, 32), a[0].laneOf(2, 32) * a[1].laneOf(2, 32)}
	}
	named["MullEven32Sx4"] = func(a *[4]Value) Value {
		return Value{signedProduct(a[0].laneOf(0, 32), a[1].laneOf(0, 32)), signedProduct(a[0].laneOf(2, 32), a[1].laneOf(2, 32))}
	}
	named["PwExtUSMulQAdd8x16"] = multiplyAddBytes
	addNarrowings(named)
}

// multiplyAddBytes is PMADDUBSW: unsigned bytes of the first argument times signed ones of
// the second, neighbours added with saturation.
func multiplyAddBytes(a *[4]Value) Value {
	var v Value
	for i := range 8 {
		sum := int64(0)
		for j := 2 * i; j < 2*i+2; j++ {
			sum += int64(a[0].laneOf(j, 8)) * signedBits(a[1].laneOf(j, 8), 8)
		}
		v.setLane(i, 16, saturate(sum, 16, true))
	}
	return v
}

func signedProduct(x, y uint64) uint64 { return uint64(signedBits(x, 32) * signedBits(y, 32)) }

// addShifts adds shifts of all lanes by the same distance.
func (s laneShape) addShifts(named map[string]opFunc) {
	by := func(f func(x, by uint64) uint64) opFunc {
		return func(a *[4]Value) Value {
			var v Value
			for i := range s.count {
				v.setLane(i, s.n, f(a[0].laneOf(i, s.n), a[1].Lo))
			}
			return v
		}
	}
	named[s.opName("ShlN%dx%d")] = by(func(x, n uint64) uint64 { return x << n })
	named[s.opName("ShrN%dx%d")] = by(func(x, n uint64) uint64 { return x >> n })
	named[s.opName("SarN%dx%d")] = by(func(x, n uint64) uint64 { return uint64(signedBits(x, s.n) >> n) })
}

// addInterleaves adds operations that take lanes of the low or high half of both arguments
// in turn, beginning with the second, or every other lane of the second argument and then
// of the first.
func (s laneShape) addInterleaves(named map[string]opFunc) {
	half := func(from int) opFunc {
		return func(a *[4]Value) Value {
			var v Value
			for i := range s.count / 2 {
				v.setLane(2*i, s.n, a[1].laneOf(from+i, s.n))
				v.setLane(2*i+1, s.n, a[0].laneOf(from+i, s.n))
			}
			return v
		}
	}
	every := func(from int) opFunc {
		return func(a *[4]Value) Value {
			var v Value
			for i := range s.count / 2 {
				v.setLane(i, s.n, a[1].laneOf(2*i+from, s.n))
				v.setLane(s.count/2+i, s.n, a[0].laneOf(2*i+from, s.n))
			}
			return v
		}
	}
	named[s.opName("CatEvenLanes%dx%d")] = every(0)
	named[s.opName("CatOddLanes%dx%d")] = every(1)
	named[s.opName("InterleaveLO%dx%d")] = half(0)
	named[s.opName("InterleaveHI%dx%d")] = half(s.count / 2)
}

func (s laneShape) addSaturating(named map[string]opFunc) {
	n := s.n
	set := func(format string, f func(x, y uint64) uint64) { named[s.opName(format)] = lanewiseOp(n, s.count, f) }
	set("QAdd%dUx%d", func(x, y uint64) uint64 { return saturate(int64(x+y), n, false) })
	set("QSub%dUx%d", func(x, y uint64) uint64 { return saturate(int64(x)-int64(y), n, false) })
	set("QAdd%dSx%d", func(x, y uint64) uint64 { return saturate(signedBits(x, n)+signedBits(y, n), n, true) })
	set("QSub%dSx%d", func(x, y uint64) uint64 { return saturate(signedBits(x, n)-signedBits(y, n), n, true) })
	set("MulHi%dUx%d", func(x, y uint64) uint64 { return x * y >> n })
	set("MulHi%dSx%d", func(x, y uint64) uint64 { return uint64(signedBits(x, n) * signedBits(y, n) >> n) })
}

// addNarrowings adds operations that put the lanes of both arguments, halved in size, into
// one value, beginning with the second.
func addNarrowings(named map[string]opFunc) {
	for _, total := range []int{64, 128} {
		for _, n := range []int{16, 32, 64} {
			count := total / n
			narrowing := func(f func(x uint64) uint64) opFunc {
				return func(a *[4]Value) Value {
					var v Value
					for i := range count {
						v.setLane(i, n/2, f(a[1].laneOf(i, n)))
						v.setLane(count+i, n/2, f(a[0].laneOf(i, n)))
					}
					return v
				}
			}
			named[fmt.Sprintf("QNarrowBin%dSto%dSx%d", n, n/2, 2*count)] = narrowing(func(x uint64) uint64 {
				return saturate(signedBits(x, n), n/2, true)
			})
			named[fmt.Sprintf("QNarrowBin%dSto%dUx%d", n, n/2, 2*count)] = narrowing(func(x uint64) uint64 {
				return saturate(signedBits(x, n), n/2, false)
			})
			named[fmt.Sprintf("NarrowBin%dto%dx%d", n, n/2, 2*count)] = narrowing(func(x uint64) uint64 { return x })
		}
	}
}

// topBitsOfBytes is the most significant bit of each byte.
func topBitsOfBytes(v Value, count int) uint64 {
	var bits uint64
	for i := range count {
		bits |= v.laneOf(i, 8) >> 7 << i
	}
	return bits
}

// permuteBytes selects bytes of the first argument by the low bits of the bytes of the
// second.
func permuteBytes(a *[4]Value, count int) Value {
	var v Value
	for i := range count {
		v.setLane(i, 8, a[0].laneOf(int(a[1].laneOf(i, 8))&(count-1), 8))
	}
	return v
}

// permuteOrZero is PSHUFB: a selector with its top bit set gives 0.
func permuteOrZero(a *[4]Value) Value {
	var v Value
	for i := range 16 {
		if by := a[1].laneOf(i, 8); by < 0x80 {
			v.setLane(i, 8, a[0].laneOf(int(by&15), 8))
		}
	}
	return v
}

// addVectorFloatOps adds SSE's operations: on all lanes (Fx), or on the lowest alone (F0x),
// with the rest from the first argument.
func addVectorFloatOps(named map[string]opFunc) {
	type op struct {
		name     string
		f64, f32 func(x, y uint64) uint64
	}
	same := func(f func(x uint64) uint64) func(x, y uint64) uint64 {
		return func(x, _ uint64) uint64 { return f(x) }
	}
	for _, o := range []op{
		{"Add", add64, add32},
		{"Sub", sub64, sub32},
		{"Mul", mul64, mul32},
		{"Div", div64, div32},
		{"Min", minFloat64, minFloat32},
		{"Max", maxFloat64, maxFloat32},
	} {
		named[o.name+"64F0x2"] = lowestLaneOp(64, o.f64)
		named[o.name+"32F0x4"] = lowestLaneOp(32, o.f32)
		// Operations on all lanes have a rounding mode, except Min and Max.
		all64, all32 := lanewiseOp(64, 2, o.f64), lanewiseOp(32, 4, o.f32)
		if o.name != "Min" && o.name != "Max" {
			all64, all32 = dropModeOperand(all64), dropModeOperand(all32)
		}
		named[o.name+"64Fx2"], named[o.name+"32Fx4"] = all64, all32
	}
	named["Sqrt64F0x2"] = lowestLaneOp(64, same(squareRoot64))
	named["Sqrt32F0x4"] = lowestLaneOp(32, same(squareRoot32))
	named["Sqrt64Fx2"] = dropModeOperand(lanewiseOp(64, 2, same(squareRoot64)))
	named["Sqrt32Fx4"] = dropModeOperand(lanewiseOp(32, 4, same(squareRoot32)))
	named["RecipEst32F0x4"] = lowestLaneOp(32, same(estimate(floats.Reciprocal)))
	named["RSqrtEst32F0x4"] = lowestLaneOp(32, same(estimate(floats.ReciprocalRoot)))
	named["RecipEst32Fx4"] = lanewiseOp(32, 4, same(estimate(floats.Reciprocal)))
	named["RSqrtEst32Fx4"] = lanewiseOp(32, 4, same(estimate(floats.ReciprocalRoot)))
	addComparisons(named)
	named["F32toI32Sx4"] = floatsToIntegers
	named["I32StoF32x4"] = dropModeOperand(lanewiseOp(32, 4, func(x, _ uint64) uint64 { return resultBits32(float32(int32(x))) }))
}

// estimate makes a function of a lane of an approximation, which the engines compute by package floats, too.
func estimate(f func(x uint32) uint32) func(x uint64) uint64 {
	return func(x uint64) uint64 { return uint64(f(uint32(x))) }
}

// dropModeOperand removes the rounding mode, which libVEX sets to nearest here.
func dropModeOperand(f opFunc) opFunc {
	return func(a *[4]Value) Value { return f(&[4]Value{a[1], a[2], a[3]}) }
}

// lowestLaneOp makes an operation on the lowest lane; for unary operations it is that of
// the only argument.
func lowestLaneOp(n int, f func(x, y uint64) uint64) opFunc {
	return func(a *[4]Value) Value {
		r := f(a[0].laneOf(0, n), a[1].laneOf(0, n))
		return Value{a[0].Lo&^lowBits(^uint64(0), n) | lowBits(r, n), a[0].Hi}
	}
}

func addComparisons(named map[string]opFunc) {
	type comparison struct {
		name string
		f64  func(x, y float64) bool
		f32  func(x, y float32) bool
	}
	for _, c := range []comparison{
		{"EQ", func(x, y float64) bool { return x == y }, func(x, y float32) bool { return x == y }},
		{"LT", func(x, y float64) bool { return x < y }, func(x, y float32) bool { return x < y }},
		{"LE", func(x, y float64) bool { return x <= y }, func(x, y float32) bool { return x <= y }},
		{"UN", func(x, y float64) bool { return x != x || y != y }, func(x, y float32) bool { return x != x || y != y }},
	} {
		of64 := func(x, y uint64) uint64 { return allOnesIf(c.f64(float64Of(x), float64Of(y))) }
		of32 := func(x, y uint64) uint64 { return allOnesIf(c.f32(float32Of(x), float32Of(y))) }
		named["Cmp"+c.name+"64F0x2"] = lowestLaneOp(64, of64)
		named["Cmp"+c.name+"32F0x4"] = lowestLaneOp(32, of32)
		named["Cmp"+c.name+"64Fx2"] = lanewiseOp(64, 2, of64)
		named["Cmp"+c.name+"32Fx4"] = lanewiseOp(32, 4, of32)
	}
}

// floatsToIntegers converts four F32 in the mode of the first argument.
func floatsToIntegers(a *[4]Value) Value {
	var v Value
	convert := floatToInteger(32)
	for i := range 4 {
		v.setLane(i, 32, convert(&[4]Value{a[0], wordValue(widenFloat(a[1].laneOf(i, 32)))}).Lo)
	}
	return v
}
