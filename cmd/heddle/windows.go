package main

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/experiments/windows"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched/dmt"
	schedwindows "github.com/heddle-dmt/heddle/sched/windows"
)

var (
	errWindowsAlone = errs.Define("windows-and-other",
		"--windows cannot be used with {option}",
		"In a run with windows the threads of the server are ordered by the windows' schedules, in one run on this process; the option orders threads as well, or executes the run more than once.",
		"Leave one of the two out.")
	errNeedsWindows = errs.Define("windows-without-tasks",
		"--{given} needs --{missing}",
		"Windows need a size, --windows, and the rules of the server's tasks, --tasks.",
		"Give both, as in heddle run --windows 8 --tasks apache2 -- sh script.sh.")
)

// windowFlags are the flags of runs in windows.
type windowFlags struct {
	size, tasks, schedules string
	bubble                 uint64
	syncOnly, hybrid       bool
	noStates, conditions   bool
	reuse                  string
}

const windowSizes = "SIZE or SIZE,TIMEOUT: a whole number of requests from 1 to 1000000, and a virtual time such as 500us"

// addWindowFlags defines the flags.
func addWindowFlags(flags *pflag.FlagSet, f *windowFlags) {
	flags.StringVar(&f.size, "windows", "", "admit requests to the server of --tasks in windows of `SIZE[,TIMEOUT]`: that many requests, or those that are there after a virtual time (default timeout 10ms)")
	flags.StringVar(&f.tasks, "tasks", "", "the server and its requests: `RULES`, a YAML file or one of "+strings.Join(windows.BuiltinRules(), ", "))
	flags.StringVar(&f.schedules, "window-schedules", "", "have windows follow the schedules of `FILE` where they fit, and add those of others")
	flags.Uint64Var(&f.bubble, "time-bubbles", 0, "admit requests also within a window, each time the server has done `N` operations, as CRANE does (0: only at the begin)")
	flags.BoolVar(&f.syncOnly, "window-sync-only", false, "leave the order of atomic instructions out of the windows' schedules")
	flags.BoolVar(&f.hybrid, "window-hybrid", false, "look for data races in the windows, and order them by constraints of the windows' schedules, which then are hybrid ones")
	flags.BoolVar(&f.conditions, "window-preconditions", false, "compute which bytes of a window's requests its schedule depends on, so that windows with others follow it")
	flags.StringVar(&f.reuse, "window-reuse", string(schedwindows.Online), "use of stored schedules: online, shadow (they are looked for and not followed) or off")
	flags.BoolVar(&f.noStates, "no-window-states", false, "leave out the digests of the server's state at the end of windows")
	cli.Group(flags, groupScheduling, "windows", "tasks", "window-schedules", "time-bubbles", "window-sync-only", "window-hybrid", "window-preconditions", "window-reuse", "no-window-states")
}

func (f *windowFlags) isGiven() bool { return f.size != "" }

// parameters reads the flags.
func (f *windowFlags) parameters() (p windows.Parameters, err error) {
	size, timeout, timed := strings.Cut(f.size, ",")
	if p.Size, err = strconv.Atoi(size); err != nil || p.Size < 1 || p.Size > 1_000_000 {
		return p, command.ErrFlag.New("windows", quote(f.size), windowSizes)
	}
	if timed {
		if p.Timeout, err = time.ParseDuration(timeout); err != nil || p.Timeout < time.Microsecond || p.Timeout > time.Hour {
			return p, command.ErrFlag.New("windows", quote(f.size), windowSizes)
		}
	}
	p.Bubble, p.Atomics, p.Hybrid, p.NoStates = f.bubble, !f.syncOnly, f.hybrid, f.noStates
	p.Preconditions, p.Reuse = f.conditions, schedwindows.Reuse(f.reuse)
	if !slices.Contains([]string{"online", "shadow", "off"}, f.reuse) {
		return p, command.ErrFlag.New("window-reuse", quote(f.reuse), "online, shadow, off")
	}
	p.Rules, err = windows.LoadRules(f.tasks)
	return p, err
}

