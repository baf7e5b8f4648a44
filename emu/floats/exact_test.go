package floats

import (
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/internal/testsize"
)

// The reference: arithmetic of math/big with precision bits, and other algorithms than those of
// the C code.
const precision = 320

func real(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }
func zero() *big.Float          { return new(big.Float).SetPrec(precision) }

func add(a, b *big.Float) *big.Float { return zero().Add(a, b) }
func sub(a, b *big.Float) *big.Float { return zero().Sub(a, b) }
func mul(a, b *big.Float) *big.Float { return zero().Mul(a, b) }
func quo(a, b *big.Float) *big.Float { return zero().Quo(a, b) }
func double(a *big.Float, n int) *big.Float {
	return zero().SetMantExp(a, n)
}

// negligible reports whether a term does not change a sum.
func negligible(term, sum *big.Float) bool {
	return term.Sign() == 0 || sum.Sign() != 0 && term.MantExp(nil) < sum.MantExp(nil)-precision-2
}

// arctan returns the arc tangent of a number of any size, by halving the angle.
func arctan(t *big.Float) *big.Float {
	halvings := 0
	for ; t.MantExp(nil) > -8; halvings++ {
		root := zero().Sqrt(add(real(1), mul(t, t)))
		t = quo(t, add(real(1), root))
	}
	sum, power, square := zero().Set(t), zero().Set(t), mul(t, t)
	for k := 3; ; k += 2 {
		power = mul(power, square)
		power.Neg(power)
		term := quo(power, real(float64(k)))
		if negligible(term, sum) {
			return double(sum, halvings)
		}
		sum = add(sum, term)
	}
}

// pi is by Machin's formula.
var pi = func() *big.Float {
	a, b := arctan(quo(real(1), real(5))), arctan(quo(real(1), real(239)))
	return double(sub(double(a, 2), b), 2)
}()

// expm1 returns e^x - 1 for |x| < 1.
func expm1(x *big.Float) *big.Float {
	sum, term := zero().Set(x), zero().Set(x)
	for k := 2.0; ; k++ {
		term = quo(mul(term, x), real(k))
		if negligible(term, sum) {
			return sum
		}
		sum = add(sum, term)
	}
}

// log1p returns the natural logarithm of 1 + x, by roots of 1 + x.
func log1p(x *big.Float) *big.Float {
	doublings := 0
	for ; x.MantExp(nil) > -6; doublings++ {
		// sqrt(1+x) - 1 = x / (sqrt(1+x) + 1)
		x = quo(x, add(zero().Sqrt(add(real(1), x)), real(1)))
	}
	sum, power := zero().Set(x), zero().Set(x)
	for k := 2.0; ; k++ {
		power = mul(power, x)
		power.Neg(power)
		term := quo(power, real(k))
		if negligible(term, sum) {
			return double(sum, doublings)
		}
		sum = add(sum, term)
	}
}

var ln2 = log1p(real(1))

// sine returns the sine of a number below 2^63.
func sine(x *big.Float) *big.Float {
	wide := new(big.Float).SetPrec(2 * precision).Set(x)
	turns, _ := new(big.Float).Quo(wide, double(pi, 1)).Int(nil)
	r := zero().Sub(wide, new(big.Float).SetPrec(2*precision).Mul(new(big.Float).SetInt(turns), double(pi, 1)))
	sum, term, square := zero().Set(r), zero().Set(r), mul(r, r)
	for k := 2.0; ; k += 2 {
		term = quo(mul(term, square), real(k*(k+1)))
		term.Neg(term)
		if negligible(term, sum) && k > 20 {
			return sum
		}
		sum = add(sum, term)
	}
}

// cosine is by the half angle: 1 - 2 sin^2(x/2).
func cosine(x *big.Float) *big.Float {
	s := sine(double(x, -1))
	return sub(real(1), double(mul(s, s), 1))
}

// beside returns v, or a number next to it if v is one of 64 bits: a function that differs from such
// a number by less than the reference shows is above it or below.
func beside(v *big.Float, above bool) *big.Float {
	if v.MinPrec() > 64 {
		return v
	}
	if above {
		return add(v, double(v, 2-precision))
	}
	return sub(v, double(v, 2-precision))
}

// value returns an ordinary number.
func (x Number) value() *big.Float {
	exponent := max(int(x.Head&0x7fff), 1)
	v := double(zero().SetUint64(x.Mantissa), exponent-0x3fff-63)
	if x.Head>>15 != 0 {
		v.Neg(v)
	}
	return v
}

