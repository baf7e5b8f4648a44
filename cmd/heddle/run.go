package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/experiments/windows"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/recorder/region"
	"github.com/heddle-dmt/heddle/recorder/syncops"
)

var (
	errFolder = errs.Define("current-folder",
		"cannot find the current folder",
		"The folder that heddle was started in was removed or may not be read.",
		"Change to a folder that exists.")
	errVerifyWritable = errs.Define("verify-writable",
		"--verify cannot be used with the writable mount {mount}",
		"Each repetition would start from the files that the one before it has changed, so the runs could not be equal.",
		"Leave out :rw (the guest can write all the same; its changes stay in the overlay and --export keeps them).")
)

// runFlags are the flags of `heddle run` that do not configure the machine.
type runFlags struct {
	config, costs, stdin, summary, eventLog, export string
	syncList                                        string
	gdb                                             string
	strace, quiet                                   bool
	region                                          string
	verify                                          int
	timeLimit                                       time.Duration
	schedule                                        scheduleFlags
	cache                                           cacheFlags
	windows                                         windowFlags
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [flags] [--] PROGRAM [ARGUMENTS]",
		Short: "Run a program on the emulated machine",
		Long: `Run a program on the emulated machine. The program's output and exit status are
heddle's; after death by signal n the status is 128+n. It is 124 when the program
deadlocked or reached --max-instructions, 123 when it reached --time-limit, and 125
when heddle itself failed.

By default the guest sees, read-only, the files that a program needs to start
(the folder that it is installed in, libraries, locales, name look-up and time zone), the current folder,
and files and folders that its arguments name. Files that it writes stay in memory and are discarded at the end, unless
they are written to a :rw mount or kept with --export.`,
		Example: `  heddle run --cores 4 --seed 7 -- pigz -p 4 -k file
  heddle run --sched pct --verify 5 --summary run.json -- ./racy
  heddle run --mount ./data:/data:rw -- sh -c 'sort /data/in > /data/out'`,
		RunE: func(c *cobra.Command, args []string) error { return a.run(c.Context(), c.Flags(), f, args) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false)
	addMachineFlags(flags)
	addRunFlags(flags, &f)
	addScheduleFlags(flags, &f.schedule)
	addCacheFlags(flags, &f.cache)
	addWindowFlags(flags, &f.windows)
	addRegionFlag(flags, &f.region)
	flags.StringVar(&f.syncList, "sync-list", "", "order the operations that the YAML `FILE` lists too (rr-sync, fcfs-sync, kendo)")
	cli.Group(flags, groupScheduling, "sync-list")
	flags.StringVar(&f.gdb, "gdb", "", gdbUsage)
	flags.IntVar(&f.verify, "verify", 0, "repeat the run `N` times with different host parallelism and fail if any digest differs; 0: no repetition")
	cli.Group(flags, groupOutput, "gdb", "verify")
	return c
}

// addRunFlags defines the flags of a run that do not configure the machine.
func addRunFlags(flags *pflag.FlagSet, f *runFlags) {
	addConfigFlags(flags, f)
	addReplayFlags(flags, f)
}

// addConfigFlags defines the flags that name files of a run's configuration and its files.
func addConfigFlags(flags *pflag.FlagSet, f *runFlags) {
	addInputFlags(flags, f)
	flags.StringVar(&f.export, "export", "", "keep the files that the guest left in the overlay in the folder `DIR`")
	cli.Group(flags, groupFiles, "export")
}

// addInputFlags defines the flags that name files of a run's configuration and its standard input.
func addInputFlags(flags *pflag.FlagSet, f *runFlags) {
	flags.StringVar(&f.config, "config", "", "YAML `FILE` with the machine's configuration, which flags override")
	flags.StringVar(&f.costs, "costs", "", "YAML `FILE` with the timing model's costs, as heddle calibrate writes it; overrides those of --config")
	cli.Group(flags, groupMachine, "config", "costs")
	flags.StringVar(&f.stdin, "stdin", "", "`FILE` that is the guest's standard input (default: heddle's own)")
	cli.Group(flags, groupFiles, "stdin")
}

