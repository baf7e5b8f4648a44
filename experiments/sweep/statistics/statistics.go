// Package statistics describes samples of a measure: means, medians, spread, and confidence intervals
// of means, medians and ratios of means. It depends on the numbers alone, in any order.
package statistics

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a confidence interval. Both ends are NaN where the sample is too small for one.
type Interval struct{ Low, High float64 }

var none = Interval{math.NaN(), math.NaN()}

// Mean is the arithmetic mean; NaN of an empty sample, as all others.
func Mean(sample []float64) float64 {
	if len(sample) == 0 {
		return math.NaN()
	}
	return stat.Mean(sample, nil)
}

// Deviation is the sample standard deviation, with n-1 in the denominator; NaN of fewer than two.
func Deviation(sample []float64) float64 {
	if len(sample) < 2 {
		return math.NaN()
	}
	return stat.StdDev(sample, nil)
}

// Quantile is the p-quantile, interpolated linearly between the closest ranks (type 7 of Hyndman and
// Fan, Sample Quantiles in Statistical Packages, 1996; the default of R and NumPy).
func Quantile(sample []float64, p float64) float64 {
	if len(sample) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(sample))
	at := p * float64(len(sorted)-1)
	low := int(at)
	if low+1 == len(sorted) {
		return sorted[low]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// Min and Max are the ends of the sample.
func Min(sample []float64) float64 { return Quantile(sample, 0) }

// Max is the largest number.
func Max(sample []float64) float64 { return Quantile(sample, 1) }

// quantileT is the two-sided quantile of Student's t distribution.
func quantileT(level, freedom float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile((1 + level) / 2)
}

// MeanInterval is the confidence interval of the mean by Student's t distribution, which assumes that
// means of samples of this size are about normal.
func MeanInterval(sample []float64, level float64) Interval {
	n := float64(len(sample))
	if n < 2 {
		return none
	}
	half := 0.0
	if deviation := Deviation(sample); deviation > 0 {
		half = quantileT(level, n-1) * deviation / math.Sqrt(n)
	}
	mean := Mean(sample)
	return Interval{mean - half, mean + half}
}

// MedianInterval is a confidence interval of the median of any continuous distribution: the
// shortest symmetric pair of order statistics whose coverage, by the binomial distribution, is at
// least the level. A sample of fewer than six has none at 95 %.
func MedianInterval(sample []float64, level float64) Interval {
	n := len(sample)
	if n == 0 {
		return none
	}
	sorted := slices.Sorted(slices.Values(sample))
	binomial := distuv.Binomial{N: float64(n), P: 0.5}
	for rank := n / 2; rank >= 1; rank-- { // the rank-th smallest and the rank-th largest
		if 1-2*binomial.CDF(float64(rank-1)) >= level {
			return Interval{sorted[rank-1], sorted[n-rank]}
		}
	}
	return none
}

// Ratio is the ratio of the means of two independent samples, with a confidence interval by the delta
// method, and Welch and Satterthwaite's degrees of freedom.
func Ratio(sample, base []float64, level float64) (float64, Interval) {
	a, b := Mean(sample), Mean(base)
	ratio := a / b
	if math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return math.NaN(), none
	}
	if len(sample) < 2 || len(base) < 2 || a == 0 {
		return ratio, none
	}
	na, nb := float64(len(sample)), float64(len(base))
	va := stat.Variance(sample, nil) / (na * a * a)
	vb := stat.Variance(base, nil) / (nb * b * b)
	if va+vb == 0 {
		return ratio, Interval{ratio, ratio}
	}
	freedom := (va + vb) * (va + vb) / (va*va/(na-1) + vb*vb/(nb-1))
	half := quantileT(level, freedom) * math.Abs(ratio) * math.Sqrt(va+vb)
	return ratio, Interval{ratio - half, ratio + half}
}
