package vex

import "fmt"

// lanes makes an operation that does the same in each of count lanes of n bits.
func lanes(n, count int, f func(x, y uint64) uint64) opFunc {
	return func(a *[4]Value) Value {
		var v Value
		for i := range count {
			v.setLane(i, n, f(a[0].lane(i, n), a[1].lane(i, n)))
		}
		return v
	}
}

// mask is all ones if c.
func mask(c bool) uint64 { return choose(c, ^uint64(0), 0) }

// saturate limits a number to n bits, signed or not.
func saturate(x int64, n int, sign bool) uint64 {
	least, most := int64(0), int64(1)<<n-1
	if sign {
		least, most = -1<<(n-1), 1<<(n-1)-1
	}
	return uint64(max(least, min(most, x)))
}

// A shape is lanes that fill 64 or 128 bits.
type shape struct{ n, count int }

var shapes = []shape{{8, 8}, {16, 4}, {32, 2}, {8, 16}, {16, 8}, {32, 4}, {64, 2}}

func (s shape) name(format string) string { return fmt.Sprintf(format, s.n, s.count) }

func vectorOps(named map[string]opFunc) {
	for _, s := range shapes {
		n := s.n
		set := func(format string, f func(x, y uint64) uint64) { named[s.name(format)] = lanes(n, s.count, f) }
		set("Add%dx%d", func(x, y uint64) uint64 { return x + y })
		set("Sub%dx%d", func(x, y uint64) uint64 { return x - y })
		set("Mul%dx%d", func(x, y uint64) uint64 { return x * y })
		set("CmpEQ%dx%d", func(x, y uint64) uint64 { return mask(x == y) })
		set("CmpGT%dSx%d", func(x, y uint64) uint64 { return mask(signed(x, n) > signed(y, n)) })
		set("Max%dUx%d", func(x, y uint64) uint64 { return max(x, y) })
		set("Min%dUx%d", func(x, y uint64) uint64 { return min(x, y) })
		set("Max%dSx%d", func(x, y uint64) uint64 { return uint64(max(signed(x, n), signed(y, n))) })
		set("Min%dSx%d", func(x, y uint64) uint64 { return uint64(min(signed(x, n), signed(y, n))) })
		set("Avg%dUx%d", func(x, y uint64) uint64 { return (x + y + 1) >> 1 })
		set("Abs%dx%d", func(x, _ uint64) uint64 { return uint64(max(signed(x, n), -signed(x, n))) })
		s.shifts(named)
		s.interleaves(named)
		if n < 64 {
			s.saturating(named)
		}
	}
	named["GetMSBs8x16"] = func(a *[4]Value) Value { return value(topBits(a[0], 16)) }
	named["GetMSBs8x8"] = func(a *[4]Value) Value { return value(topBits(a[0], 8)) }
	named["PermOrZero8x16"] = permuteOrZero
	named["Perm8x16"] = func(a *[4]Value) Value { return permute(a, 16) }
	named["Perm8x8"] = func(a *[4]Value) Value { return permute(a, 8) }
	named["MullEven32Ux4"] = func(a *[4]Value) Value {
		return Value{a[0].lane(0, 32) * a[1].lane(0, 32), a[0].lane(2, 32) * a[1].lane(2, 32)}
	}
	named["MullEven32Sx4"] = func(a *[4]Value) Value {
		return Value{signedProduct(a[0].lane(0, 32), a[1].lane(0, 32)), signedProduct(a[0].lane(2, 32), a[1].lane(2, 32))}
	}
	named["PwExtUSMulQAdd8x16"] = multiplyAddBytes
	narrowings(named)
}

// multiplyAddBytes is PMADDUBSW: unsigned bytes of the first argument times
// signed ones of the second, neighbours added with saturation.
func multiplyAddBytes(a *[4]Value) Value {
	var v Value
	for i := range 8 {
		sum := int64(0)
		for j := 2 * i; j < 2*i+2; j++ {
			sum += int64(a[0].lane(j, 8)) * signed(a[1].lane(j, 8), 8)
		}
		v.setLane(i, 16, saturate(sum, 16, true))
	}
	return v
}