// addReplayFlags defines the flags that runs and replays share.
func addReplayFlags(flags *pflag.FlagSet, f *runFlags) {
	addTimeLimitFlag(flags, &f.timeLimit)
	flags.BoolVar(&f.strace, "strace", false, "print each system call on standard error")
	flags.StringVar(&f.summary, "summary", "", "write a JSON summary of the run to `FILE`")
	flags.StringVar(&f.eventLog, "event-log", "", "write a line for each event that enters the digest to `FILE`")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "leave out remarks on standard error, such as on files left in the overlay")
	cli.Group(flags, groupOutput, "strace", "summary", "event-log", "quiet")
}

// run carries out `heddle run`.
func (a *app) run(ctx context.Context, flags *pflag.FlagSet, f runFlags, args []string) error {
	if err := checkTimeLimit(f.timeLimit); err != nil {
		return err
	}
	options, err := machineOptions(flags, f.config, f.costs)
	if err == nil && f.syncList != "" {
		options.Operations, err = syncops.LoadCustom(f.syncList)
	}
	if err != nil {
		return err
	}
	j, err := a.newJob(options, f, args)
	if err == nil {
		err = cmp.Or(f.cache.check(flags), f.schedule.check(flags, f.cache.dir != ""))
	}
	if err != nil {
		return err
	}
	if err := cmp.Or(f.checkPublish(options), f.checkWindows(options)); err != nil {
		return err
	}
	a.sayIgnored(flags, f, options)
	if f.verify < 0 {
		return command.ErrFlag.New("verify", f.verify, "a whole number, not negative")
	}
	if f.verify > 0 && f.gdb != "" {
		return errGDBAlone.New("--verify")
	}
	if f.gdb != "" && f.timeLimit > 0 {
		return errGDBAlone.New("--time-limit")
	}
	if f.verify > 0 {
		return a.verify(ctx, flags, f, j)
	}
	limited, cancel := machine.WithTimeLimit(ctx, f.timeLimit)
	defer cancel()
	stdin, err := a.openStdin(limited, j)
	if err != nil {
		return err
	}
	defer stdin.Close()
	events, err := newLog(f.eventLog)
	if err != nil {
		return err
	}
	defer events.discard()
	j.Hidden = append(j.Hidden, events.names()...)
	result, err := a.runJob(ctx, limited, j, f, stdin.Reader, events.writer())
	if result != nil {
		err = errors.Join(events.finish(), err)
	}
	if err != nil {
		return err
	}
	return a.finish(ctx, flags, f, j, result)
}

// addTimeLimitFlag defines the flag of commands that run programs.
func addTimeLimitFlag(flags *pflag.FlagSet, limit *time.Duration) {
	flags.DurationVar(limit, "time-limit", 0, "end a run that takes the host longer than `DURATION`, like 90s or 2h, with status 123; where it ends depends on the host's speed; 0: no limit")
	cli.Group(flags, groupLimits, "time-limit")
}

func checkTimeLimit(limit time.Duration) error {
	if limit < 0 {
		return command.ErrFlag.New("time-limit", limit, "a duration that is not negative, such as 90s; 0 means no limit")
	}
	return nil
}

// noteGivenUp corrects how a run ended in which a read or write had to be given up: the
// guest saw it fail, and may have ended because of that.
func (a *app) noteGivenUp(limited context.Context, result *machine.Result) {
	if !a.gaveUp || result == nil {
		return
	}
	result.Outcome = machine.OutcomeInterrupted
	if limit, reached := machine.ReachedTimeLimit(limited); reached {
		result.Outcome, result.ExitCode, result.Message = machine.OutcomeTimeLimit, machine.ExitTimeLimit, limit.Error()+" while the program waited for its input or output"
	}
}

// ended reports whether a run has ended in a way that does not depend on the host.
func ended(result *machine.Result) bool {
	return result.Outcome != machine.OutcomeInterrupted && result.Outcome != machine.OutcomeTimeLimit
}

// open is the job that flags and arguments are for, and its standard input.
func (a *app) open(ctx context.Context, flags *pflag.FlagSet, f runFlags, args []string) (job.Job, job.Stdin, error) {
	options, err := machineOptions(flags, f.config, f.costs)
	if err != nil {
		return job.Job{}, job.Stdin{}, err
	}
	j, err := a.newJob(options, f, args)
	if err != nil {
		return job.Job{}, job.Stdin{}, err
	}
	if err := f.checkPublish(options); err != nil {
		return job.Job{}, job.Stdin{}, err
	}
	a.sayIgnored(flags, f, options)
	stdin, err := a.openStdin(ctx, j)
	return j, stdin, err
}

