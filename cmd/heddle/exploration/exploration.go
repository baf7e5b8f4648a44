// Package exploration is the command `heddle explore` but for the flags that it has in common with others.
package exploration

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/experiments/explore"
	"github.com/heddle-dmt/heddle/experiments/find"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
)

// Exit statuses of the command.
const (
	exitVerified   = 0
	exitFound      = 1
	exitUnfinished = 3
)

var (
	errValue = errs.Define("explore-flag-value",
		"--{flag} is {value}; it must be {allowed}",
		"The flag does not have such a value.",
		"Give it one of those that the sentence names.")
	errRead = errs.Define("explore-expect",
		"cannot read {file}",
		"The file with the right output does not exist or cannot be read.",
		"Name another file with --expect.")
	errWrite = errs.Define("explore-output",
		"cannot write {file}",
		"The file or its folder cannot be written.",
		"Name another file with -o.")
)

// Flags are those of the command.
type Flags struct {
	options explore.Options
	shared  find.Options
	model   string
	expect  string
	quiet   bool
	report  *explore.Report
	isSet   func(flag string) bool
	// Bounds of executions; noBound: all are explored.
	preemptions, delays int
}

const noBound = -1

// New makes the command, which does nothing yet, and its flags.
func New() (*cobra.Command, *Flags) {
	f := &Flags{}
	c := &cobra.Command{
		Use:   "explore [flags] [--] PROGRAM [ARGUMENTS]",
		Short: "Execute a small program under every order of its threads",
		Long: `Execute a small program under every order of its threads, up to equivalence: of the
executions that order the same conflicting accesses to memory and system calls in the
same way one is carried out (dynamic partial-order reduction). Either no execution
fails, and the program is verified for its arguments and input, or the first that fails
is recorded, and reported when the replay of the recording has failed in the same way.
heddle find says what a failure is.

The number of executions grows exponentially with that of conflicting accesses. With
--state the exploration can be interrupted, even killed, and continued. With --preemptions
or --delays only the executions with few of them are explored, and the program is verified
for these.

The exit status is 1 if a failure was found, 0 if the program is verified, and 3 if the
exploration ended before either; after Ctrl-C it is that of the signal.`,
		PreRunE: func(*cobra.Command, []string) error { return f.check() },
		Example: `  heddle explore -- ./program
  heddle explore --model tso --state program.state -- ./program
  heddle replay failure.trace`,
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false)
	f.isSet = flags.Changed
	cli.GroupNew(flags, "Exploration", func() { f.define(flags) })
	return c, f
}

func (f *Flags) define(flags *pflag.FlagSet) {
	flags.StringVarP(&f.shared.Trace, "output", "o", find.DefaultTrace, "write the trace of the failing run to `FILE`")
	flags.StringVar(&f.model, "model", memmodel.SC.String(), "memory `MODEL`: "+strings.Join(memmodel.Names(), ", "))
	flags.IntVar(&f.preemptions, "preemptions", noBound, "explore the executions with at most `N` preemptions, those with fewer first; -1: explore all")
	flags.IntVar(&f.delays, "delays", noBound, "explore the executions with at most `N` delays, those with fewer first; -1: explore all")
	flags.IntVar(&f.options.Workers, "workers", runtime.NumCPU(), "carry out `N` executions at the same time; no result depends on it")
	flags.StringVar(&f.options.State, "state", "", "continue from `FILE` if it exists, and write the state of the exploration there")
	flags.IntVar(&f.options.Executions, "executions", 0, "end the exploration after `N` executions; 0: no limit")
	flags.DurationVar(&f.options.Time, "time", 0, "end the exploration after `DURATION`, like 90s or 2h; where it ends depends on the host's speed; 0: no limit")
	flags.StringVar(&f.expect, "expect", "", "`FILE` with the right output: a run that prints another one fails")
	f.shared.AddNativeFlag(flags)
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "leave out progress on standard error")
}

// check completes the flags and finds wrong ones.
func (f *Flags) check() error {
	o := &f.options
	switch {
	case o.Executions < 0:
		return errValue.New("executions", o.Executions, "a whole number from 1 on, or 0 for no limit")
	case o.Time < 0:
		return errValue.New("time", o.Time, "a duration such as 90s, or 0 for no limit")
	}
	if err := f.checkBounds(); err != nil {
		return err
	}
	known := false
	if o.Model, known = memmodel.Parse(f.model); !known {
		return errValue.New("model", fmt.Sprintf("%q", f.model), strings.Join(memmodel.Names(), ", "))
	}
	if f.expect != "" {
		if f.shared.Native {
			return errValue.New("native", true, "left out where --expect is given")
		}
		var err error
		if f.shared.Expect, err = os.ReadFile(f.expect); err != nil {
			return errRead.Wrap(err, f.expect)
		}
	}
	if f.shared.Trace != "" {
		if err := outfile.Check(f.shared.Trace); err != nil {
			return errWrite.Wrap(err, f.shared.Trace)
		}
	}
	return nil
}

// checkBounds completes the bound of executions.
func (f *Flags) checkBounds() error {
	o := &f.options
	switch {
	case o.Workers < 1:
		return errValue.New("workers", o.Workers, "a whole number from 1 on")
	case f.preemptions < noBound:
		return errValue.New("preemptions", f.preemptions, "a whole number from 0 on, or -1 for no bound")
	case f.delays < noBound:
		return errValue.New("delays", f.delays, "a whole number from 0 on, or -1 for no bound")
	case f.preemptions == noBound && f.delays == noBound:
		return nil
	case f.preemptions != noBound && f.delays != noBound:
		return errValue.New("delays", f.delays, "left out where --preemptions is given")
	case o.State != "":
		return errValue.New("state", o.State, "left out where executions are bounded: such an exploration cannot be continued")
	}
	o.Bound = &explore.Bound{Delays: f.delays != noBound, Most: max(f.preemptions, f.delays)}
	return nil
}

// Run carries out the exploration and writes the report. Print is called with lines of progress, and end
// after the last one.
func (f *Flags) Run(ctx context.Context, c machine.Config, stdin io.Reader, stdout io.Writer, print func(string), end func()) error {
	if !f.quiet {
		f.options.Progress = func(executions, instructions int) {
			print(fmt.Sprintf("executions: %d; events at %d instructions", executions, instructions))
		}
	}
	f.options.AddCores = !f.isSet("cores") && c.Cores == machine.DefaultConfig().Cores
	c.Memory = storebuffer.Options{}
	base, err := find.NewBase(c, stdin, f.shared)
	if err != nil {
		return err
	}
	report, err := explore.Explore(ctx, base, f.options)
	end()
	if err != nil {
		return err
	}
	f.report = report
	return report.Write(stdout, f.shared.Trace)
}

// Status returns the exit status after Run without an error. Signal is that of a command that a signal has
// interrupted.
func (f *Flags) Status(signal int, interrupted bool) int {
	switch {
	case f.report == nil || f.report.Complete:
		return exitVerified
	case f.report.Found:
		return exitFound
	case interrupted:
		return signal
	}
	return exitUnfinished
}
