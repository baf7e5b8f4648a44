package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/experiments/tern/cache"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
)

var (
	errNeedsCache = errs.Define("memoize-without-cache",
		"--{flag} is an option of a cache, and no cache is named: --cache DIR is needed",
		"heddle run was called with an option of a cache, but without a cache.",
		"Name a folder with --cache, or leave the option out.")
	errCacheAlone = errs.Define("cache-and-other",
		"--cache cannot be used with {option}",
		"The cache chooses the schedule that a run follows, in this process.",
		"Leave one of the two out.")
	errTemporary = errs.Define("cache-no-place",
		"the folder for temporary files cannot be used",
		"heddle run with a cache of schedules keeps the trace of the run, or its standard input, in the folder for temporary files until it is analysed; the rest of the sentence names the problem.",
		"Set TMPDIR to a folder with room.")
	errPackProgram = errs.Define("pack-program-unreadable",
		"cannot read the program {file}, whose schedules are to be packed",
		"The file named with --program does not exist or may not be read.",
		"Name the program's file, with its folder.")
	errNoPack = errs.Define("pack-without-output",
		"no file is named for the pack: -o FILE is needed",
		"heddle cache pack was called without saying where the schedules go.",
		"Name a file with -o.")
)

// The actions for an input that no schedule admits.
const (
	memoizeOff    = "off"
	memoizeOnline = "online"
	memoizeShadow = "shadow"
)

// cacheFlags are the flags of `heddle run` that have it use a cache of schedules.
type cacheFlags struct {
	dir, memoize string
	variables    []string
	budget       tern.Budget
}

// cached is the use of a cache by a run, for the summary.
type cached struct {
	// Cache is "hit", "miss" or "off".
	Cache string `json:"cache"`
	// Entry is the one that the run followed, or the one that was made of it.
	Entry string `json:"cache_entry,omitempty"`
}

func addCacheFlags(flags *pflag.FlagSet, f *cacheFlags) {
	cli.GroupNew(flags, groupEnforcing, func() { f.define(flags) })
}

func (f *cacheFlags) define(flags *pflag.FlagSet) {
	flags.StringVar(&f.dir, "cache", "", "have the run follow a schedule of the cache in the folder `DIR`, or of the pack with that name, if one admits the input")
	flags.StringVar(&f.memoize, "memoize", memoizeOff, "`ACTION` for an input that no schedule admits: run it (off), "+
		"make a schedule of its run (online), or run it and make a schedule of another run of it (shadow)")
	addMemoizingFlags(flags, f)
}

// addMemoizingFlags adds the flags that say how a schedule is made.
func addMemoizingFlags(flags *pflag.FlagSet, f *cacheFlags) {
	f.budget = tern.DefaultBudget()
	flags.StringSliceVar(&f.variables, "input-variable", nil, "`NAME` of a variable of the environment whose value is an input; others must be unchanged (repeatable)")
	flags.DurationVar(&f.budget.Time, "time", 0, "after `DURATION` on the computation of preconditions use what was found, which depends on the host's speed; 0: no limit")
	flags.Uint64Var(&f.budget.Run, "budget-run", f.budget.Run, "make no schedule of a run of more than `N` instructions")
	flags.Uint64Var(&f.budget.Instructions, "budget-instructions", f.budget.Instructions, "for a run of more than `N` instructions all input must be as recorded")
	flags.IntVar(&f.budget.Terms, "budget-terms", f.budget.Terms, "after `N` terms computed from input, how values depend on the argument or file that most depend on is not followed: it must be as recorded if the schedule depends on such values")
	flags.Uint64Var(&f.budget.Slicing, "budget-slicing", f.budget.Slicing, "if finding the constraints that the schedule depends on takes more than `N` steps, all input must be as recorded")
	flags.IntVar(&f.budget.Operations, "budget-operations", f.budget.Operations, "for more than `N` operations in the constraints that the schedule depends on, the argument or file in most of them must be as recorded")
	flags.IntVar(&f.budget.Questions, "budget-questions", f.budget.Questions, "after `N` questions to Z3 keep redundant preconditions")
}

// memoizingFlags are the flags of addMemoizingFlags.
var memoizingFlags = []string{"input-variable", "time", "budget-run", "budget-instructions", "budget-terms", "budget-slicing", "budget-operations", "budget-questions"}

