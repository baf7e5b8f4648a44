package main

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

var (
	errNeedsSchedule = errs.Define("enforcement-without-schedule",
		"--{flag} says how a schedule is enforced, and none is named: --enforce FILE is needed",
		"heddle run was called with a way to follow a schedule, but without the schedule.",
		"Name a file with --enforce, or leave the flag out.")
	errNoScheduleFile = errs.Define("schedule-without-output",
		"no file is named for the schedule: -o FILE is needed",
		"heddle schedule compute or heddle reproduce was called without saying where the schedule goes.",
		"Name a file with -o.")
	errNotAdmitted = errs.Define("schedule-does-not-admit",
		"the schedule {file} does not admit this run: {problem}",
		"The input does not satisfy the schedule's preconditions, or the program or a file that it reads is not what it was.",
		"Run an input that satisfies them, which heddle schedule show prints, or memoize a schedule for this one with heddle run --cache and --memoize.")
	errScheduleAlone = errs.Define("schedule-and-other",
		"--enforce cannot be used with {option}",
		"A run that follows a schedule is controlled by that alone, in this process.",
		"Leave one of the two out.")
)

// Values of --hand-over.
const handOverRuns, handOverOperations = "run", "operation"

// scheduleFlags are the flags of `heddle run` that have it follow a schedule.
type scheduleFlags struct {
	file, relay      string
	handOver         string
	skip, sync, free bool
	breakOut         uint64
	delays           float64
}

// computeFlags are the flags of `heddle schedule compute`.
type computeFlags struct {
	prune, output      string
	syncOnly, everyOne bool
}

// scheduling names the flags that say how a schedule is enforced.
var scheduling = []string{"relay", "hand-over", "skip-wait", "sync-only", "break-out", "free", "inject-delays"}

func addScheduleFlags(flags *pflag.FlagSet, f *scheduleFlags) {
	cli.GroupNew(flags, groupEnforcing, func() { f.define(flags) })
}

func (f *scheduleFlags) define(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "enforce", "", "have the run follow the schedule in `FILE`")
	flags.StringVar(&f.relay, "relay", enforce.SemaphoreRelay, "pass the turn on by `MEANS`: semaphore, or flag")
	flags.StringVar(&f.handOver, "hand-over", handOverRuns, "have a thread pass the turn on after each `UNIT`: run, its successive operations, with arrivals at constraints counted down; or operation, with a call of slot() at each arrival, as in PEREGRINE")
	flags.BoolVar(&f.skip, "skip-wait", false, "leave out waits at barriers, and sleeps: the schedule has their effect on the order")
	flags.BoolVar(&f.sync, "sync-only", false, "enforce the order of operations alone, without the constraints on races")
	flags.Uint64Var(&f.breakOut, "break-out", 0, "leave the schedule after this many `CYCLES` without its next event; 0: never")
	flags.BoolVar(&f.free, "free", false, "let the run continue on its own when the schedule cannot be followed, instead of ending it")
	flags.Float64Var(&f.delays, "inject-delays", 0, "`PROBABILITY` that a delay is injected after a quantum, as --delay-rate")
}

// check finds flags that have no effect, or that exclude each other. Chosen reports that a cache
// chooses the schedule.
func (f *scheduleFlags) check(flags *pflag.FlagSet, chosen bool) error {
	if f.file == "" && !chosen {
		for _, name := range scheduling {
			if flags.Changed(name) {
				return errNeedsSchedule.New(name)
			}
		}
		return nil
	}
	for _, name := range []string{"verify", "gdb"} {
		if f.file != "" && flags.Changed(name) {
			return errScheduleAlone.New("--" + name)
		}
	}
	if f.relay != enforce.SemaphoreRelay && f.relay != enforce.FlagRelay {
		return command.ErrFlag.New("relay", quote(f.relay), enforce.SemaphoreRelay+", "+enforce.FlagRelay)
	}
	if f.handOver != handOverRuns && f.handOver != handOverOperations {
		return command.ErrFlag.New("hand-over", quote(f.handOver), handOverRuns+", "+handOverOperations)
	}
	if f.delays < 0 || f.delays > 1 {
		return command.ErrFlag.New("inject-delays", f.delays, "0 to 1")
	}
	return nil
}

// words are the flags as they were given.
func (f *scheduleFlags) words(flags *pflag.FlagSet) []string {
	var words []string
	for _, name := range append([]string{"enforce"}, scheduling...) {
		if flag := flags.Lookup(name); flag != nil && flag.Changed {
			words = append(words, "--"+name+"="+flag.Value.String())
		}
	}
	return words
}

