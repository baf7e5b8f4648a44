package main

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/outfile"
)

// Exit statuses of `heddle frost run` when a race was found; otherwise it is the
// program's own.
const (
	exitDetected = 120
	exitSurvived = 121
	exitFailed   = 122
)

// frostFlags are those of `heddle frost run`.
type frostFlags struct {
	runFlags
	report      string
	perfetto    string
	noHeuristic bool
	progress    bool
	nameRaces   bool
	options     frost.Options
}

func (a *app) frostCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "frost",
		Short: "Detect and survive data races by complementary schedules",
		Args:  command.OfCommands,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.frostRunCommand())
	return c
}

func (a *app) frostRunCommand() *cobra.Command {
	f := frostFlags{options: frost.DefaultOptions()}
	c := &cobra.Command{
		Use:   "run [flags] [--] PROGRAM [ARGUMENTS]",
		Short: "Run a program as three replicas that differ where it has data races",
		Long: `Run a program epoch by epoch as three replicas: one on all cores, and two on one
core each under the same order of synchronization operations and system calls, with
opposite priorities of threads. Where their outcomes differ there is a data race.
Which of them differ decides from which replica the run continues, or that the epoch
is executed again. Output is written when its epoch is committed.

The exit status is the program's if there was no race; 121 if there was and the run
continued in spite of it (survived), or if a failure that is no data race, such as a
deadlock, was avoided by another interleaving (avoided); 120 with --detect-only
(detected), and 122 if the program failed all the same. The report goes to standard error.`,
		Example: `  heddle frost run -- pbzip2 -c -k -p4 file
  heddle frost run --detect-only --sample 0.25 --report report.json -- ./server`,
		RunE: func(c *cobra.Command, args []string) error { return a.frostRun(c.Context(), c.Flags(), &f, args) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false)
	addMachineFlags(flags)
	addFrostFlags(flags, &f)
	return c
}

func addFrostFlags(flags *pflag.FlagSet, f *frostFlags) {
	addConfigFlags(flags, &f.runFlags)
	cli.GroupNew(flags, "Frost", func() { f.defineFrost(flags) })
	cli.GroupNew(flags, groupOutput, func() { f.defineOutput(flags) })
	addTimeLimitFlag(flags, &f.timeLimit)
}

func (f *frostFlags) defineFrost(flags *pflag.FlagSet) {
	o := &f.options
	flags.BoolVar(&o.DetectOnly, "detect-only", false, "only detect races, and survive none; output ends no epoch")
	flags.Float64Var(&o.Sample, "sample", o.Sample, "check this `PART` of the run's time, 0 to 1")
	flags.Float64Var(&o.Epoch, "epoch", o.Epoch, "length of the first epoch in `MS` of virtual time")
	flags.Float64Var(&o.Growth, "growth", o.Growth, "each epoch without a race makes the next `MS` longer, up to a second")
	flags.StringVar(&o.Heuristic, "heuristic", o.Heuristic, "choose priorities by constraints between threads, in this `WAY`: those of the epoch itself (exact), those of the epochs before (greedy), or without (none)")
	flags.BoolVar(&f.noHeuristic, "no-heuristic", false, "the same as --heuristic none")
	flags.BoolVar(&o.CompareReads, "compare-reads", false, "compare also what threads read: slower, and finds races without effect")
	flags.Uint64Var(&o.Hang, "hang", o.Hang, "a replica hangs after `N` instructions without a synchronization operation or system call")
	flags.IntVar(&o.Rollbacks, "rollbacks", o.Rollbacks, "roll an epoch back at most `N` times")
	o.Followers = min(max(1, runtime.NumCPU()), 4)
	flags.IntVar(&o.Followers, "followers", o.Followers, "execute `N` epoch-parallel replicas at the same time; no result depends on it")
	flags.BoolVar(&f.nameRaces, "name-races", false, "execute the first epoch with a race again, under a race detector, and say which instructions race; with --detect-only all epochs from that one on")
}

func (f *frostFlags) defineOutput(flags *pflag.FlagSet) {
	flags.StringVar(&f.report, "report", "", "write the report as JSON to `FILE`")
	flags.StringVar(&f.perfetto, "perfetto", "", "write replicas and epochs as a timeline for ui.perfetto.dev to `FILE`")
	flags.BoolVar(&f.progress, "progress", false, "print the progress of the run on standard error: in one line on a terminal, elsewhere every 100 epochs")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "leave out the report on standard error if there was no race")
}