func (f *cacheFlags) check(flags *pflag.FlagSet) error {
	if f.dir == "" {
		for _, name := range append([]string{"memoize"}, memoizingFlags...) {
			if flags.Changed(name) {
				return errNeedsCache.New(name)
			}
		}
		return nil
	}
	for _, name := range []string{"enforce", "verify", "gdb", "sync-list"} {
		if flags.Changed(name) {
			return errCacheAlone.New("--" + name)
		}
	}
	if f.memoize != memoizeOff && f.memoize != memoizeOnline && f.memoize != memoizeShadow {
		return command.ErrFlag.New("memoize", quote(f.memoize), "off, online, shadow")
	}
	return f.checkMemoizing()
}

// checkMemoizing refuses names that no variable has, and negative budgets.
func (f *cacheFlags) checkMemoizing() error {
	if f.budget.Time < 0 {
		return command.ErrFlag.New("time", f.budget.Time, "a duration that is not negative, such as 90s; 0 means no limit")
	}
	for i, n := range []int{f.budget.Terms, f.budget.Operations, f.budget.Questions} {
		if n < 0 {
			return command.ErrFlag.New([]string{"budget-terms", "budget-operations", "budget-questions"}[i], n, "a whole number, not negative; 0 means no limit")
		}
	}
	for _, name := range f.variables {
		if name == "" || strings.Contains(name, "=") {
			return command.ErrFlag.New("input-variable", quote(name), "names of variables")
		}
	}
	return nil
}

// makeSchedule makes the schedule of a recorded run, with progress on standard error, and adds it to a cache.
func (a *app) makeSchedule(ctx context.Context, trace string, f *cacheFlags, store *cache.Cache) (*tern.Schedule, cache.AddResult, error) {
	progress := &liveLine{app: a, terminal: a.onTerminal()}
	o := tern.Options{Variables: f.variables, Budget: f.budget, Progress: cli.Seldom(progress.print)}
	made, err := tern.Make(ctx, trace, o)
	progress.end()
	if err != nil {
		return nil, cache.AddResult{}, err
	}
	if text := made.BudgetText(); text != "" {
		a.say("%s", text)
	}
	added, err := store.Add(made.File)
	return made, added, err
}

// carryOutCached is carryOut with a cache.
func (a *app) carryOutCached(ctx, limited context.Context, c machine.Config, f runFlags) (*machine.Result, error) {
	clean, err := spool(&c)
	defer clean()
	if err != nil {
		return nil, err
	}
	store, err := openCache(&f.cache)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	entry, damaged, err := tern.Lookup(&c, store)
	if err != nil {
		return nil, err
	}
	for _, d := range damaged {
		a.say("%v", d)
	}
	if entry != nil {
		return a.reuse(limited, c, f, store, entry)
	}
	a.cached.Cache = "miss"
	if f.cache.memoize == memoizeOff {
		return a.carryOut(limited, c, "")
	}
	return a.memoize(ctx, limited, c, f, store)
}

func openCache(f *cacheFlags) (*cache.Cache, error) {
	if f.memoize == memoizeOff {
		return cache.OpenExisting(f.dir)
	}
	return cache.Open(f.dir)
}

// reuse has the run follow a schedule.
func (a *app) reuse(ctx context.Context, c machine.Config, f runFlags, store *cache.Cache, e *cache.Entry) (*machine.Result, error) {
	a.cached = cached{"hit", e.Short()}
	tern.Enforce(&c, e.File, f.schedule.options())
	result, err := a.carryOut(ctx, c, "")
	if err != nil || !ended(result) {
		return result, err
	}
	evicted, err := store.RecordTry(e.Name, result.Schedule.Followed)
	if evicted {
		a.say("entry %s was removed from the cache: most runs that it admits do not follow it", e.Short())
	}
	return result, err
}

// memoize carries out a run that no schedule admits, and makes one of it. A schedule
// that cannot be made is not the run's failure.
func (a *app) memoize(ctx, limited context.Context, c machine.Config, f runFlags, store *cache.Cache) (*machine.Result, error) {
	file, err := os.CreateTemp("", "heddle-memoize-")
	if err != nil {
		return nil, errTemporary.Wrap(command.Reason(err))
	}
	defer os.Remove(file.Name())
	defer file.Close()
	c.Hidden = append(c.Hidden, file.Name())
	var result *machine.Result
	if f.cache.memoize == memoizeOnline {
		result, err = tern.Record(limited, c, file)
	} else if result, err = a.carryOut(limited, c, ""); err == nil && ended(result) {
		c.Stdout, c.Stderr, c.Strace, c.EventLog = io.Discard, io.Discard, nil, nil
		tern.MakeReadOnly(&c)
		err = rewind(&c)
		if err == nil {
			_, err = tern.Record(ctx, c, file)
		}
	}
	if err != nil || !ended(result) {
		return result, err
	}
	_, added, err := a.makeSchedule(ctx, file.Name(), &f.cache, store)
	if err == nil {
		a.cached.Entry = added.Name[:12]
	}
	if _, stopped := interrupted(ctx); stopped && err != nil {
		a.say("interrupted: no schedule of this run is kept")
	} else if err != nil {
		a.say("%v", err)
	}
	return result, nil
}

