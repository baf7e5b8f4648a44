package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/experiments/explore"
	"github.com/heddle-dmt/heddle/experiments/find"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/memmodel"
)

// exploreFlags are those of `heddle explore`.
type exploreFlags struct {
	runFlags
	options explore.Options
	model   string
	expect  string
}

func (a *app) exploreCommand() *cobra.Command {
	var f exploreFlags
	c := &cobra.Command{
		Use:   "explore [flags] [--] PROGRAM [ARGUMENTS]",
		Short: "Execute a small program under every order of its threads",
		Long: `Execute a small program under every order of its threads, up to equivalence: of the
executions that order the same conflicting accesses to memory and system calls in the
same way one is carried out (dynamic partial-order reduction). Either none fails, and
the program is verified for its arguments and input, or the first that fails is
recorded, and reported when the replay of the recording has failed in the same way.
heddle find says what a failure is.

The number of executions grows exponentially with that of conflicting accesses. With
--state the exploration can be interrupted, even killed, and continued.

The exit status is 1 if a failure was found, 0 if the program is verified, and 3 if the
exploration ended before either; after Ctrl-C it is that of the signal.`,
		Example: `  heddle explore -- ./program
  heddle explore --model tso --state program.state -- ./program
  heddle replay failure.trace`,
		RunE: func(c *cobra.Command, args []string) error { return a.explore(c.Context(), c.Flags(), f, args) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false)
	cli.GroupNew(flags, "Exploration", func() { f.define(flags) })
	addMachineFlags(flags, groupMachine, groupFiles, groupLimits)
	addInputFlags(flags, &f.runFlags)
	return c
}

func (f *exploreFlags) define(flags *pflag.FlagSet) {
	flags.StringVarP(&f.options.Trace, "output", "o", find.DefaultTrace, "write the trace of the failing run to `FILE`")
	flags.StringVar(&f.model, "model", memmodel.SC.String(), "memory `MODEL`: "+strings.Join(memmodel.Names(), ", "))
	flags.StringVar(&f.options.State, "state", "", "continue from `FILE` if it exists, and write the state of the exploration there")
	flags.IntVar(&f.options.Executions, "executions", 0, "end the exploration after `N` executions; 0: no limit")
	flags.DurationVar(&f.options.Time, "time", 0, "end the exploration after `DURATION`, like 90s or 2h; where it ends depends on the host's speed; 0: no limit")
	flags.StringVar(&f.expect, "expect", "", "`FILE` with the right output: a run that prints another one fails")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "leave out progress on standard error")
}

// check completes the options and finds wrong ones.
func (f *exploreFlags) check() error {
	o := &f.options
	switch {
	case o.Executions < 0:
		return errFlag.New("executions", o.Executions, "a whole number from 1 on; 0 means no limit")
	case o.Time < 0:
		return errFlag.New("time", o.Time, "a duration that is not negative, such as 90s; 0 means no limit")
	}
	known := false
	if o.Model, known = memmodel.Parse(f.model); !known {
		return errFlag.New("model", quote(f.model), strings.Join(memmodel.Names(), ", "))
	}
	if f.expect != "" {
		var err error
		if o.Expect, err = os.ReadFile(f.expect); err != nil {
			return errReadFile.Wrap(reason(err), f.expect)
		}
	}
	return checkWritable(o.Trace)
}

// explore carries out `heddle explore`.
func (a *app) explore(ctx context.Context, flags *pflag.FlagSet, f exploreFlags, args []string) error {
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
		f.options.Progress = func(executions, instructions int) {
			progress.print(fmt.Sprintf("executions: %d; events at %d instructions", executions, instructions))
		}
	}
	report, err := explore.Explore(ctx, j.Config(), stdin.Reader, f.options)
	progress.end()
	if err != nil {
		return err
	}
	status, stopped := interrupted(ctx)
	switch {
	case report.Found:
		a.status = exitFound
	case report.Complete:
	case stopped:
		a.status = status
		a.say("interrupted")
	default:
		a.status = exitUnfinished
	}
	return report.Write(a.stdout)
}

// exitUnfinished is the exit status of `heddle explore` when its end is a limit.
const exitUnfinished = 3
