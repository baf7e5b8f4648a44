package campaign

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// TestDocumentedTable: the table of docs/finding-bugs.md is that of the results in configs/find.
func TestDocumentedTable(t *testing.T) {
	c, err := Load("../../../configs/find/benchmark.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	known, _, err := c.stored()
	if err != nil {
		t.Fatal(err)
	}
	results := map[string][]float64{}
	for _, r := range known {
		if !r.Found || r.Limit != c.Schedules {
			t.Errorf("%v", r)
		}
		results[r.Program+" "+r.Strategy] = append(results[r.Program+" "+r.Strategy], float64(r.Schedules))
	}
	page, err := os.ReadFile("../../../docs/finding-bugs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range c.Programs {
		line := "| " + p.Bug + " |"
		for _, strategy := range []string{"surw", "rff", "pos", all} {
			list := results[p.Bug+" "+strategy]
			if len(list) != c.Trials {
				t.Errorf("%s, %s: %d of %d results", p.Bug, strategy, len(list), c.Trials)
			}
			line += fmt.Sprintf(" %.1f (%.1f) |", stat.Mean(list, nil), stat.StdDev(list, nil))
		}
		if !strings.Contains(string(page), line+"\n") {
			t.Errorf("the page lacks %s", line)
		}
	}
}