// frostRun carries out `heddle frost run`.
func (a *app) frostRun(ctx context.Context, flags *pflag.FlagSet, f *frostFlags, args []string) error {
	if f.noHeuristic {
		if flags.Changed("heuristic") {
			return command.ErrUsage.New("--heuristic and --no-heuristic exclude each other", "heddle frost run")
		}
		f.options.Heuristic = frost.None
	}
	if w := f.options.Wrong(); w != nil {
		return command.ErrFlag.New(w.Name, w.Found, w.Allowed)
	}
	if err := checkTimeLimit(f.timeLimit); err != nil {
		return err
	}
	limited, cancel := machine.WithTimeLimit(ctx, f.timeLimit)
	defer cancel()
	j, stdin, err := a.open(limited, flags, f.runFlags, args)
	if err != nil {
		return err
	}
	defer stdin.Close()
	c := j.Config()
	if len(c.Publish) > 0 && f.nameRaces {
		return errPublishAlone.New("--name-races")
	}
	f.options.Bound = a.sayPort
	c.Stdin = stdin.Reader
	a.setOutputs(limited, &c)
	if f.nameRaces {
		clean, err := spool(&c)
		defer clean()
		if err != nil {
			return err
		}
	}
	for _, path := range []string{f.report, f.perfetto} {
		if err := checkWritable(path); err != nil {
			return err
		}
	}
	progress := &liveLine{app: a, terminal: a.onTerminal()}
	if f.progress {
		f.options.Progress = progress.epochs
	}
	report, err := frost.Run(limited, c, f.options)
	progress.end()
	if err != nil {
		return err
	}
	if f.nameRaces && limited.Err() == nil {
		if err := rewind(&c); err != nil {
			return err
		}
		if report.Named, err = frost.NameRaces(ctx, c, report); err != nil {
			return err
		}
	}
	return a.frostReport(limited, f, report)
}

// epochs prints the progress of a run under Frost.
func (l *liveLine) epochs(committed, races int, ms float64) {
	if l.terminal || committed%100 == 0 {
		l.print(fmt.Sprintf("epochs committed: %d, with a race: %d; %.0f ms of virtual time", committed, races, ms))
	}
}

// frostReport writes the report and sets the status.
func (a *app) frostReport(ctx context.Context, f *frostFlags, r *frost.Report) error {
	for _, x := range []struct {
		path  string
		write func(io.Writer) error
	}{{f.report, r.WriteJSON}, {f.perfetto, r.WritePerfetto}} {
		if x.path == "" {
			continue
		}
		if err := outfile.Write(x.path, x.write); err != nil {
			return command.ErrWriteFile.Wrap(err, x.path)
		}
	}
	switch r.Verdict {
	case frost.Detected:
		a.status = exitDetected
	case frost.Survived, frost.Avoided:
		a.status = exitSurvived
	case frost.Failed:
		a.status = exitFailed
	default:
		a.status = r.Result.ExitCode
	}
	if status, ok := interrupted(ctx); ok {
		a.status = status
		a.say("interrupted after the last epoch that was committed")
	}
	if limit, reached := machine.ReachedTimeLimit(ctx); reached && r.Result.Outcome == machine.OutcomeTimeLimit {
		a.status = machine.ExitTimeLimit
		a.say("%v after the last epoch that was committed, which depends on the speed of the host", limit)
	}
	a.sayClients(r.Result)
	if f.quiet && r.Verdict == frost.Clean {
		return nil
	}
	return r.WriteText(prefixed{a})
}

// checkWritable finds out before a run whether a file can be written afterwards, if it
// has a name.
func checkWritable(path string) error {
	if path == "" {
		return nil
	}
	if err := outfile.Check(path); err != nil {
		return command.ErrWriteFile.Wrap(err, path)
	}
	return nil
}

// prefixed writes lines as heddle's own.
type prefixed struct{ app *app }

// Write implements io.Writer.
func (p prefixed) Write(b []byte) (int, error) {
	line := 0
	for i, c := range b {
		if c == '\n' {
			p.app.say("%s", b[line:i])
			line = i + 1
		}
	}
	return len(b), nil
}
