package sched

import (
	"math"
	"testing"

	"github.com/heddle-dmt/heddle/recorder/event"
)

func TestGeometricHasItsMean(t *testing.T) {
	for _, mean := range []uint64{1, 2, 3, 10, 1000, 1_000_000} {
		s := newStream(1, 2)
		const n = 200_000
		var sum, square float64
		for range n {
			x := s.geometric(mean)
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
	s := newStream(1, 2)
	var count [7]int
	for range 70_000 {
		count[s.below(7)]++
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
		if got := newShare(test.fraction).of(test.x); got != test.want {
			t.Errorf("%v of %d is %d, want %d", test.fraction, test.x, got, test.want)
		}
	}
	s := newStream(3, 4)
	for range 1000 {
		if s.chance(newShare(0)) || !s.chance(newShare(1)) {
			t.Fatal("chance 0 happened, or chance 1 did not")
		}
	}
}

// Half the share on average, for the smallest numbers too.
func TestUpToShare(t *testing.T) {
	for _, x := range []uint64{1, 7, 100, 1_000_000} {
		s := newStream(5, 6)
		const n = 400_000
		var sum uint64
		for range n {
			part := s.upToShare(newShare(0.25), x)
			if float64(part) > 0.25*float64(x)+1 {
				t.Fatalf("%d of a quarter of %d", part, x)
			}
			sum += part
		}
		if mean := float64(sum) / n / float64(x); math.Abs(mean-0.125) > 0.002 {
			t.Errorf("mean part of %d is %.4f, want 0.125", x, mean)
		}
	}
	s := newStream(5, 6)
	if got := s.upToShare(newShare(1), math.MaxUint64); got == 0 {
		t.Error("no part of the greatest number")
	}
}

func TestStreamsDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(1000) {
		for purpose := range uint64(4) {
			s := newStream(seed, purpose)
			seen[s.source.Uint64()] = true
		}
	}
	if len(seen) != 4000 {
		t.Errorf("%d different first numbers of 4000 streams", len(seen))
	}
}

func TestListKeepsOrder(t *testing.T) {
	l := newList()
	for s := range slot(5) {
		l.append(s)
	}
	for _, s := range []slot{2, 2, 0, 4, 9} {
		l.remove(s)
	}
	l.append(2)
	var got []slot
	for s := l.first; s != none; s = l.after(s) {
		got = append(got, s)
	}
	if len(got) != 3 || got[0] != 1 || got[1] != 3 || got[2] != 2 || l.has(0) || !l.has(2) || l.empty() {
		t.Errorf("list %v, want 1 3 2", got)
	}
}

// Threads that have exited take no room, however many there were.
func TestNoTraceOfExitedThreads(t *testing.T) {
	for _, policy := range PolicyNames() {
		c, err := New(2, 1, Options{Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		for id := range event.ThreadID(1000) {
			c.Ready(id, 0)
			if id > 0 {
				c.Exit(id - 1)
			}
		}
		if len(c.threads) > 2 || c.slots.Len() != 1 {
			t.Errorf("%s: %d slots, %d ids for one thread", policy, len(c.threads), c.slots.Len())
		}
		if p, ok := c.policy.(*pct); ok && len(p.priorities) != 1 {
			t.Errorf("%d priorities for one thread", len(p.priorities))
		}
	}
}
