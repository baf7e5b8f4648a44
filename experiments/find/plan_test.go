package find

import (
	"math"
	"testing"
)

// TestBoundsGrow: the schedules of each bound are planned without repetition, and each bound has its turn with at most
// 16 times 4 to its power, or with all that it has, before the next one.
func TestBoundsGrow(t *testing.T) {
	totals := []uint64{1, 10, 55, 1 << 40, 1 << 50} // of delays at 10 points, up to bound 2
	total := func(bound int) uint64 { return totals[bound] }
	var b boundProgress
	last, turn := 0, uint64(0)
	planned := make([]uint64, len(totals))
	for n := range 1 + 10 + 55 + 16*64 + 16*256 {
		bound, rank := b.next(0, total)
		if rank != planned[bound] {
			t.Fatalf("schedule %d: rank %d of bound %d, should be %d", n, rank, bound, planned[bound])
		}
		planned[bound]++
		if bound != last {
			if want := min(totals[last], boundSchedules<<(2*last)); bound != last+1 || turn != want {
				t.Errorf("bound %d follows after %d schedules of bound %d, should be after %d", bound, turn, last, want)
			}
			last, turn = bound, 0
		}
		turn++
	}
	if bound, _ := b.next(0, total); bound != 3 {
		t.Errorf("bound %d continues, should be 3: the others have no more", bound)
	}
}

// TestCommunications: in one of four schedules stores leave their buffers before up to three points alone, which are drawn
// uniformly with repetition among 10: one certain point is among n with probability 1-(9/10)^n.
func TestCommunications(t *testing.T) {
	const seeds, points, certain = 20_000, 10, 4
	found := 0
	for seed := range uint64(seeds) {
		var c commits
		c.begin(seed, points)
		for p := 1; c.counts && p <= points; p++ {
			if c.isCommunication() && p == certain {
				found++
			}
		}
	}
	want := 0.0
	for n := range mostCommunications + 1 {
		want += (1 - math.Pow(1-1./points, float64(n))) / (mostCommunications + 1) / 4
	}
	if got := float64(found) / seeds; math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/seeds) {
		t.Errorf("probability %.4f, should be %.4f", got, want)
	}
}

// TestLimitOfPoints: profiles that failed may have ended early and limit nothing.
func TestLimitOfPoints(t *testing.T) {
	const none = 1 << 62
	s := &search{most: 10, limits: limits{points: none}}
	if s.limitPoints(); s.limits.points != none {
		t.Errorf("after profiles that failed a run hangs after %d points", s.limits.points)
	}
	s.hasWhole = true
	if s.limitPoints(); s.limits.points != 20*10+60_000 {
		t.Errorf("a run hangs after %d points", s.limits.points)
	}
}
