package floats

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/internal/testsize"
)

// TestApproximations compares with quotients of math/big, rounded once, and the special cases with
// the tables of RCPPS and RSQRTPS in Intel's manual.
func TestApproximations(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	rounded := func(v *big.Float) float32 {
		f, _ := v.Float32()
		if math.Abs(float64(f)) < 0x1p-126 {
			return float32(math.Copysign(0, float64(f)))
		}
		return f
	}
	for range testsize.Runs(2000, 100_000, 10_000_000) {
		bits := rnd.Uint32()
		if rnd.IntN(4) == 0 {
			bits &= 0xff800000
		}
		x := math.Float32frombits(bits)
		if math.Abs(float64(x)) < 0x1p-126 || math.IsInf(float64(x), 0) || x != x {
			continue
		}
		v := real(float64(x))
		if got, want := math.Float32frombits(Reciprocal(bits)), rounded(quo(real(1), v)); got != want {
			t.Fatalf("1/%g is %g, want %g", x, got, want)
		}
		if x < 0 {
			continue
		}
		if got, want := math.Float32frombits(ReciprocalRoot(bits)), rounded(quo(real(1), zero().Sqrt(v))); got != want {
			t.Fatalf("1/sqrt(%g) is %g, want %g", x, got, want)
		}
	}
	const infinite, sign, nan = 0x7f800000, 0x80000000, 0x7fc00001
	for _, c := range []struct{ x, reciprocal, root uint32 }{
		{0, infinite, infinite},
		{sign, sign | infinite, sign | infinite},
		{1, infinite, infinite},
		{sign | 1, sign | infinite, sign | infinite},
		{infinite, 0, 0},
		{sign | infinite, sign, 0xffc00000},
		{nan, nan, nan},
		{0x7f800001, nan, nan},
		{0x7f000001, 0, ReciprocalRoot(0x7f000001)},
		{0xbf800000, 0xbf800000, 0xffc00000},
	} {
		if r, s := Reciprocal(c.x), ReciprocalRoot(c.x); r != c.reciprocal || s != c.root {
			t.Errorf("%#x: %#x and %#x, want %#x and %#x", c.x, r, s, c.reciprocal, c.root)
		}
	}
}
