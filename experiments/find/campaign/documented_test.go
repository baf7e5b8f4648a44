package campaign

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// TestDocumentedTable: docs/finding-bugs.md has the numbers of the results that are stored beside the campaigns' files.
func TestDocumentedTable(t *testing.T) {
	page, err := os.ReadFile("../../../docs/finding-bugs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		file       string
		strategies []string
		all        bool // each search has found its failure
		label      func(p Program) string
		cell       func(found []float64, trials int) string
	}{
		{"benchmark", []string{"surw", "rff", "pos", all}, true, func(p Program) string { return p.Bug }, withDeviation},
		{"wide", []string{"surw", "rff", all}, true, func(p Program) string { return fmt.Sprintf("%s, N = %d", p.Bug, p.N) }, withDeviation},
		{"others", []string{"walk", "pct2", "pct3", "delay", "preempt", "period"}, false, func(p Program) string { return p.Bug }, withFound},
	} {
		c, err := Load("../../../configs/find/"+x.file+".yaml", nil)
		if err != nil {
			t.Fatal(err)
		}
		known, _, err := c.stored()
		if err != nil {
			t.Fatal(err)
		}
		results, searches := map[string][]float64{}, map[string]int{}
		for _, r := range known {
			if x.all && !r.Found || r.Limit != c.Schedules {
				t.Errorf("%s: %v", x.file, r)
			}
			key := r.Program + " " + r.Strategy
			searches[key]++
			if r.Found {
				results[key] = append(results[key], float64(r.Schedules))
			}
		}
		for _, p := range c.Programs {
			name := p.Bug
			if p.N > 0 {
				name = fmt.Sprintf("%s %d", p.Bug, p.N)
			}
			line := "| " + x.label(p) + " |"
			for _, strategy := range x.strategies {
				key := name + " " + strategy
				if searches[key] != c.Trials {
					t.Errorf("%s, %s: %d of %d results", x.file, key, searches[key], c.Trials)
				}
				line += " " + x.cell(results[key], c.Trials) + " |"
			}
			if !strings.Contains(string(page), line+"\n") {
				t.Errorf("the page lacks %s", line)
			}
		}
	}
}

// withDeviation is the mean of some numbers, with their standard deviation in parentheses.
func withDeviation(found []float64, _ int) string {
	return fmt.Sprintf("%.1f (%.1f)", stat.Mean(found, nil), stat.StdDev(found, nil))
}

// withFound is the mean of the searches that have found a failure, with their number in parentheses unless all have.
func withFound(found []float64, trials int) string {
	switch len(found) {
	case 0:
		return "- (0)"
	case trials:
		return fmt.Sprintf("%.0f", stat.Mean(found, nil))
	}
	return fmt.Sprintf("%.0f (%d)", stat.Mean(found, nil), len(found))
}
