package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/experiments/find"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/sched/points"
)

// exitFound is the exit status of `heddle find` when a schedule fails.
const exitFound = 1

// findFlags are those of `heddle find`.
type findFlags struct {
	runFlags
	options find.Options
	models  []string
	expect  string
}

func (a *app) findCommand() *cobra.Command {
	var f findFlags
	c := &cobra.Command{
		Use:   "find [flags] [--] PROGRAM [ARGUMENTS]",
		Short: "Find the interleaving in which a program fails",
		Long: `Find the interleaving in which a program fails. The program is run once, and then
under one schedule after the other, each from the creation of its second thread. The
schedules decide at accesses to memory that several threads use, of which one writes,
and at system calls. Which accesses these are is found by executions with a log.

A run fails when a signal kills it, when it deadlocks, when it hangs (it has many times
the instructions of other runs), when it exits with a status other than 0 that the
first run did not have, or, with --expect, when its output is wrong. The first schedule
that fails ends the search. It is recorded, and reported when the replay of the
recording has failed in the same way.

The same seed gives the same result, however many schedules are executed at a time. The
exit status is 1 if a failure was found and 0 if not; after Ctrl-C without a failure it
is that of the signal.`,
		Example: `  heddle find -- ./program
  heddle find --model sc,tso,pso --schedules 100000 -- ./queue
  heddle replay failure.trace
  heddle minimize -o short.trace failure.trace`,
		RunE: func(c *cobra.Command, args []string) error { return a.find(c.Context(), c.Flags(), f, args) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false)
	cli.GroupNew(flags, "Search", func() { f.define(flags) })
	addMachineFlags(flags, groupMachine, groupFiles, groupLimits)
	addInputFlags(flags, &f.runFlags)
	return c
}

func (f *findFlags) define(flags *pflag.FlagSet) {
	flags.StringVarP(&f.options.Trace, "output", "o", find.DefaultTrace, "write the trace of the failing run to `FILE`")
	flags.IntVar(&f.options.Schedules, "schedules", find.DefaultSchedules, "try at most `N` schedules")
	flags.DurationVar(&f.options.Time, "time", 0, "end the search after `DURATION`, like 90s or 2h; where it ends depends on the host's speed; 0: no limit")
	flags.StringSliceVar(&f.models, "model", []string{memmodel.SC.String(), memmodel.TSO.String()}, "memory `MODELS` that take turns: "+strings.Join(memmodel.Names(), ", "))
	flags.StringSliceVar(&f.options.Strategies, "strategy", nil, "`STRATEGIES` that take turns (default all): "+strings.Join(points.Names(), ", "))
	flags.StringVar(&f.expect, "expect", "", "`FILE` with the right output: a run that prints another one fails")
	flags.BoolVar(&f.options.AnyOutput, "any-output", false, "no output is a failure")
	flags.BoolVar(&f.options.HeapCheck, "heap-check", false, "fail at overflows of allocated memory, uses of freed memory and double frees")
	flags.BoolVar(&f.options.All, "all", false, "go on after a failure: find all that differ in how or where the program fails")
	flags.IntVar(&f.options.Minimize, "minimize", find.DefaultMinimize, "look for a shorter failing schedule in at most `N` runs; 0: do not")
	flags.IntVar(&f.options.Workers, "workers", runtime.NumCPU(), "execute `N` schedules at the same time; no result depends on it")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "leave out progress on standard error")
}

// check completes the options and finds wrong ones.
func (f *findFlags) check() error {
	o := &f.options
	switch {
	case o.Schedules < 1:
		return errFlag.New("schedules", o.Schedules, "a whole number from 1 on")
	case o.Workers < 1:
		return errFlag.New("workers", o.Workers, "a whole number from 1 on")
	case o.Time < 0:
		return errFlag.New("time", o.Time, "a duration that is not negative, such as 90s; 0 means no limit")
	case len(f.models) == 0:
		return errFlag.New("model", quote(""), "memory models: "+strings.Join(memmodel.Names(), ", "))
	}
	for _, name := range f.models {
		model, known := memmodel.Parse(name)
		if !known {
			return errFlag.New("model", quote(name), strings.Join(memmodel.Names(), ", "))
		}
		o.Models = append(o.Models, model)
	}
	for _, name := range o.Strategies {
		if !slices.Contains(points.Names(), name) {
			return errFlag.New("strategy", quote(name), strings.Join(points.Names(), ", "))
		}
	}
	if f.expect != "" {
		var err error
		if o.Expect, err = os.ReadFile(f.expect); err != nil {
			return errReadFile.Wrap(reason(err), f.expect)
		}
	}
	return checkWritable(o.Trace)
}

// find carries out `heddle find`.
func (a *app) find(ctx context.Context, flags *pflag.FlagSet, f findFlags, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	j, stdin, err := a.open(ctx, flags, f.runFlags, args)
	if err != nil {
		return err
	}
	defer stdin.Close()
	progress := &liveLine{app: a, terminal: a.onTerminal()}
	if !f.quiet {
		f.options.Progress = func(tried, instructions int) {
			progress.print(fmt.Sprintf("schedules tried: %d; decisions at %d instructions", tried, instructions))
		}
	}
	report, err := find.Find(ctx, j.Config(), stdin.Reader, f.options)
	progress.end()
	if err != nil {
		return err
	}
	status, stopped := interrupted(ctx)
	switch {
	case len(report.Failures) > 0:
		a.status = exitFound
	case stopped:
		a.status = status
		a.say("interrupted")
	case report.Ended == find.EndedByTime:
		a.say("the time of the search is over")
	}
	return report.Write(a.stdout)
}