func (x Number) isPowerOfTwo() bool { return x.Mantissa&(x.Mantissa-1) == 0 }

// angle returns the angle of the point (x, y).
func angle(y, x *big.Float) *big.Float {
	z := arctan(zero().Abs(quo(y, x)))
	if x.Sign() < 0 {
		z = sub(pi, z)
	}
	if y.Sign() < 0 {
		z.Neg(z)
	}
	return z
}

// log2 returns the binary logarithm of a positive number.
func log2(x *big.Float) *big.Float {
	m := zero()
	e := x.MantExp(m) // m in [1/2, 1)
	if e == 1 || e == 0 {
		return quo(log1p(sub(x, real(1))), ln2)
	}
	return add(real(float64(e)), quo(log1p(sub(m, real(1))), ln2))
}

// expected returns the results of an instruction on ordinary numbers: those in ST(0) and, if it has
// two results, in ST(1).
func expected(op byte, a, b Number) (first, second *big.Float) {
	x, y := a.value(), b.value()
	switch op {
	case fsin:
		return beside(sine(x), false), nil
	case fcos:
		return beside(cosine(x), false), nil
	case fsincos:
		return beside(cosine(x), false), beside(sine(x), false)
	case fptan:
		return real(1), beside(quo(sine(x), cosine(x)), true)
	case fpatan:
		return beside(angle(y, x), false), nil
	case f2xm1:
		return expm1(mul(x, ln2)), nil
	case fyl2x:
		if a.isPowerOfTwo() { // exact
			return mul(y, real(float64(x.MantExp(nil)-1))), nil
		}
		return mul(y, log2(x)), nil
	}
	if sum := add(real(1), x); x.MantExp(nil) > -64 && sum.MinPrec() == 1 {
		return mul(y, real(float64(sum.MantExp(nil)-1))), nil
	}
	return mul(y, quo(log1p(x), ln2)), nil
}

var modes = []big.RoundingMode{big.ToNearestEven, big.ToNegativeInf, big.ToPositiveInf, big.ToZero}

// rounded returns a number in the x87 format, and the flags of its rounding with all exceptions masked.
func rounded(v *big.Float, mode big.RoundingMode) (Number, uint16) {
	const least, most = -16382, 16383
	r := new(big.Float).SetMode(mode).SetPrec(64).Set(v)
	exponent := r.MantExp(nil) - 1
	tiny := exponent < least
	if tiny {
		// The last place is 2^-16445: adding 2^-16381 puts the last of 64 bits there.
		offset := double(real(1), least+1)
		if v.Sign() < 0 {
			offset.Neg(offset)
		}
		sum := new(big.Float).SetPrec(20_000).Add(v, offset)
		sum.SetMode(mode).SetPrec(65)
		r = new(big.Float).SetPrec(65).Sub(sum, offset)
	}
	var flags uint16
	if r.Cmp(v) != 0 {
		flags = pe
		if tiny {
			flags |= ue
		}
		if r.Sign() == 0 || (r.Cmp(v) > 0) == (v.Sign() > 0) {
			flags |= c1
		}
		if new(big.Float).Abs(r).Cmp(new(big.Float).Abs(v)) < 0 {
			flags &^= c1
		}
	}
	sign := uint16(0)
	if v.Sign() < 0 {
		sign = 0x8000
	}
	if r.MantExp(nil)-1 > most {
		up := mode == big.ToNearestEven || (mode == big.ToPositiveInf && sign == 0) || (mode == big.ToNegativeInf && sign != 0)
		if up {
			return Number{1 << 63, sign | 0x7fff}, oe | pe | c1
		}
		return Number{^uint64(0), sign | 0x7ffe}, oe | pe
	}
	if r.Sign() == 0 {
		return Number{0, sign}, flags
	}
	r.Abs(r)
	exponent = max(r.MantExp(nil)-1, least)
	mantissa, _ := double(r, 63-exponent).Uint64()
	head := uint16(exponent + 0x3fff)
	if mantissa>>63 == 0 {
		head = 0
	}
	return Number{mantissa, sign | head}, flags
}

