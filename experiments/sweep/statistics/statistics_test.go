package statistics

import (
	"math"
	"math/rand/v2"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-4*math.Max(1, math.Abs(b)) }

// TestAgainstR compares with R 4: t.test, quantile, sd, and order statistics by qbinom.
func TestAgainstR(t *testing.T) {
	// sleep$extra of R, group 2.
	sample := []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	for name, c := range map[string][2]float64{
		"mean":       {Mean(sample), 2.33},
		"sd":         {Deviation(sample), 2.002249},
		"median":     {Quantile(sample, 0.5), 1.75},
		"q1":         {Quantile(sample, 0.25), 0.875},
		"q3":         {Quantile(sample, 0.75), 4.15},
		"min":        {Min(sample), -0.1},
		"max":        {Max(sample), 5.5},
		"ci low":     {MeanInterval(sample, 0.95).Low, 0.8976775},
		"ci high":    {MeanInterval(sample, 0.95).High, 3.7623225},
		"99 % low":   {MeanInterval(sample, 0.99).Low, 0.2723},
		"med. low":   {MedianInterval(sample, 0.95).Low, 0.1}, // the 2nd and the 9th: 97.9 %
		"med. high":  {MedianInterval(sample, 0.95).High, 4.6},
		"one, mean":  {Mean([]float64{3}), 3},
		"equal, low": {MeanInterval([]float64{3, 3}, 0.95).Low, 3},
	} {
		if !near(c[0], c[1]) {
			t.Errorf("%s: %v, want %v", name, c[0], c[1])
		}
	}
}

func TestSmallSamplesHaveNoInterval(t *testing.T) {
	five := []float64{1, 2, 3, 4, 5}
	for name, i := range map[string]Interval{"one": MeanInterval(five[:1], 0.95), "median of five": MedianInterval(five, 0.95), "of none": MedianInterval(nil, 0.95)} {
		if !math.IsNaN(i.Low) || !math.IsNaN(i.High) {
			t.Errorf("%s: %v", name, i)
		}
	}
	if r, _ := Ratio(five, []float64{0}, 0.95); !math.IsNaN(r) {
		t.Errorf("a ratio to 0 is %v", r)
	}
	if r, i := Ratio(five, five[:1], 0.95); r != 3 || !math.IsNaN(i.Low) {
		t.Errorf("a ratio to one run is %v, %v", r, i)
	}
}

// TestCoverage: of the intervals of random samples, about 95 % have the true value.
func TestCoverage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n int, mean float64) (s []float64) {
		for range n {
			s = append(s, mean+r.NormFloat64())
		}
		return s
	}
	const trials = 4000
	var mean, median, ratio int
	in := func(i Interval, v float64) int {
		if i.Low <= v && v <= i.High {
			return 1
		}
		return 0
	}
	for range trials {
		a, b := draw(8, 20), draw(12, 10)
		mean += in(MeanInterval(a, 0.95), 20)
		median += in(MedianInterval(a, 0.95), 20)
		_, i := Ratio(a, b, 0.95)
		ratio += in(i, 2)
	}
	for name, c := range map[string]struct {
		n         int
		low, high float64
	}{"mean": {mean, 0.94, 0.96}, "median": {median, 0.95, 0.995}, "ratio": {ratio, 0.935, 0.965}} {
		if share := float64(c.n) / trials; share < c.low || share > c.high {
			t.Errorf("%s: %.3f of the intervals have the true value", name, share)
		}
	}
}