func signedProduct(x, y uint64) uint64 { return uint64(signed(x, 32) * signed(y, 32)) }

// shifts by one number for all lanes.
func (s shape) shifts(named map[string]opFunc) {
	by := func(f func(x, by uint64) uint64) opFunc {
		return func(a *[4]Value) Value {
			var v Value
			for i := range s.count {
				v.setLane(i, s.n, f(a[0].lane(i, s.n), a[1].Lo))
			}
			return v
		}
	}
	named[s.name("ShlN%dx%d")] = by(func(x, n uint64) uint64 { return x << n })
	named[s.name("ShrN%dx%d")] = by(func(x, n uint64) uint64 { return x >> n })
	named[s.name("SarN%dx%d")] = by(func(x, n uint64) uint64 { return uint64(signed(x, s.n) >> n) })
}

// interleaves take lanes of the low or high half of both in turn, of the second
// argument first, or every other lane of the second argument and then of the
// first.
func (s shape) interleaves(named map[string]opFunc) {
	half := func(from int) opFunc {
		return func(a *[4]Value) Value {
			var v Value
			for i := range s.count / 2 {
				v.setLane(2*i, s.n, a[1].lane(from+i, s.n))
				v.setLane(2*i+1, s.n, a[0].lane(from+i, s.n))
			}
			return v
		}
	}
	every := func(from int) opFunc {
		return func(a *[4]Value) Value {
			var v Value
			for i := range s.count / 2 {
				v.setLane(i, s.n, a[1].lane(2*i+from, s.n))
				v.setLane(s.count/2+i, s.n, a[0].lane(2*i+from, s.n))
			}
			return v
		}
	}
	named[s.name("CatEvenLanes%dx%d")] = every(0)
	named[s.name("CatOddLanes%dx%d")] = every(1)
	named[s.name("InterleaveLO%dx%d")] = half(0)
	named[s.name("InterleaveHI%dx%d")] = half(s.count / 2)
}

func (s shape) saturating(named map[string]opFunc) {
	n := s.n
	set := func(format string, f func(x, y uint64) uint64) { named[s.name(format)] = lanes(n, s.count, f) }
	set("QAdd%dUx%d", func(x, y uint64) uint64 { return saturate(int64(x+y), n, false) })
	set("QSub%dUx%d", func(x, y uint64) uint64 { return saturate(int64(x)-int64(y), n, false) })
	set("QAdd%dSx%d", func(x, y uint64) uint64 { return saturate(signed(x, n)+signed(y, n), n, true) })
	set("QSub%dSx%d", func(x, y uint64) uint64 { return saturate(signed(x, n)-signed(y, n), n, true) })
	set("MulHi%dUx%d", func(x, y uint64) uint64 { return x * y >> n })
	set("MulHi%dSx%d", func(x, y uint64) uint64 { return uint64(signed(x, n) * signed(y, n) >> n) })
}

// narrowings put the lanes of both arguments, halved in size, into one value, of
// the second argument first.
func narrowings(named map[string]opFunc) {
	for _, total := range []int{64, 128} {
		for _, n := range []int{16, 32, 64} {
			count := total / n
			narrowing := func(f func(x uint64) uint64) opFunc {
				return func(a *[4]Value) Value {
					var v Value
					for i := range count {
						v.setLane(i, n/2, f(a[1].lane(i, n)))
						v.setLane(count+i, n/2, f(a[0].lane(i, n)))
					}
					return v
				}
			}
			named[fmt.Sprintf("QNarrowBin%dSto%dSx%d", n, n/2, 2*count)] = narrowing(func(x uint64) uint64 {
				return saturate(signed(x, n), n/2, true)
			})
			named[fmt.Sprintf("QNarrowBin%dSto%dUx%d", n, n/2, 2*count)] = narrowing(func(x uint64) uint64 {
				return saturate(signed(x, n), n/2, false)
			})
			named[fmt.Sprintf("NarrowBin%dto%dx%d", n, n/2, 2*count)] = narrowing(func(x uint64) uint64 { return x })
		}
	}
}