// operands returns ordinary operands in the range of an instruction.
func operands(rnd *rand.Rand, op byte) (a, b Number) {
	for {
		a, b = randomNumber(rnd), randomNumber(rnd)
		if !a.isOrdinary() || !b.isOrdinary() {
			continue
		}
		exponent, negative := int(a.Head&0x7fff)-0x3fff, a.Head>>15 != 0
		switch op {
		case fsin, fcos, fsincos, fptan:
			if rnd.IntN(4) == 0 { // next to a multiple of pi/2
				n := zero().SetUint64(rnd.Uint64() >> (1 + rnd.IntN(62)))
				a, _ = rounded(mul(add(n, real(1)), double(pi, -1)), big.ToNearestEven)
				exponent = int(a.Head) - 0x3fff
			}
			if exponent < 63 {
				return a, b
			}
		case f2xm1:
			if exponent < 0 {
				return a, b
			}
		case fyl2x:
			if !negative {
				if rnd.IntN(3) == 0 { // next to 1
					a = Number{1<<63 + rnd.Uint64()>>(1+rnd.IntN(63)), 0x3fff}
					if rnd.IntN(2) == 0 {
						a = Number{-(1 + rnd.Uint64()>>(1+rnd.IntN(63))), 0x3ffe}
					}
				}
				if (a == Number{1 << 63, 0x3fff}) {
					continue
				}
				return a, b
			}
		case fyl2xp1: // in the range of the manual, and beyond it up to 2^64
			if exponent < 64 && (!negative || exponent < 0) {
				return a, b
			}
		default:
			if rnd.IntN(3) == 0 {
				b.Head = b.Head&0x8000 | uint16(max(1, min(0x7ffe, int(a.Head&0x7fff)+rnd.IntN(160)-80)))
				b.Mantissa |= 1 << 63
			}
			if x := a; x.Mantissa == 0 || a.Head&0x7fff == 0x7fff {
				continue
			}
			return a, b
		}
	}
}

// TestCorrectlyRounded compares the transcendental functions with a computation of 320 bits.
func TestCorrectlyRounded(t *testing.T) {
	for _, op := range []byte{fsin, fcos, fsincos, fptan, fpatan, f2xm1, fyl2x, fyl2xp1} {
		t.Run(names[op], func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(uint64(op), 7))
			for range testsize.Runs(200, 10_000, 1_000_000) {
				a, b := operands(rnd, op)
				direction := rnd.IntN(4)
				var i Image
				binary.LittleEndian.PutUint16(i[0:], uint16(0x7f|direction<<10|rnd.IntN(4)<<8))
				i[4] = 3
				i.SetST(0, a)
				i.SetST(1, b)
				if op == fptan || op == fsincos {
					i[4] = 1
				}
				Execute(&i, op)
				first, second := expected(op, a, b)
				mode, place := modes[direction], 0
				want, flags := rounded(first, mode)
				if second != nil {
					other, more := rounded(second, mode)
					if op == fptan {
						flags = more
					} else {
						flags = flags&^c1 | more
					}
					if got := i.ST(1); got != other {
						t.Errorf("%x %x, direction %d: ST(1) is %x, want %x", a, b, direction, got, other)
					}
				}
				if a.Head&0x7fff == 0 || (i[4] == 2 && b.Head&0x7fff == 0) {
					flags |= de
				}
				got := i.ST(place)
				if status := i.Status() & (0x3f | c1 | c2); got != want || status != flags {
					t.Errorf("%x %x, direction %d: %x, status %#x, want %x, %#x", a, b, direction, got, status, want, flags)
				}
				if t.Failed() {
					break
				}
			}
		})
	}
}

// TestEveryPrecision: a function has the same result with more words.
func TestEveryPrecision(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	undecided := 0
	for range testsize.Runs(200, 5_000, 200_000) {
		for function, op := range []byte{fsin, fcos, fptan, fpatan, fpatan, f2xm1, fyl2x, fyl2xp1} {
			const eighths = 4
			if function == eighths {
				continue
			}
			a, b := operands(rnd, op)
			if op == f2xm1 && a.Head&0x7fff >= 0x3fff {
				continue
			}
			control := uint16(0x7f | rnd.IntN(4)<<10)
			first, ok := transcend(3, function, a, b, control)
			if !ok {
				undecided++
				first, ok = transcend(5, function, a, b, control)
			}
			for _, words := range []int{6, 7, 8} {
				got, decided := transcend(words, function, a, b, control)
				if !ok || !decided || got != first {
					t.Fatalf("%s of %x and %x is %x (%v), and %x (%v) with %d words", names[op], a, b, first, ok, got, decided, words)
				}
			}
		}
	}
	t.Logf("%d were not decided with three words", undecided)
}
