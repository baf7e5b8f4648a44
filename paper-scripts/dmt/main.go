// Command dmt puts the systems for deterministic multithreading beside each other, on one machine and
// equal inputs: rr-sync and fcfs-sync (TERN), Kendo, CoreDet, PARROT with its hints and without, DThreads, Consequence
// and PEREGRINE's hybrid schedules (docs/dmt.md).
//
//	go run ./paper-scripts/dmt all
//	go run ./paper-scripts/dmt --only fft,racey systems
//	heddle papers dmt
//
// The file configs/dmt/systems.yaml has the programs, their arguments, and the papers' numbers. All times are
// virtual.
package main

import (
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/paper-scripts/sheet"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// config is the configuration file.
const config = "configs/dmt/systems.yaml"

func main() { newScript().Main(addFlags) }

// newScript is the command without its own flags.
func newScript() *study.Script {
	measured := &study.Artefact{Name: "measured", Config: config, Plan: planMeasured}
	return &study.Script{Name: "dmt", Short: "Compare systems for deterministic multithreading", Artefacts: []study.Artefact{
		{
			Name: "systems", Title: "Systems for deterministic multithreading", Of: measured, Lay: laySystems,
			Chart: &sheet.Chart{
				Kind: plots.Bars, Y: plots.Axis{Title: "times of that under " + sched.Timed, Log: true}, Columns: []string{"mean", "greatest"}, Reference: 1,
				Reported: []sheet.Reported{{Of: "mean", Paper: "paper_mean"}, {Of: "greatest", Paper: "paper_greatest"}},
			},
		},
		{
			Name: "overhead", Title: "Virtual time under each system, in times of that under timed", Of: measured, Lay: layOverhead,
			Chart: &sheet.Chart{
				Kind: plots.Bars, Y: plots.Axis{Title: "times of that under " + sched.Timed, Log: true}, Reference: 1,
				Columns: []string{sched.Kendo, sched.CoreDet, systemHints, sched.DThreads, sched.Consequence},
			},
		},
		{Name: "schedules", Title: "Schedules over seeds, and over inputs that differ a little", Of: measured, Lay: laySchedules},
		{Name: "races", Title: "Racy source lines whose order varies over seeds", Of: measured, Lay: layRaces},
		{Name: "frequency", Title: "Overheads with frequent and with rare operations", Config: config, Plan: planFrequency},
	}}
}

func addFlags(f *pflag.FlagSet) {
	f.Int("runs", 0, "`N` seeds that schedules are counted over")
	f.Int("inputs", 0, "`N` inputs that schedules are counted over")
	f.Int("races", 0, "`N` seeds that racy lines are compared over")
	f.Uint64("seed", 1, "`SEED` of the first run")
	f.StringSlice("only", nil, "`PROGRAMS` to measure, and no others")
}
