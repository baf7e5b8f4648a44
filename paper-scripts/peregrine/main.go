// Command peregrine measures the contents of PEREGRINE's tables 1 to 6 and figures 11 to
// 14, with the suite's programs in place of the paper's, and prints the
// paper's numbers beside ours (H. Cui and others, Efficient deterministic
// multithreading through schedule relaxation, SOSP 2011).
//
//	go run ./paper-scripts/peregrine all
//	go run ./paper-scripts/peregrine --runs 50 table3
//	go run ./paper-scripts/peregrine --stored --format latex table3
//
// The files in configs/peregrine say which programs are measured and how, and
// have the paper's values for each. Execution times are virtual: cycles of the timing
// model (docs/scheduling.md), which are repeatable. The host's times are in
// docs/performance.md.
package main

import (
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/paper-scripts/served"
	"github.com/heddle-dmt/heddle/paper-scripts/sheet"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

// The configuration files.
const (
	determinism = "configs/peregrine/determinism.yaml"
	efficiency  = "configs/peregrine/efficiency.yaml"
	suiteFile   = "configs/peregrine/suite.yaml"
	analyses    = "configs/peregrine/analyses.yaml"
	annotations = "configs/peregrine/annotations.yaml"
	recording   = "configs/peregrine/recording.yaml"
)

func main() { newScript().Main(addFlags) }

// newScript is the command without its own flags.
func newScript() *study.Script {
	return &study.Script{Name: "peregrine", Short: "Measure PEREGRINE's tables 1 to 6 and figures 11 to 14", Artefacts: []study.Artefact{
		{Name: "table1", Title: "Table 1: programs and their races", Config: determinism, Plan: planWithSettings(planTable1)},
		{Name: "table2", Title: "Table 2: hybrid schedules", Config: determinism, Plan: planWithSettings(planTable2)},
		{Name: "table3", Title: "Table 3: determinism of sync-schedules and hybrid schedules", Config: determinism, Plan: planWithSettings(planTable3)},
		table4,
		table5,
		{
			Name: "table6", Title: "Table 6: annotations", Config: annotations, Plan: planWithSettings(planTable6),
			Pairs: []sheet.Pair{{Ours: "annotations", Paper: "paper_peregrine"}},
		},
		{
			Name: "figure11", Title: "Figure 11: execution time under schedules, in times of that without", Config: efficiency, Plan: planWithSettings(planFigure11),
			Chart: &sheet.Chart{
				Kind: plots.Bars, Y: plots.Axis{Title: "time, in times of that without a schedule"}, Columns: []string{"sync", "hybrid", "mem"}, Reference: 1,
				Reported: []sheet.Reported{{Of: "hybrid", Paper: "paper_hybrid", Times: true}, {Of: "mem", Paper: "paper_mem"}},
			},
		},
		{
			Name: "figure12", Title: "Figure 12: speed-up by flag relay and by skipping waits", Config: efficiency, Plan: planWithSettings(planFigure12),
			Chart: &sheet.Chart{Kind: plots.Bars, Y: plots.Axis{Title: "times as fast"}, Columns: []string{"flag", "skip", "both"}, Reference: 1},
		},
		{
			Name: "figure13", Title: "Figure 13: time with loads and stores recorded, in times of that without", Config: recording, Plan: planWithSettings(planFigure13),
			Pairs: []sheet.Pair{{Ours: "native", Paper: "paper"}},
			Chart: &sheet.Chart{
				Kind: plots.Bars, Y: plots.Axis{Title: "times as long"}, Columns: []string{"recorded", "native"}, Reference: 1,
				Reported: []sheet.Reported{{Of: "native", Paper: "paper"}},
			},
		},
		figure14,
		{Name: "suite", Title: "Table 3 over all racy programs of the suite", Config: suiteFile, Plan: planWithSettings(planSuite)},
		{Name: "servers", Title: "Apache in windows of requests: the rows of all tables and figures", Config: "configs/peregrine/servers.yaml", Plan: served.Plan},
	}}
}

// planWithSettings is a plan with settings that the command line's flags override.
func planWithSettings(lay func(*study.Settings) (*study.Plan, error)) func(*study.Options) (*study.Plan, error) {
	return study.PlanWithSettings(lay, "threads", "cores", "runs", "sync-runs", "times", "seed")
}

func addFlags(f *pflag.FlagSet) {
	f.Int("threads", 0, "worker threads `N` of each program")
	f.Int("cores", 0, "cores `N` of recorded runs; otherwise as many as threads")
	f.Int("runs", 0, "`N` runs of each program under its hybrid schedule (table3, suite), or of each server (servers)")
	f.Int("sync-runs", 0, "`N` runs of each program under its sync-schedule (table3, suite)")
	f.Int("times", 0, "`N` runs that a time is the mean of (figure11, figure12, figure13)")
	f.Bool("long", false, "traces more like the paper's in length (table4, table5, figure14)")
	f.Uint64("seed", 0, "`SEED` of the first recorded run")
	f.StringSlice("only", nil, "`PROGRAMS`, or loads of servers, to measure, and no others")
}
