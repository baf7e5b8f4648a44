// Command frost measures what Frost's tables 1 to 3 and figures 4 to 7 show, with the
// suite's programs in place of the paper's, and prints the paper's numbers beside
// ours (K. Veeraraghavan and others, Detecting and surviving data races using
// complementary schedules, SOSP 2011).
//
//	go run ./paper-scripts/frost all
//	go run ./paper-scripts/frost --trials 100 table2
//
// Execution times are virtual: cycles of the timing model (docs/scheduling.md), and
// the pipeline of epochs is modelled (docs/frost.md).
package main

import (
	"context"
	"io"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/experiments/table"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

// settings are the command line's.
type settings struct {
	trials   int
	only     []string
	progress io.Writer
}

func main() {
	s := &settings{progress: os.Stderr}
	script := study.Script{Name: "frost", Short: "Measure Frost's tables 1 to 3 and figures 4 to 7", Artefacts: []study.Artefact{
		{Name: "table1", Title: "Table 1: outcomes of epochs", Measure: s.with(table1)},
		{Name: "table2", Title: "Table 2: data race detection and survival", Measure: s.with(table2)},
		{Name: "table3", Title: "Table 3: data race detection coverage", Measure: s.with(table3)},
		{
			Name: "figure4", Title: "Figure 4: execution time on 8 cores", Measure: s.with(figure4),
			Chart: &study.Chart{Y: "virtual time, ms", Columns: []string{"plain", "frost"}},
		},
		{
			Name: "figure5", Title: "Figure 5: energy on 8 cores, by a model", Measure: s.with(figure5),
			Chart: &study.Chart{Y: "energy, in ms of full load", Columns: []string{"plain", "frost"}},
		},
		{
			Name: "figure6", Title: "Figure 6: throughput on 32 cores", Measure: s.with(figure6),
			Chart: &study.Chart{Y: "times that of one thread", Columns: []string{"plain", "frost"}},
		},
		{
			Name: "figure7", Title: "Figure 7: work of all replicas by sampling rate, more than without Frost", Measure: s.with(figure7),
			Chart: &study.Chart{Y: "more work, %", Columns: []string{"paper", "work"}},
		},
	}}
	script.Main(func(f *pflag.FlagSet) {
		f.IntVar(&s.trials, "trials", 5, "`N` seeds for each program, as many as in the paper (table2, table3)")
		f.StringSliceVar(&s.only, "only", nil, "`PROGRAMS` of the suite to take, and no others")
	})
}

// with is a measurement with the settings.
func (s *settings) with(measure func(context.Context, *settings) (*table.Table, error)) func(context.Context) (*table.Table, error) {
	return func(ctx context.Context) (*table.Table, error) { return measure(ctx, s) }
}

// wants tells whether a program is to be measured.
func (s *settings) wants(name string) bool { return len(s.only) == 0 || slices.Contains(s.only, name) }
