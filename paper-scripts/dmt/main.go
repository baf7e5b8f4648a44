// Command dmt puts the systems for deterministic multithreading beside each other, on one machine and
// equal inputs: rr-sync and fcfs-sync (TERN), Kendo, CoreDet, PARROT, DThreads, Consequence and
// PEREGRINE's hybrid schedules (docs/dmt.md).
//
//	go run ./paper-scripts/dmt all
//	go run ./paper-scripts/dmt --only fft,racey systems
//	go run ./paper-scripts/dmt --stored --store configs/dmt/results --write docs/dmt.md all
//
// The file configs/dmt/systems.yaml has the programs, their arguments, and the papers' numbers. All times are
// virtual.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var write *string
	s := newScript()
	err := s.Run(ctx, os.Stdout, os.Args[1:], func(f *pflag.FlagSet) {
		addFlags(f)
		write = f.String("write", "", "write the generated parts of the page of documentation `FILE` anew")
	})
	stop()
	if err == nil && *write != "" {
		err = writeDocument(*write)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dmt:", err)
		os.Exit(1)
	}
}

// newScript is the command without its own flags.
func newScript() *study.Script {
	measured := &study.Artefact{Name: "measured", Config: "configs/dmt/systems.yaml", Plan: planMeasured}
	return &study.Script{Name: "dmt", Short: "Compare systems for deterministic multithreading", Artefacts: []study.Artefact{
		{Name: "systems", Title: "Systems for deterministic multithreading", Of: measured, Lay: laySystems},
		{Name: "overhead", Title: "Virtual time, in times of that under timed", Of: measured, Lay: layOverhead},
		{Name: "schedules", Title: "Schedules over seeds, and over inputs that differ a little", Of: measured, Lay: laySchedules},
		{Name: "races", Title: "Racy source lines whose order varies over seeds", Of: measured, Lay: layRaces},
	}}
}

func addFlags(f *pflag.FlagSet) {
	f.Int("runs", 0, "`N` seeds that schedules are counted over")
	f.Int("inputs", 0, "`N` inputs that schedules are counted over")
	f.Int("races", 0, "`N` seeds that racy lines are compared over")
	f.Uint64("seed", 1, "`SEED` of the first run")
	f.StringSlice("only", nil, "`PROGRAMS` to measure, and no others")
}

// writeDocument writes the tables that were laid out into a page.
func writeDocument(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	page, err := replaceParts(string(text), laidOut)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return outfile.WriteBytes(file, []byte(page))
}
