// Command tern measures TERN's tables 1 and 3 to 8 and figures 11 to 13,
// with the suite's programs and Debian's pbzip2 in place of the paper's, and prints the
// paper's numbers beside ours (H. Cui and others, Stable deterministic multithreading
// through schedule memoization, OSDI 2010).
//
//	go run ./paper-scripts/tern all
//	go run ./paper-scripts/tern --runs 20 --program barnes table4
//	go run ./paper-scripts/tern --only fft table1 table5
//
// The files in configs/tern have the programs, their arguments, and the paper's numbers.
// The rows about servers are one artefact, "servers"; table 2 is an interface. The numbers in some of the
// paper's tables are not in the text that we have: then a column says so. Execution times
// are virtual, except those of memoizing and of checking preconditions, which are processor
// times of the host.
package main

import (
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/paper-scripts/served"
	"github.com/heddle-dmt/heddle/paper-scripts/sheet"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

func main() { newScript().Main(addFlags) }

// newScript is the command without its own flags.
func newScript() *study.Script {
	return &study.Script{Name: "tern", Short: "Measure TERN's tables 1 and 3 to 8 and figures 11 to 13", Artefacts: []study.Artefact{
		{Name: "table1", Title: "Table 1: constraints on inputs to reuse schedules", Config: "configs/tern/table1.yaml", Plan: planTable1},
		{Name: "table3", Title: "Table 3: annotations", Config: "configs/tern/annotations.yaml", Plan: study.PlanWithSettings(planTable3)},
		{
			Name: "table4", Title: "Table 4: stability of a bug over inputs", Config: "configs/tern/table4.yaml", Plan: planTable4,
			Pairs: []sheet.Pair{{Ours: "m10", Paper: "paper"}, {Ours: "m12", Paper: "paper"}, {Ours: "m14", Paper: "paper"}},
		},
		{Name: "table5", Title: "Table 5: reuse rates", Config: "configs/tern/table5.yaml", Plan: planTable5},
		{Name: "table6", Title: "Table 6: time to memoize", Config: "configs/tern/memoizer.yaml", Plan: planWithFlags(planTable6)},
		{
			Name: "table7", Title: "Table 7: bugs reproduced and avoided", Config: "configs/tern/table7.yaml", Plan: planWithFlags(planTable7),
			Pairs: []sheet.Pair{{Ours: "reproduced", Paper: "paper_both"}, {Ours: "avoided", Paper: "paper_both"}},
		},
		{Name: "table8", Title: "Table 8: edit distance of memory traces", Config: "configs/tern/table8.yaml", Plan: planWithFlags(planTable8)},
		{
			Name: "figure11", Title: "Figure 11: overhead of following schedules", Config: efficiency, Plan: planWithFlags(planFigure11),
			Chart: &sheet.Chart{
				Kind: plots.Bars, Y: timesWithout, Columns: []string{"time"}, Reference: 1,
				Reported: []sheet.Reported{{Of: "time", Paper: "paper_overhead", Times: true}},
			},
		},
		{
			Name: "figure12", Title: "Figure 12: skipping waits", Config: efficiency, Plan: planWithFlags(planFigure12),
			Pairs: []sheet.Pair{{Ours: "overhead_all", Paper: "paper_all"}, {Ours: "overhead_skipped", Paper: "paper_skipped"}},
			Chart: &sheet.Chart{
				Kind: plots.Bars, Y: timesWithout, Columns: []string{"all", "skipped"}, Reference: 1,
				Reported: []sheet.Reported{{Of: "all", Paper: "paper_all", Times: true}, {Of: "skipped", Paper: "paper_skipped", Times: true}},
			},
		},
		{
			Name: "figure13", Title: "Figure 13: time to check constraints", Config: "configs/tern/figure13.yaml", Plan: planWithFlags(planFigure13),
			Chart: &sheet.Chart{Kind: plots.Bars, Y: plots.Axis{Title: "time to check an input [us]"}, Columns: []string{"all", "simplified", "sliced", "both"}},
		},
		{Name: "servers", Title: "Apache and MySQL in windows of requests: the rows of all tables and figures", Config: "configs/tern/servers.yaml", Plan: served.Plan},
	}}
}

// timesWithout is the y axis of figures 11 and 12.
var timesWithout = plots.Axis{Title: "time, in times of that without a schedule"}

// efficiency is the configuration of figures 11 and 12.
const efficiency = "configs/tern/efficiency.yaml"

// planWithFlags makes a plan from settings that the command line's flags override.
func planWithFlags(lay func(*study.Settings) (*study.Plan, error)) func(*study.Options) (*study.Plan, error) {
	return study.PlanWithSettings(lay, "cores", "runs", "times", "seed")
}

func addFlags(f *pflag.FlagSet) {
	f.Int("runs", 0, "`N` runs of each input and mode (table4), of each schedule (table7, table8), of each server (servers)")
	f.Int("times", 0, "`N` runs that a time is the mean of (table6, figures)")
	f.Int("inputs", 0, "`N` inputs of each workload (table5)")
	f.Int("followed", 0, "`N` of them that are run under their schedules (table5)")
	f.Int("cores", 0, "cores `N` of the machine; otherwise as many as threads")
	f.Uint64("seed", 1, "`SEED` of the first run")
	f.IntSlice("threads", nil, "`NUMBERS` of worker threads (table4)")
	f.String("program", "fft", "`PROGRAM` of the configuration file to measure (table4)")
	f.StringSlice("only", nil, "`PROGRAMS`, or loads of servers, to measure, and no others (not table4)")
}