// spool makes standard input a regular file: its content is read before the run.
func spool(c *machine.Config) (clean func(), err error) {
	if c.Stdin == nil || isRegular(c.Stdin) || vfs.IsNull(c.Stdin) {
		return func() {}, nil
	}
	file, err := os.CreateTemp("", "heddle-stdin-")
	if err != nil {
		return func() {}, errTemporary.Wrap(command.Reason(err))
	}
	clean = func() {
		_ = file.Close() // it is not needed any more
		_ = os.Remove(file.Name())
	}
	in := &failingReader{from: c.Stdin}
	if _, err := io.Copy(file, in); in.err != nil {
		return clean, errOwnStdin.Wrap(command.Reason(in.err))
	} else if err != nil {
		return clean, errTemporary.Wrap(command.Reason(err))
	}
	c.Stdin, c.Hidden = file, append(c.Hidden, file.Name())
	return clean, rewind(c)
}

// rewind goes back to the beginning of standard input.
func rewind(c *machine.Config) error {
	if s, ok := c.Stdin.(io.Seeker); ok {
		if _, err := s.Seek(0, io.SeekStart); err != nil {
			return errTemporary.Wrap(err)
		}
	}
	return nil
}

func (a *app) cacheCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "cache",
		Short: "Schedules and the inputs that may follow them",
		Args:  command.OfCommands,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	list := &cobra.Command{
		Use: "ls DIR", Short: "List the entries of a cache", Args: files(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.cacheList(args[0]) },
	}
	show := &cobra.Command{
		Use: "show DIR ENTRY", Short: "Print an entry: its preconditions and its schedule", Args: files(2),
	}
	full := show.Flags().Bool("full", false, "all terms and operations, not a page of them")
	show.RunE = func(_ *cobra.Command, args []string) error {
		return a.withEntry(args[0], args[1], func(_ *cache.Cache, e *cache.Entry) error { return e.WriteText(a.stdout, *full) })
	}
	remove := &cobra.Command{
		Use: "rm DIR ENTRY", Short: "Remove an entry", Args: files(2),
		RunE: func(_ *cobra.Command, args []string) error { return a.withEntry(args[0], args[1], removeEntry) },
	}
	unpack := &cobra.Command{
		Use: "unpack DIR PACK", Short: "Add the entries of a pack to a cache", Args: files(2),
		RunE: func(_ *cobra.Command, args []string) error { return a.cacheUnpack(args[0], args[1]) },
	}
	c.AddCommand(list, show, a.cacheAddCommand(), remove, a.cachePackCommand(), unpack)
	return c
}

// files checks how many names there are.
func files(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return command.ErrUsage.New(fmt.Sprintf("names needed: %d, given: %d", n, len(args)), c.CommandPath())
		}
		return nil
	}
}

func (a *app) cacheAddCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "add --cache DIR [flags] [--] PROGRAM [ARGUMENTS]",
		Short: "Run a program, and add a schedule of the run",
		Long: `Run a program as heddle schedule record does, and add a schedule with its
preconditions to a cache. What the program prints is left out.`,
		RunE: func(c *cobra.Command, args []string) error { return a.cacheAdd(c.Context(), c.Flags(), f, args) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false)
	flags.StringVar(&f.cache.dir, "cache", "", "the cache's folder `DIR`")
	addMemoizingFlags(flags, &f.cache)
	cli.Group(flags, groupOutput, append([]string{"cache"}, memoizingFlags...)...)
	addMachineFlags(flags)
	flags.StringVar(&f.config, "config", "", "YAML `FILE` with the machine's configuration, which flags override")
	flags.StringVar(&f.stdin, "stdin", "", "`FILE` that is the guest's standard input (default: none)")
	cli.Group(flags, groupMachine, "config")
	cli.Group(flags, groupFiles, "stdin")
	addTimeLimitFlag(flags, &f.timeLimit)
	return c
}

