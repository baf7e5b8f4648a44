package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/experiments/find"
	"github.com/heddle-dmt/heddle/internal/cli"
)

// exitFound is the exit status of `heddle find` when a schedule fails.
const exitFound = 1

// findFlags are those of `heddle find`.
type findFlags struct {
	runFlags
	options find.Options
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
first run did not have, when a thread ends that holds a mutex, or when its output is
wrong: another one than --expect says, than the program prints on the host (--native),
than all schedules without preemption print, or than all schedules under sc print. The first schedule that fails ends the search.
It is recorded, and reported when the replay of the recording has failed in the same
way; a shorter schedule that fails in this way takes its place.

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
	cli.GroupNew(flags, "Search", func() {
		f.options.AddFlags(flags)
		flags.StringVar(&f.expect, "expect", "", "`FILE` with the right output: a run that prints another one fails")
		flags.BoolVarP(&f.quiet, "quiet", "q", false, "leave out progress on standard error")
	})
	addMachineFlags(flags, groupMachine, groupFiles, groupLimits)
	addInputFlags(flags, &f.runFlags)
	return c
}

// check completes the options and finds wrong ones.
func (f *findFlags) check() error {
	o := &f.options
	if field, found, allowed := o.Check(); field != "" {
		return command.ErrFlag.New(field, found, allowed)
	}
	if f.expect != "" {
		if o.Native {
			return command.ErrFlag.New("native", true, "left out where --expect is given")
		}
		var err error
		if o.Expect, err = os.ReadFile(f.expect); err != nil {
			return command.ErrReadFile.Wrap(command.Reason(err), f.expect)
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
