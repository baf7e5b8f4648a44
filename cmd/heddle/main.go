// Command heddle runs unmodified multithreaded Linux programs on a
// deterministic emulated machine, one at a time (heddle run) or in sweeps
// (heddle experiment).
//
// The guest's output and exit status are heddle's own. Messages of heddle itself go to standard
// error as sentences that begin with "heddle:", and its own failures exit with status 125;
// docs/errors.md lists them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/cmd/heddle/litmus"
	"github.com/heddle-dmt/heddle/cmd/heddle/sweeps"
	"github.com/heddle-dmt/heddle/cmd/heddle/traces"
	"github.com/heddle-dmt/heddle/experiments/sweep"
	"github.com/heddle-dmt/heddle/experiments/windows"
	"github.com/heddle-dmt/heddle/experiments/windows/settings"
	windowsworker "github.com/heddle-dmt/heddle/experiments/windows/worker"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/stdfds"
	"github.com/heddle-dmt/heddle/recorder/region"
)

// exitFailure is the exit status of heddle's own failures, as env(1) and
// timeout(1) use it.
const exitFailure = 125

var (
	errOwnOutput = errs.Define("own-output-lost",
		"standard output cannot be written",
		"The disk is full, or the descriptor is closed or not open for writing.",
		"Make room, or redirect standard output to another file.")
	errDefect = errs.Define("defect",
		"heddle has a defect: {text}",
		"Something that heddle relies on does not hold. This is a mistake in heddle, whatever the input was.",
		"Report the sentence with the lines below it, the command line and the program.")
)

func main() {
	// With one processor, on a host or in a cpuset with one core, Go's monitor
	// takes it away from each call to C that lasts longer than 20 us, which is
	// every quantum: that costs 15 % of the speed. An idle second one prevents it.
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2)
	}
	delayCollections()
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, closed: stdfds.Closed()}
	os.Exit(a.main(os.Args[1:]))
}

// ballast has no content, and takes no memory of the host's since nothing touches it. Go's collector lets the heap double,
// so that with the ballast it begins at 32 MiB: a collection of a smaller heap takes more time than it is worth.
var ballast []byte

// delayCollections has the collector begin at 32 MiB and not at 4, unless the user has set GOGC. The ballast, which
// would itself begin a collection, comes with the first one.
func delayCollections() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(800)
	type mark struct{ _ [16]byte }
	runtime.AddCleanup(&mark{}, func(percent int) {
		debug.SetGCPercent(percent)
		ballast = make([]byte, 16<<20)
	}, usual)
}

// Main runs the command line and returns heddle's exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	return (&app{stdin: stdin, stdout: stdout, stderr: stderr}).main(args)
}

func (a *app) main(args []string) (status int) {
	defer func() {
		if defect := recover(); defect != nil {
			a.say("%v", errDefect.New(defect))
			fmt.Fprintf(a.stderr, "%s", debug.Stack())
			status = exitFailure
		}
	}()
	ctx, stop := a.interruptible()
	defer stop()
	return a.execute(ctx, args)
}

// execute carries out a command line and returns heddle's exit status.
func (a *app) execute(ctx context.Context, args []string) (status int) {
	own := &stdfds.Output{To: a.stdout, Closed: a.closed[1]}
	a.guestStdout, a.stdout = a.stdout, own
	root := a.root(args)
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = own.Err
	}
	if err == nil && a.damaged {
		return exitFailure
	}
	if err == nil {
		return a.status
	}
	if status, ok := interrupted(ctx); ok && errors.Is(err, context.Canceled) {
		a.say("interrupted")
		return status
	}
	if limit := machine.TimeLimit(0); errors.As(err, &limit) {
		a.say("%v", limit)
		return machine.ExitTimeLimit
	}
	for _, err := range parts(err) {
		if own.Err != nil && errors.Is(err, own.Err) {
			err = errOwnOutput.Wrap(command.Reason(err))
		}
		a.say("%v", job.Explained(err))
	}
	return exitFailure
}

// parts are the errors that were joined into one.
func parts(err error) (list []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, err := range joined.Unwrap() {
		list = append(list, parts(err)...)
	}
	return list
}

// app is the common state of the commands: the streams, and the status to exit with.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer // of heddle itself
	guestStdout    io.Writer
	closed         [3]bool // which of the first three descriptors heddle was started without
	status         int
	damaged        bool // a trace that was read is damaged, which was said: the status is exitFailure
	gaveUp         bool // an interruption ended a read or write of the guest's
	cached         cached
	region         *region.Watcher // of the run, nil without one
	windows        *windows.Report // of the run, nil without windows
}

// say prints one sentence of heddle's own. Where a write of the guest's had to be given up,
// standard error may be stuck as well.
func (a *app) say(format string, args ...any) {
	done := make(chan struct{})
	print := func() {
		fmt.Fprintf(a.stderr, "heddle: "+format+"\n", args...)
		close(done)
	}
	if !a.gaveUp {
		print()
		return
	}
	go print()
	select {
	case <-done:
	case <-time.After(writeGrace):
	}
}

