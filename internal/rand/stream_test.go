package rand

import (
	"math"
	"testing"
)

func TestGeometricHasItsMean(t *testing.T) {
	for _, mean := range []uint64{1, 2, 3, 10, 1000, 1_000_000} {
		s := NewStream(1, 2)
		const n = 200_000
		var sum, square float64
		for range n {
			x := s.Geometric(mean)
			if x < 1 {
				t.Fatalf("mean %d: drew %d", mean, x)
			}
			sum += float64(x)
			square += float64(x) * float64(x)
		}
		m := sum / n
		deviation := math.Sqrt(square/n - m*m)
		// The standard deviation of a geometric distribution.
		want := math.Sqrt(float64(mean) * float64(mean-1))
		if math.Abs(m/float64(mean)-1) > 0.01 || math.Abs(deviation-want) > 0.02*want {
			t.Errorf("mean %d: got mean %.3f, deviation %.3f, want %.3f", mean, m, deviation, want)
		}
	}
}

func TestBelowIsUniform(t *testing.T) {
	s := NewStream(1, 2)
	var count [7]int
	for range 70_000 {
		count[s.Below(7)]++
	}
	for i, n := range count {
		if n < 9600 || n > 10_400 {
			t.Errorf("%d was drawn %d times of 70000, want about 10000", i, n)
		}
	}
}

func TestShares(t *testing.T) {
	for _, test := range []struct {
		fraction float64
		x, want  uint64
	}{
		{0, 1000, 0}, {1, 1000, 1000}, {0.5, 1001, 500}, {0.25, 1 << 60, 1 << 58}, {1, math.MaxUint64, math.MaxUint64},
	} {
		if got := NewShare(test.fraction).Of(test.x); got != test.want {
			t.Errorf("%v of %d is %d, want %d", test.fraction, test.x, got, test.want)
		}
	}
	s := NewStream(3, 4)
	for range 1000 {
		if s.Chance(NewShare(0)) || !s.Chance(NewShare(1)) {
			t.Fatal("chance 0 happened, or chance 1 did not")
		}
	}
}

// Half the share on average, for the smallest numbers too.
func TestUpToShare(t *testing.T) {
	for _, x := range []uint64{1, 7, 100, 1_000_000} {
		s := NewStream(5, 6)
		const n = 400_000
		var sum uint64
		for range n {
			part := s.UpToShare(NewShare(0.25), x)
			if float64(part) > 0.25*float64(x)+1 {
				t.Fatalf("%d of a quarter of %d", part, x)
			}
			sum += part
		}
		if mean := float64(sum) / n / float64(x); math.Abs(mean-0.125) > 0.002 {
			t.Errorf("mean part of %d is %.4f, want 0.125", x, mean)
		}
	}
	s := NewStream(5, 6)
	if got := s.UpToShare(NewShare(1), math.MaxUint64); got == 0 {
		t.Error("no part of the greatest number")
	}
}

func TestStreamsDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(1000) {
		for purpose := range uint64(4) {
			s := NewStream(seed, purpose)
			seen[s.Uint64()] = true
		}
	}
	if len(seen) != 4000 {
		t.Errorf("%d different first numbers of 4000 streams", len(seen))
	}
}