func (a *app) cacheAdd(ctx context.Context, flags *pflag.FlagSet, f runFlags, args []string) error {
	switch {
	case f.cache.dir == "":
		return command.ErrUsage.New("no cache is named: --cache DIR is needed", "heddle cache add")
	case len(args) == 0:
		return command.ErrUsage.New("no program is named", "heddle cache add")
	}
	if err := f.cache.checkMemoizing(); err != nil {
		return err
	}
	if err := checkTimeLimit(f.timeLimit); err != nil {
		return err
	}
	options, err := machineOptions(flags, f.config, "")
	if err != nil {
		return err
	}
	j, err := a.newJob(options, f, args)
	if err != nil {
		return err
	}
	a.sayIgnored(flags, f, options)
	stdin, err := j.OpenStdin()
	if err != nil {
		return err
	}
	defer stdin.Close()
	c := j.Config()
	c.Closed = [3]bool{} // the run has none of heddle's own streams
	c.Stdin, c.Stdout, c.Stderr = stdin.Reader, io.Discard, io.Discard
	tern.MakeReadOnly(&c)
	store, err := cache.Open(f.cache.dir)
	if err != nil {
		return err
	}
	defer store.Close()
	return a.addRun(ctx, c, f, store)
}

// addRun records a run and adds its schedule.
func (a *app) addRun(ctx context.Context, c machine.Config, f runFlags, store *cache.Cache) error {
	file, err := os.CreateTemp("", "heddle-memoize-")
	if err != nil {
		return errTemporary.Wrap(command.Reason(err))
	}
	defer os.Remove(file.Name())
	defer file.Close()
	c.Hidden = append(c.Hidden, file.Name())
	limited, cancel := machine.WithTimeLimit(ctx, f.timeLimit)
	defer cancel()
	result, err := tern.Record(limited, c, file)
	if err != nil {
		return err
	}
	if result.Outcome == machine.OutcomeTimeLimit {
		a.say("%s", result.Message)
		a.status = result.ExitCode
		return nil
	}
	made, added, err := a.makeSchedule(ctx, file.Name(), &f.cache, store)
	if err != nil {
		return err
	}
	what := "entry"
	if !added.New {
		what = "is there already: entry"
	}
	fmt.Fprintf(a.stdout, "%s %s\n%d constraints, %d in the slice, %d preconditions\n", what, added.Name[:12], made.Constraints, made.Kept, made.Terms)
	return nil
}

// existing opens a cache, and lists its damage.
func (a *app) existing(dir string) (*cache.Cache, []*cache.Entry, error) {
	store, err := cache.OpenExisting(dir)
	if err != nil {
		return nil, nil, err
	}
	all, damaged, err := store.Entries("")
	for _, d := range damaged {
		a.say("%v", d)
	}
	return store, all, err
}

func (a *app) cacheList(dir string) error {
	store, all, err := a.existing(dir)
	if err != nil {
		return err
	}
	defer store.Close()
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "entry\tprogram\ttried\tfollowed\toperations\tconstraints\tcommand")
	for _, e := range all {
		s := e.File.Schedule
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\n", e.Short(), e.Program[:12], e.Tries, e.Reuses, len(s.Operations), len(s.Constraints), e.Command)
	}
	return w.Flush()
}

// withEntry does something with an entry of a cache that is there.
func (a *app) withEntry(dir, name string, do func(*cache.Cache, *cache.Entry) error) error {
	store, _, err := a.existing(dir)
	if err != nil {
		return err
	}
	defer store.Close()
	e, err := store.Find(name)
	if err != nil {
		return err
	}
	return do(store, e)
}

func removeEntry(store *cache.Cache, e *cache.Entry) error { return store.Remove(e.Name) }

func (a *app) cachePackCommand() *cobra.Command {
	var output, program string
	c := &cobra.Command{
		Use: "pack -o FILE DIR", Short: "Write a cache's entries to a file that goes with the program", Args: files(1),
		Long: `Write the entries of a cache to one file. heddle run --cache FILE finds them there
as in the cache, and changes nothing; heddle cache unpack adds them to another cache.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if output == "" {
				return errNoPack.New()
			}
			return a.cachePack(args[0], output, program)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "write the pack to `FILE`")
	c.Flags().StringVar(&program, "program", "", "leave out entries of other programs than `FILE`")
	return c
}

func (a *app) cachePack(dir, output, program string) error {
	store, _, err := a.existing(dir)
	if err != nil {
		return err
	}
	defer store.Close()
	sum := ""
	if program != "" {
		if sum = tern.FileSHA256(program); sum == "" {
			return errPackProgram.New(program)
		}
	}
	n, err := store.Pack(output, sum)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "entries: %d\n", n)
	return nil
}

func (a *app) cacheUnpack(dir, pack string) error {
	from, err := cache.OpenExisting(pack)
	if err != nil {
		return err
	}
	defer from.Close()
	store, err := cache.Open(dir)
	if err != nil {
		return err
	}
	defer store.Close()
	n, damaged, err := store.Unpack(from)
	for _, d := range damaged {
		a.say("%v", d)
	}
	if err == nil {
		fmt.Fprintf(a.stdout, "new entries: %d\n", n)
	}
	return err
}