// apply has a configuration follow the schedule, if one is named. The function that it returns,
// unless nil, is for machine.WithPlan.
func (f *scheduleFlags) apply(c *machine.Config) (plan func() (*enforce.Plan, error), err error) {
	if f.file == "" {
		return nil, nil
	}
	if f.delays > 0 {
		c.Sched.DelayRate = f.delays
	}
	file, err := peregrine.Load(f.file)
	if err != nil {
		return nil, err
	}
	if file.Schedule.Portable {
		if why := tern.Admits(c, file); why != "" {
			return nil, errNotAdmitted.New(f.file, why)
		}
		tern.Enforce(c, file, f.options())
		return nil, nil
	}
	return peregrine.EnforceDeferred(c, file, f.file, f.options()), nil
}

// options say how a schedule is enforced.
func (f *scheduleFlags) options() enforce.Options {
	return enforce.Options{
		Relay: f.relay, Runs: f.handOver == handOverRuns, SkipWait: f.skip, SyncOnly: f.sync, BreakOut: arch.Cycles(f.breakOut), Free: f.free,
	}
}

func (a *app) scheduleCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "schedule",
		Short: "Make schedules of recorded runs, and show them",
		Args:  command.OfCommands,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.scheduleRecordCommand(), a.scheduleComputeCommand(), a.scheduleWindowCommand(), a.scheduleShowCommand())
	return c
}

func (a *app) scheduleRecordCommand() *cobra.Command {
	var f runFlags
	var rec recordFlags
	var syncOnly bool
	c := &cobra.Command{
		Use:   "record -o TRACE [flags] [--] PROGRAM [ARGUMENTS]",
		Short: "Record a run for a schedule",
		Long: `Run a program with its synchronization operations and system calls one at a
time, as they come, and record the events that a schedule is made of. Operations
that overlap, as they may in heddle record, do not show which took effect first.`,
		RunE: func(c *cobra.Command, args []string) error {
			rec.sync, rec.heap, rec.inputs, rec.serial = true, true, true, true
			if !syncOnly {
				rec.memory = memoryReplay
			}
			_, err := a.record(c.Context(), c.Flags(), f, rec, args)
			return err
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false)
	flags.StringVarP(&rec.output, "output", "o", "", "write the trace to `FILE`")
	flags.BoolVar(&syncOnly, "sync-only", false, "leave out memory accesses: the schedule has no constraints on races")
	cli.Group(flags, groupRecording, "output", "sync-only")
	addMachineFlags(flags)
	addRunFlags(flags, &f)
	addRegionFlag(flags, &f.region)
	return c
}

func (a *app) scheduleComputeCommand() *cobra.Command {
	var f computeFlags
	c := &cobra.Command{
		Use:     "compute -o FILE [flags] TRACE",
		Aliases: []string{"make"},
		Short:   "Make a schedule of a recorded run",
		Long: `Make a schedule of a run that was recorded with heddle schedule record: the total
order of its operations, and constraints on the accesses that race although that
order is kept. The run is repeated once, to find the constraints' instructions.`,
		Args: command.OneFile,
		RunE: func(c *cobra.Command, args []string) error { return a.scheduleCompute(c.Context(), &f, args[0]) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.output, "output", "o", "", "write the schedule to `FILE`")
	flags.BoolVar(&f.syncOnly, "sync-only", false, "leave out constraints")
	flags.BoolVar(&f.everyOne, "mem", false, "order all accesses that conflict, not only those that race: a mem-schedule")
	flags.StringVar(&f.prune, "prune", hybrid.PruneNames()[0], "`RULE` by which constraints are left out: those that follow from others (reduce), "+
		"only those of PEREGRINE (subsume), or none")
	return c
}

func (a *app) scheduleCompute(ctx context.Context, f *computeFlags, path string) error {
	if f.output == "" {
		return errNoScheduleFile.New()
	}
	prune := slices.Index(hybrid.PruneNames(), f.prune)
	if prune < 0 {
		return command.ErrFlag.New("prune", quote(f.prune), strings.Join(hybrid.PruneNames(), ", "))
	}
	if err := checkWritable(f.output); err != nil {
		return err
	}
	if err := a.sayDamage(path); err != nil {
		return err
	}
	file, err := peregrine.ComputeFile(ctx, path, peregrine.Options{Prune: hybrid.Prune(prune), SyncOnly: f.syncOnly, Every: f.everyOne})
	if err != nil {
		return err
	}
	if err := peregrine.Save(file, f.output); err != nil {
		return err
	}
	return file.WriteSummary(a.stdout)
}

func (a *app) scheduleShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show FILE", Short: "Print a schedule", Args: command.OneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := peregrine.Load(args[0])
			if err != nil {
				return err
			}
			if err := f.WriteSummary(a.stdout); err != nil {
				return err
			}
			return f.WriteLines(a.stdout, math.MaxInt)
		},
	}
}
