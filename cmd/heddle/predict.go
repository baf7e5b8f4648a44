package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/analyses/races"
	racereport "github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/experiments/prediction"
)

// predictFlags are the flags of `heddle races` by which races are predicted.
type predictFlags struct {
	predicts   bool
	prediction prediction.Options
}

// predictDependences are those of heddle races.
var predictDependences = []command.Dependence{
	{Flag: "witness", On: []string{"predict"}},
	{Flag: "predict-runs", On: []string{"predict"}},
	{Flag: "predict-accesses", On: []string{"predict"}},
	{Flag: "predict-shared", On: []string{"predict"}},
}

func (f *predictFlags) definePrediction(flags *pflag.FlagSet) {
	p := &f.prediction
	*p = prediction.DefaultOptions()
	flags.BoolVar(&f.predicts, "predict", false, "predict races of other orders, and confirm each by a run")
	flags.StringVar(&p.Folder, "witness", "", "with --predict, keep the schedules that lead to the races in the folder `DIR`")
	flags.IntVar(&p.Witnesses, "predict-runs", p.Witnesses, "with --predict, run at most `N` of these schedules")
	flags.Uint64Var(&p.Accesses, "predict-accesses", p.Accesses, "with --predict, examine the first `N` accesses of the run")
	flags.Uint64Var(&p.Shared, "predict-shared", p.Shared, "with --predict, of these the first `N` to memory that several threads use")
}

// checkPrediction finds wrong flags.
func (f *predictFlags) checkPrediction(o racereport.Options) error {
	if f.predicts && o.Order != races.HappensBefore {
		return command.ErrFlag.New("mode", "schedule with --predict", "hb")
	}
	if f.prediction.Witnesses < 1 {
		return command.ErrFlag.New("predict-runs", f.prediction.Witnesses, "a whole number from 1 on")
	}
	return nil
}

// predictProgram records a run, and predicts its races.
func (a *app) predictProgram(ctx context.Context, flags *pflag.FlagSet, f racesFlags, run runFlags, args []string) error {
	if err := f.prediction.Prepare(); err != nil {
		return err
	}
	if run.region != "" {
		return command.ErrFlag.New("region", run.region+" with --predict", "none")
	}
	folder, err := os.MkdirTemp("", "heddle-races-")
	if err != nil {
		return command.ErrWriteFile.Wrap(err, os.TempDir())
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "run.trace")
	run.quiet = true // the trace is not kept
	result, err := a.record(ctx, flags, run, recordFlags{output: path, sync: true, heap: true, inputs: true, memory: memoryReplay, serial: true}, args)
	if err != nil || !ended(result) {
		return err
	}
	return a.predictRaces(ctx, f, path, strings.Join(args, " "))
}

// predictRaces reports the races of a trace, and those that are predicted.
func (a *app) predictRaces(ctx context.Context, f racesFlags, path, name string) (err error) {
	p := f.prediction
	if p.Report, err = f.options(); err != nil {
		return err
	}
	progress := &liveLine{app: a, terminal: a.onTerminal()}
	if progress.terminal {
		p.Progress = progress.print
	}
	found, err := prediction.Predict(ctx, path, name, p)
	progress.end()
	if err != nil {
		return err
	}
	return a.output().ExportTo(f.output, func(out io.Writer) error { return a.writeRaces(out, f, found) })
}