// newJob gives a run the place that it starts in, the current folder or the top of
// another root, and the descriptors that heddle has.
func (a *app) newJob(options job.Options, f runFlags, args []string) (job.Job, error) {
	here, err := os.Getwd()
	if err != nil {
		return job.Job{}, errFolder.Wrap(err)
	}
	options.Resolve(here)
	if err := a.watchRegion(&options, f); err != nil {
		return job.Job{}, err
	}
	if options.Dir == "" && options.RootFS == "" {
		options.Dir = here
	} else if options.Dir == "" {
		options.Dir = "/"
	}
	if len(args) > 0 {
		args = append([]string{options.OnHostPath(args[0])}, args[1:]...)
	}
	j := job.Job{
		Options: options, Args: args, Stdin: inFolder(here, f.stdin), ExportDir: inFolder(here, f.export),
	}
	j.Closed = a.closed
	j.Closed[0] = a.closed[0] && j.Stdin == ""
	for _, path := range []string{f.summary, f.eventLog} {
		if path == "" {
			continue
		}
		if err := checkWritable(path); err != nil {
			return job.Job{}, err
		}
		j.Hidden = append(j.Hidden, inFolder(here, path))
	}
	return j, nil
}

// inFolder makes a relative path absolute; an empty one stays empty.
func inFolder(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// runJob runs a job in this process on heddle's own streams. The run ends when limited
// does, and an analysis of it when ctx does.
func (a *app) runJob(ctx, limited context.Context, j job.Job, f runFlags, stdin io.Reader, events io.Writer) (*machine.Result, error) {
	c := j.Config()
	c.Stdin, c.EventLog = stdin, events
	a.setOutputs(limited, &c)
	if f.strace {
		c.Strace = a.stderr
	}
	plan, err := f.schedule.apply(&c)
	if err != nil {
		return nil, err
	}
	options := []machine.Option{machine.WithPlan(plan)}
	if f.summary == "" {
		options = append(options, machine.WithoutHashes())
	}
	if f.windows.isGiven() {
		return a.runInWindows(c, f, options, newWindows, func(c machine.Config, options []machine.Option) (*machine.Result, error) {
			result, err := a.carryOut(limited, c, "", append(options, a.withClients())...)
			a.noteGivenUp(limited, result)
			return result, err
		})
	}
	var result *machine.Result
	if f.cache.dir != "" {
		result, err = a.carryOutCached(ctx, limited, c, f)
	} else {
		result, err = a.carryOut(limited, c, f.gdb, append(options, a.withClients())...)
	}
	a.noteGivenUp(limited, result)
	return result, err
}

// finish writes the summary, prints the remarks on the run, and sets the status.
func (a *app) finish(ctx context.Context, flags *pflag.FlagSet, f runFlags, j job.Job, result *machine.Result) error {
	if f.summary != "" {
		if err := writeSummary(f.summary, a.summary(result)); err != nil {
			return err
		}
	}
	a.status = result.ExitCode
	if result.InvalidInstruction != "" {
		a.say("%s", result.InvalidInstruction)
	}
	if s := result.MemoryShortage; s != "" && result.ExitCode != 0 && !strings.Contains(result.Message, s) {
		a.say("%s", s)
	}
	if names := unsupportedCalls(result); names != "" && result.ExitCode != 0 && !f.quiet {
		a.say("the program made system calls that the machine answers with ENOSYS: %s; --strace prints where", names)
	}
	if names := hiddenData(result); len(names) > 0 && result.ExitCode != 0 && !f.quiet {
		a.say("the program looked for what the host has and the guest does not see: %s; --mount %[2]s:%[2]s shows it", strings.Join(names, ", "), names[0])
	}
	switch result.Outcome {
	case machine.OutcomeExit:
	case machine.OutcomeInterrupted:
		if status, ok := interrupted(ctx); ok {
			a.status = status
		}
		a.say("interrupted after %d instructions", result.Instructions)
	case machine.OutcomeTimeLimit:
		a.say("%s", result.Message)
	default:
		a.say("%s", result.Message)
		a.say("%s: %s", repeatIntroduction(f, result), repeatCommand(flags, f, j.Options, j.Args))
	}
	if s := result.Schedule; s != nil && !s.Followed && f.schedule.free {
		a.say("the schedule was left: %s", s.Reason)
	}
	a.sayClients(result)
	a.sayWindows(f)
	a.sayRequests(f, result, j.Options.Requests)
	a.sayRegion(f)
	if n := len(result.OverlayFiles); n > 0 && f.export == "" && !f.quiet {
		a.say("files that the program wrote and that were left in the overlay: %d; --export DIR keeps them", n)
	}
	return nil
}

// unsupportedCalls names the system calls that were answered with ENOSYS, in order, but for rseq,
// which the C library tries at the start of each thread and can do without.
func unsupportedCalls(r *machine.Result) string {
	names := slices.Sorted(maps.Keys(r.UnsupportedSyscalls))
	names = slices.DeleteFunc(names, func(name string) bool { return name == "rseq" })
	return strings.Join(names, ", ")
}

// hiddenData lists, up to three, the paths that the program did not find although the host has them, but for those that many
// programs try without need: configuration in /etc and in files whose names begin with a dot.
func hiddenData(r *machine.Result) []string {
	names := slices.DeleteFunc(slices.Clone(r.Unseen), func(name string) bool {
		return strings.HasPrefix(name, "/etc/") || strings.HasPrefix(path.Base(name), ".")
	})
	return names[:min(len(names), 3)]
}

// repeatIntroduction names the inputs that are not in the command: heddle's own standard input,
// which the manifest names "-", and failures of streams.
func repeatIntroduction(f runFlags, result *machine.Result) string {
	isStdin := func(i machine.Input) bool { return i.Path == "-" }
	given := ""
	if f.stdin == "" && slices.ContainsFunc(result.Inputs, isStdin) {
		given = ", given the same standard input"
	}
	if result.Clients != nil {
		given += ", with clients that do the same at the same time"
	}
	for _, fault := range result.Faults {
		given += fmt.Sprintf(", if %s fails after %d bytes with %v", command.DescriptorNames[fault.FD], fault.Bytes, fault.Errno)
	}
	return "the same run again" + given
}

// summary is the content of the summary file: the result of the run, and its use of a cache.
func (a *app) summary(result *machine.Result) any {
	a.cached.Cache = cmp.Or(a.cached.Cache, "off")
	var measured *region.Result
	if a.region != nil {
		measured = a.region.Result()
	}
	return struct {
		*machine.Result
		cached
		Region  *region.Result  `json:"region,omitempty"`
		Windows *windows.Report `json:"windows,omitempty"`
	}{result, a.cached, measured, a.windows}
}

func writeSummary(path string, result any) error {
	text, err := json.MarshalIndent(result, "", "  ")
	if err == nil {
		err = outfile.WriteBytes(path, append(text, '\n'))
	}
	if err != nil {
		return command.ErrWriteFile.Wrap(err, path)
	}
	return nil
}

// log is an optional file of events.
type log struct {
	path   string
	file   *outfile.File
	buffer *bufio.Writer
}

func newLog(path string) (*log, error) {
	if path == "" {
		return &log{}, nil
	}
	file, err := outfile.Create(path)
	if err != nil {
		return nil, command.ErrWriteFile.Wrap(err, path)
	}
	return &log{path: path, file: file, buffer: bufio.NewWriterSize(file, 1<<16)}, nil
}

// writer is nil when nothing is logged.
func (l *log) writer() io.Writer {
	if l.buffer == nil {
		return nil
	}
	return l.buffer
}

// names are the paths that the guest should not see.
func (l *log) names() []string {
	if l.file == nil {
		return nil
	}
	return l.file.Names()
}

// finish completes the log of a run that took place.
func (l *log) finish() error {
	if l.file == nil {
		return nil
	}
	_ = l.buffer.Flush() // Commit reports the failure
	if err := l.file.Commit(); err != nil {
		return command.ErrWriteFile.Wrap(err, l.path)
	}
	return nil
}

// discard gives up the log of a run that did not take place; after finish it does
// nothing.
func (l *log) discard() {
	if l.file != nil {
		l.file.Discard()
	}
}
