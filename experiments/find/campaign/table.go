package campaign

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// cell is the searches of a program by a strategy.
type cell struct {
	program, strategy, models string
	results                   []Result
}

// cells groups results in the order in which they come.
func cells(results []Result) (list []cell) {
	for _, r := range results {
		i := slices.IndexFunc(list, func(c cell) bool {
			return c.program == r.Program && c.strategy == r.Strategy && c.models == r.Models
		})
		if i < 0 {
			i = len(list)
			list = append(list, cell{program: r.Program, strategy: r.Strategy, models: r.Models})
		}
		list[i].results = append(list[i].results, r)
	}
	return list
}

// WriteTable writes schedules to the first failure: mean and standard deviation over the searches that found one, and
// their number of all.
func WriteTable(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "program\tmodels\tstrategy\tmean\tdeviation\tfound\tof")
	for _, c := range cells(results) {
		var schedules []float64
		for _, r := range c.results {
			if r.Found {
				schedules = append(schedules, float64(r.Schedules))
			}
		}
		mean, deviation := "-", "-"
		if len(schedules) > 0 {
			mean = fmt.Sprintf("%.1f", stat.Mean(schedules, nil))
		}
		if len(schedules) > 1 {
			deviation = fmt.Sprintf("%.1f", stat.StdDev(schedules, nil))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%d\n", c.program, c.models, c.strategy, mean, deviation, len(schedules), len(c.results))
	}
	return t.Flush()
}

// WriteComparison writes, for each pair of strategies, the log-rank test of the hypothesis that they find failures equally
// fast, stratified by programs and models.
func WriteComparison(w io.Writer, results []Result) error {
	var strategies []string
	for _, r := range results {
		if !slices.Contains(strategies, r.Strategy) {
			strategies = append(strategies, r.Strategy)
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "faster\tthan\tfailures found\texpected if equal\tp (log-rank)")
	for i, a := range strategies {
		for _, b := range strategies[i+1:] {
			x := compare(results, a, b)
			if x.found < x.expected {
				a, x = b, compare(results, b, a)
				fmt.Fprintf(t, "%s\t%s\t%.0f\t%.1f\t%.2g\n", a, strategies[i], x.found, x.expected, x.p)
				a = strategies[i]
				continue
			}
			fmt.Fprintf(t, "%s\t%s\t%.0f\t%.1f\t%.2g\n", a, b, x.found, x.expected, x.p)
		}
	}
	return t.Flush()
}

// logRank is the result of a test: the failures that a strategy has found, the number that is expected if it
// is as fast as the other one, and the probability of a difference as great as the one that is seen.
type logRank struct{ found, expected, p float64 }

// compare carries out the log-rank test (Mantel 1966) for two strategies; searches without a failure are censored at
// their last schedule.
func compare(results []Result, a, b string) (x logRank) {
	type stratum struct{ program, models string }
	groups := map[stratum][2][]Result{}
	var order []stratum
	for _, r := range results {
		i := slices.Index([]string{a, b}, r.Strategy)
		if i < 0 {
			continue
		}
		at := stratum{r.Program, r.Models}
		g, known := groups[at]
		if !known {
			order = append(order, at)
		}
		g[i] = append(g[i], r)
		groups[at] = g
	}
	variance := 0.0
	for _, at := range order {
		found, expected, v := logRankSums(groups[at])
		x.found, x.expected, variance = x.found+found, x.expected+expected, variance+v
	}
	x.p = 1
	if variance > 0 {
		chi := (x.found - x.expected) * (x.found - x.expected) / variance
		x.p = distuv.ChiSquared{K: 1}.Survival(chi)
	}
	return x
}

// logRankSums returns the sums of one stratum over the times of failures: the failures of the first group, their
// expectation, and its variance, by the hypergeometric distribution.
func logRankSums(groups [2][]Result) (found, expected, variance float64) {
	var times []int
	for _, g := range groups {
		for _, r := range g {
			if r.Found {
				times = append(times, r.Schedules)
			}
		}
	}
	slices.Sort(times)
	for _, t := range slices.Compact(times) {
		var atRisk, failed [2]float64
		for i, g := range groups {
			for _, r := range g {
				if r.Schedules >= t {
					atRisk[i]++
				}
				if r.Found && r.Schedules == t {
					failed[i]++
				}
			}
		}
		n, d := atRisk[0]+atRisk[1], failed[0]+failed[1]
		found += failed[0]
		expected += d * atRisk[0] / n
		if n > 1 {
			variance += d * (atRisk[0] / n) * (atRisk[1] / n) * (n - d) / (n - 1)
		}
	}
	return found, expected, variance
}

// foundShare is a point of a plot: the share of searches that have found a failure by a number of schedules.
type foundShare struct{ schedules, share float64 }

// foundOver is the share of a strategy's searches that have found a failure, as a step function: one minus the estimate
// of Kaplan and Meier (1958), since all searches are censored at the same number of schedules or later.
func foundOver(results []Result, strategy string) (list []foundShare) {
	var mine []Result
	for _, r := range results {
		if r.Strategy == strategy {
			mine = append(mine, r)
		}
	}
	slices.SortStableFunc(mine, func(a, b Result) int { return a.Schedules - b.Schedules })
	survival := 1.0
	list = append(list, foundShare{1, 0})
	for i, r := range mine {
		if !r.Found {
			continue
		}
		before := 1 - survival
		survival *= 1 - 1/float64(len(mine)-i)
		at := math.Max(1, float64(r.Schedules))
		list = append(list, foundShare{at, before}, foundShare{at, 1 - survival})
	}
	if n := len(mine); n > 0 {
		list = append(list, foundShare{float64(mine[n-1].Limit), 1 - survival})
	}
	return list
}