// topBits is the most significant bit of each byte.
func topBits(v Value, count int) uint64 {
	var bits uint64
	for i := range count {
		bits |= v.lane(i, 8) >> 7 << i
	}
	return bits
}

// permute selects bytes of the first argument by the low bits of those of the
// second.
func permute(a *[4]Value, count int) Value {
	var v Value
	for i := range count {
		v.setLane(i, 8, a[0].lane(int(a[1].lane(i, 8))&(count-1), 8))
	}
	return v
}

// permuteOrZero is PSHUFB: a selector with its top bit set gives 0.
func permuteOrZero(a *[4]Value) Value {
	var v Value
	for i := range 16 {
		if by := a[1].lane(i, 8); by < 0x80 {
			v.setLane(i, 8, a[0].lane(int(by&15), 8))
		}
	}
	return v
}

// vectorFloatOps are SSE's: on all lanes (Fx), or on the lowest alone (F0x),
// where the rest comes from the first argument.
func vectorFloatOps(named map[string]opFunc) {
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
		{"Min", min64, min32},
		{"Max", max64, max32},
	} {
		named[o.name+"64F0x2"] = lowest(64, o.f64)
		named[o.name+"32F0x4"] = lowest(32, o.f32)
		// Those of all lanes have a rounding mode, but for Min and Max.
		all64, all32 := lanes(64, 2, o.f64), lanes(32, 4, o.f32)
		if o.name != "Min" && o.name != "Max" {
			all64, all32 = withoutMode(all64), withoutMode(all32)
		}
		named[o.name+"64Fx2"], named[o.name+"32Fx4"] = all64, all32
	}
	named["Sqrt64F0x2"] = lowest(64, same(sqrt64))
	named["Sqrt32F0x4"] = lowest(32, same(sqrt32))
	named["Sqrt64Fx2"] = withoutMode(lanes(64, 2, same(sqrt64)))
	named["Sqrt32Fx4"] = withoutMode(lanes(32, 4, same(sqrt32)))
	comparisons(named)
	named["F32toI32Sx4"] = toIntegers
	named["I32StoF32x4"] = withoutMode(lanes(32, 4, func(x, _ uint64) uint64 { return result32(float32(int32(x))) }))
}

// withoutMode drops the rounding mode, which libVEX sets to nearest here.
func withoutMode(f opFunc) opFunc {
	return func(a *[4]Value) Value { return f(&[4]Value{a[1], a[2], a[3]}) }
}

// lowest makes an operation on the lowest lane; unary ones have it in their one
// argument.
func lowest(n int, f func(x, y uint64) uint64) opFunc {
	return func(a *[4]Value) Value {
		r := f(a[0].lane(0, n), a[1].lane(0, n))
		return Value{a[0].Lo&^low(^uint64(0), n) | low(r, n), a[0].Hi}
	}
}

func comparisons(named map[string]opFunc) {
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
		of64 := func(x, y uint64) uint64 { return mask(c.f64(f64(x), f64(y))) }
		of32 := func(x, y uint64) uint64 { return mask(c.f32(f32(x), f32(y))) }
		named["Cmp"+c.name+"64F0x2"] = lowest(64, of64)
		named["Cmp"+c.name+"32F0x4"] = lowest(32, of32)
		named["Cmp"+c.name+"64Fx2"] = lanes(64, 2, of64)
		named["Cmp"+c.name+"32Fx4"] = lanes(32, 4, of32)
	}
}

// toIntegers converts four F32 in the mode of the first argument.
func toIntegers(a *[4]Value) Value {
	var v Value
	convert := toInteger(32)
	for i := range 4 {
		v.setLane(i, 32, convert(&[4]Value{a[0], value(widen(a[1].lane(i, 32)))}).Lo)
	}
	return v
}