// output is what commands of other packages use of a.
func (a *app) output() command.Output {
	return command.Output{Stdout: a.stdout, Say: a.say, Exit: func(status int) { a.status = status }}
}

// interruption is the cause of a context that a signal cancelled.
type interruption struct{ signal syscall.Signal }

func (i interruption) Error() string { return i.signal.String() }

// endings are the signals that end a command in order: Ctrl-C, an operator, the end of
// the terminal or connection, and the host's limit on processor time.
var endings = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGXCPU}

// interruptible returns a context that the first of endings cancels. A second one ends
// the process at once. A signal that heddle was started to ignore, as by nohup(1), stays
// ignored.
func (a *app) interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	for _, s := range endings {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	go func() {
		if s, ok := <-signals; ok {
			signal.Stop(signals)
			cancel(interruption{s.(syscall.Signal)})
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// interrupted returns the exit status after a signal, 128+n, if there was one.
func interrupted(ctx context.Context) (status int, ok bool) {
	var i interruption
	if errors.As(context.Cause(ctx), &i) {
		return 128 + int(i.signal), true
	}
	return 0, false
}

// root makes the command with those commands that its arguments can name.
func (a *app) root(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "heddle",
		Short: "Run unmodified multithreaded Linux programs deterministically",
		Long: `heddle runs unmodified multithreaded x86-64 Linux programs on an emulated
multicore machine. A run is a pure function of the program, the files it reads,
the configuration and the seed: repeat all four and you get the same run, bit for
bit; another seed gives another interleaving.`,
		SilenceUsage:       true,
		SilenceErrors:      true,
		Version:            versionLine(),
		DisableSuggestions: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		problem := cli.ExplainFlagError(c, err)
		if problem.Flag != "" {
			return command.ErrFlag.New(problem.Flag, problem.Found, problem.Allowed)
		}
		return command.ErrUsage.New(problem.Text, c.CommandPath())
	})
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { cli.WriteHelp(c.OutOrStdout(), c) })
	root.SetUsageFunc(func(c *cobra.Command) error {
		cli.WriteUsage(c.OutOrStderr(), c)
		return nil
	})
	root.AddCommand(a.commands(args)...)
	// An unknown command is an error that cobra makes itself.
	root.Args = command.OfCommands
	root.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	root.SetHelpCommand(helpCommand())
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args = command.OfCommands
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
	return root
}

// commands makes the command that the first argument names, or all if it names none or that of the man
// pages, which are about all. Each command defines its flags, which takes time.
func (a *app) commands(args []string) (all []*cobra.Command) {
	for _, c := range []struct {
		name    string
		command func() *cobra.Command
	}{
		{"run", a.runCommand},
		{"record", a.recordCommand},
		{"replay", a.replayCommand},
		{"find", a.findCommand},
		{"explore", a.exploreCommand},
		{"minimize", a.minimizeCommand},
		{"reproduce", a.reproduceCommand},
		{"frost", a.frostCommand},
		{"trace", func() *cobra.Command { return traces.Command(a.output()) }},
		{"experiment", a.experimentCommand},
		{"schedule", a.scheduleCommand},
		{"cache", a.cacheCommand},
		{"litmus", func() *cobra.Command { return litmus.Command(a.output()) }},
		{"races", a.racesCommand},
		{"syscalls", a.syscallsCommand},
		{"calibrate", a.calibrateCommand},
		{"papers", a.papersCommand},
		{"doctor", a.doctorCommand},
		{"version", a.versionCommand},
		{"man", a.manCommand},
		{job.WorkerCommand, func() *cobra.Command { return a.workerCommand(job.WorkerCommand, job.ServeWorker) }},
		{settings.Command, func() *cobra.Command { return a.workerCommand(settings.Command, windowsworker.Serve) }},
		{sweep.ShortenCommand, func() *cobra.Command { return a.workerCommand(sweep.ShortenCommand, sweep.ServeShortening) }},
	} {
		if len(args) > 0 && args[0] == c.name && c.name != "man" {
			return []*cobra.Command{c.command()}
		}
		all = append(all, c.command())
	}
	return all
}

// helpCommand prints the help of a command.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND...]",
		Short: "Print the help of a command",
		RunE: func(c *cobra.Command, args []string) error {
			found := c.Root()
			for _, name := range args {
				i := slices.IndexFunc(found.Commands(), func(sub *cobra.Command) bool { return sub.Name() == name || sub.HasAlias(name) })
				if i < 0 {
					return command.ErrUsage.New(cli.UnknownCommand(found, name), found.CommandPath())
				}
				found = found.Commands()[i]
			}
			return found.Help()
		},
	}
}

// someFiles checks that there is an argument.
func someFiles(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return command.ErrUsage.New("no file is named", c.CommandPath())
	}
	return nil
}

func (a *app) experimentCommand() *cobra.Command {
	p := sweeps.Program{
		Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr, Version: version(), Say: a.say,
		SetStatus: func(status int) { a.status = status }, Interrupted: interrupted,
		OfCommands: command.OfCommands, OneFile: command.OneFile, Files: someFiles,
	}
	return p.Command()
}