// checkWindows refuses windows with options that do not allow them.
func (f *runFlags) checkWindows(options job.Options) error {
	w := &f.windows
	for _, x := range []struct {
		name  string
		given bool
	}{
		{"tasks", w.tasks != ""},
		{"window-schedules", w.schedules != ""},
		{"time-bubbles", w.bubble > 0},
		{"window-sync-only", w.syncOnly},
		{"window-hybrid", w.hybrid},
		{"window-preconditions", w.conditions},
		{"window-reuse", w.reuse != string(schedwindows.Online)},
		{"no-window-states", w.noStates},
	} {
		if x.given && !w.isGiven() {
			return errNeedsWindows.New(x.name, "windows")
		}
	}
	if !w.isGiven() {
		return nil
	}
	if w.tasks == "" {
		return errNeedsWindows.New("windows", "tasks")
	}
	for _, x := range []struct {
		name  string
		given bool
	}{
		{"--verify", f.verify > 0},
		{"--gdb", f.gdb != ""},
		{"--cache", f.cache.dir != ""},
		{"--enforce", f.schedule.file != ""},
		{"--region", options.Region != ""},
		{"--sched " + options.Sched.Policy, dmt.OrdersOperations(options.Sched.Policy)},
	} {
		if x.given {
			return errWindowsAlone.New(x.name)
		}
	}
	c := options.Config()
	if err := c.Schedulable(); err != nil {
		return err
	}
	_, err := w.parameters()
	return err
}

// checkRecording refuses windows with recordings that do not allow them.
func (w *windowFlags) checkRecording(rec recordFlags) error {
	if !w.isGiven() {
		return nil
	}
	for _, x := range []struct {
		name  string
		given bool
	}{
		{"--serial", rec.serial},
		{"--from", rec.from != ""},
		{"--to", rec.to != ""},
		{"--memory", (w.hybrid || w.conditions) && (rec.memory != "" || rec.races || rec.all)},
	} {
		if x.given {
			return errWindowsAlone.New(x.name)
		}
	}
	return nil
}

// newWindows makes the windows of a run that is not recorded.
func newWindows(c *machine.Config, p windows.Parameters, store *schedwindows.Store) (*windows.Driver, error) {
	return windows.New(c, p, store), nil
}

// runInWindows runs a configuration in windows, which a function makes.
func (a *app) runInWindows(c machine.Config, f runFlags, options []machine.Option,
	newDriver func(*machine.Config, windows.Parameters, *schedwindows.Store) (*windows.Driver, error),
	run func(machine.Config, []machine.Option) (*machine.Result, error),
) (*machine.Result, error) {
	p, err := f.windows.parameters()
	if err != nil {
		return nil, err
	}
	store, err := windows.LoadStore(f.windows.schedules)
	if err != nil {
		return nil, err
	}
	if f.windows.schedules != "" {
		path, err := filepath.Abs(f.windows.schedules)
		if err != nil {
			return nil, errFolder.Wrap(err)
		}
		c.Hidden = append(slices.Clone(c.Hidden), path)
	}
	d, err := newDriver(&c, p, store)
	if err != nil {
		return nil, err
	}
	result, err := run(c, append(options, d.Options()...))
	if result == nil || err != nil {
		return result, err
	}
	a.windows = d.Report()
	if f.windows.schedules != "" {
		if err := windows.SaveStore(f.windows.schedules, store); err != nil {
			return result, command.ErrWriteFile.Wrap(err, f.windows.schedules)
		}
	}
	return result, nil
}

// sayWindows prints a sentence on the windows.
func (a *app) sayWindows(f runFlags) {
	if a.windows != nil && !f.quiet {
		a.say("%s", a.windows)
	}
}
