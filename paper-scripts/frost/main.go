// Command frost measures the values of Frost's tables 1 to 3 and figures 4 to 7, with the
// suite's programs in place of the paper's, and prints the paper's numbers beside
// ours (K. Veeraraghavan and others, Detecting and surviving data races using
// complementary schedules, SOSP 2011).
//
//	go run ./paper-scripts/frost all
//	go run ./paper-scripts/frost --trials 100 table2
//
// The files of configs/frost list the runs. Execution times are virtual: cycles of the
// timing model (docs/scheduling.md), and the pipeline of epochs is modelled
// (docs/frost.md).
package main

import (
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/paper-scripts/sheet"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

// figures is the configuration file of the figures.
const figures = "configs/frost/figures.yaml"

func main() { newScript().Main(defineFlags) }

// newScript is the command without its own flags.
func newScript() *study.Script {
	return &study.Script{Name: "frost", Short: "Measure Frost's tables 1 to 3 and figures 4 to 7", Artefacts: []study.Artefact{
		{Name: "table1", Title: "Table 1: outcomes of epochs", Measure: planTable1},
		{
			Name: "table2", Title: "Table 2: data race detection and survival", Config: "configs/frost/table2.yaml", Plan: plan(table2),
			Pairs: []sheet.Pair{{Ours: "outcomes", Paper: "paper_outcome"}, {Ours: "survived", Paper: "paper_survived"}, {Ours: "detected", Paper: "paper_survived"}},
		},
		{
			Name: "table3", Title: "Table 3: data race detection coverage", Config: "configs/frost/table3.yaml", Plan: plan(planTable3),
			Pairs: []sheet.Pair{
				{Ours: "harmful_traditional", Paper: "paper_harmful"},
				{Ours: "benign_traditional", Paper: "paper_benign"},
				{Ours: "benign_frost", Paper: "paper_benign_frost"},
			},
		},
		{
			Name: "figure4", Title: "Figure 4: execution time on 8 cores", Config: figures, Plan: plan(planFigure4),
			Chart: &sheet.Chart{
				Kind: plots.Bars, Y: plots.Axis{Title: "virtual time [ms]"}, Columns: []string{"plain", "frost"},
				Reported: []sheet.Reported{{Of: "frost", Paper: "paper_overhead", More: "plain"}},
			},
		},
		{
			Name: "figure5", Title: "Figure 5: energy on 8 cores, by a model", Config: figures, Plan: plan(planFigure5),
			Chart: &sheet.Chart{
				Kind: plots.Bars, Y: plots.Axis{Title: "energy [ms of full load]"}, Columns: []string{"plain", "frost"},
				Reported: []sheet.Reported{{Of: "frost", Paper: "paper_overhead", More: "plain"}},
			},
		},
		{
			Name: "figure6", Title: "Figure 6: throughput on 32 cores", Config: figures, Plan: plan(planFigure6),
			Chart: &sheet.Chart{
				Kind: plots.Lines, Over: "threads", X: plots.Axis{Title: "threads"}, Y: plots.Axis{Title: "scans of the folder [1/ms of virtual time]"},
				Columns: []string{"plain", "frost"}, Reported: []sheet.Reported{{Of: "frost", Paper: "paper_overhead", Slower: "plain"}},
			},
		},
		{
			Name: "figure7", Title: "Figure 7: work of all replicas by sampling rate, more than without Frost", Config: figures, Plan: plan(planFigure7),
			Pairs: []sheet.Pair{{Ours: "work", Paper: "paper"}},
			Chart: &sheet.Chart{
				Kind: plots.Lines, Over: "rate", X: plots.Axis{Title: "sampling rate"}, Y: plots.Axis{Title: "more work [%]"}, Columns: []string{"work"},
				Reported: []sheet.Reported{{Of: "work", Paper: "paper"}},
			},
		},
		{
			Name: "servers", Title: "Servers: time with Frost", Config: "configs/frost/servers.yaml", Plan: planServers,
			Pairs: []sheet.Pair{{Ours: "overhead", Paper: "paper_overhead"}},
		},
	}}
}

func defineFlags(f *pflag.FlagSet) {
	f.Int("trials", 0, "`N` trials of each bug (table2), or runs (table3)")
	f.StringSlice("only", nil, "`PROGRAMS` of the configuration file to take, and no others")
}
