// Package sweeps has the commands of heddle experiment: flags and sentences. The work is done by
// package experiments/sweep and its neighbours.
package sweeps

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/heddle-dmt/heddle/experiments/slurm"
	"github.com/heddle-dmt/heddle/experiments/sweep"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/errs"
)

var (
	errFormat = errs.Define("table-format",
		"--format is {found}; allowed: {allowed}",
		"A command of heddle experiment was asked for a format that it does not have.",
		"Use one of the formats in the sentence.")
	errChoice = errs.Define("experiment-flag",
		"{flag} is {found}; allowed: {allowed}",
		"A flag of heddle experiment run has a value out of its range.",
		"Use a value that the sentence allows.")
	errTogether = errs.Define("experiment-options",
		"{first} and {second} cannot be given together",
		"One of the options chooses the runs of a sweep, and the other chooses them otherwise or has no use for a choice.",
		"Leave one of them out.")
)

// Program is heddle as the commands need it: its streams, its version, and its ways to say a sentence, to
// set the exit status, and to find out whether a signal ended a context.
type Program struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Version        string
	Say            func(format string, args ...any)
	SetStatus      func(int)
	Interrupted    func(context.Context) (status int, ok bool)
	// OfCommands, OneFile and Files check positional arguments: none but commands, one file, at
	// least one.
	OfCommands, OneFile, Files cobra.PositionalArgs
}

// Command makes heddle experiment with all its commands.
func (p *Program) Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "experiment",
		Short: "Sweep programs over a grid of parameters",
		Args:  p.OfCommands,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.runCommand(), p.tableCommand(), p.plotCommand(), p.exportCommand(), p.planCommand(), p.mergeCommand(),
		p.campaignCommand(), p.validateCommand(), p.initCommand())
	return c
}

func addStoreFlag(c *cobra.Command, o *sweep.Options) {
	c.Flags().StringVar(&o.Store, "store", "", "`FILE` of the results (default: the experiment's, or results/NAME.sqlite)")
}

// text is a flag whose text is checked when it is given.
type text struct {
	kind, given string
	set         func(string) error
}

func (t *text) String() string { return t.given }
func (t *text) Type() string   { return t.kind }
func (t *text) Set(s string) error {
	t.given = s
	return t.set(s)
}

// addRangesFlag adds a flag that takes numbers of runs.
func addRangesFlag(c *cobra.Command, to *[]sweep.Range, name, help string) {
	c.Flags().Var(&text{kind: "LIST", set: func(s string) error {
		for _, part := range strings.Split(s, ",") {
			var r sweep.Range
			if err := r.UnmarshalText([]byte(part)); err != nil || r.Low == 0 {
				return form("numbers of runs from 1, and ranges of them, with commas: 1,7-9")
			}
			*to = append(*to, r)
		}
		return nil
	}}, name, help)
}

// form is the error of a text that is not of the allowed form.
type form string

func (f form) Error() string { return string(f) }

func (p *Program) runCommand() *cobra.Command {
	o := sweep.Options{Version: p.Version}
	var onSlurm bool
	var s slurm.Options
	c := &cobra.Command{
		Use:   "run FILE.yaml",
		Short: "Carry out the runs of an experiment that are not stored yet",
		Long: `Carry out the runs of an experiment that are not stored yet, each in a process of
its own, and store results as they finish. After an interruption the same
command continues where it stopped.

With --shard I/N only every N-th run is carried out, and stored beside the
experiment's store in one of the shard's own: start the N shards on as many
hosts, or at different times, and join their stores with 'heddle experiment
merge'.

With --slurm the missing runs are divided among the tasks of a Slurm job array,
whose results are merged. The file, its programs and this heddle must be at the
same paths on the nodes, and the store's folder on a file system that they share.`,
		Args: p.OneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if o.Shard.Of > 0 && o.Again {
				return errTogether.New("--shard", "--again")
			}
			if onSlurm {
				for _, name := range []string{"shard", "runs", "again", "inputs"} {
					if c.Flags().Changed(name) {
						return errTogether.New("--slurm", "--"+name)
					}
				}
				s.Workers = o.Workers
				return p.runOnSlurm(c.Context(), args[0], o, s)
			}
			return p.run(c.Context(), args[0], o)
		},
	}
	addStoreFlag(c, &o)
	c.Flags().IntVar(&o.Workers, "workers", 0, "`N` runs at a time (default: the file's value, or one for each processor)")
	c.Flags().BoolVar(&o.Again, "again", false, "carry out what is stored too, and compare")
	c.Flags().Var(&text{kind: "I/N", set: func(s string) error { return o.Shard.UnmarshalText([]byte(s)) }}, "shard",
		"carry out shard `I/N` of the runs, into a store of its own")
	addRangesFlag(c, &o.Runs, "runs", "carry out only the runs with these numbers in the plan: `LIST`, such as 1,7-9")
	c.Flags().StringVar(&o.Inputs, "inputs", "", "make the experiment's inputs in `FOLDER` (default: beside the store)")
	cli.GroupNew(c.Flags(), "Slurm", func() {
		c.Flags().BoolVar(&onSlurm, "slurm", false, "carry out the runs as job arrays of Slurm")
		c.Flags().IntVar(&s.ArraySize, "array-size", 256, "divide the runs among at most `N` tasks")
		c.Flags().IntVar(&s.Concurrent, "concurrent", 0, "at most `N` tasks at a time (default: as many as Slurm starts)")
		c.Flags().StringVar(&s.Partition, "partition", "", "`NAME` of the partition")
		c.Flags().StringVar(&s.Time, "time", "", "limit of a task's time, as sbatch takes it: `TIME`, in minutes or as hours:minutes:seconds")
		c.Flags().StringVar(&s.Memory, "task-memory", "", "memory of a task, as sbatch takes it: `SIZE`, such as 4G")
		c.Flags().StringArrayVar(&s.Extra, "slurm-option", nil, "a further `OPTION` of sbatch, such as --account=NAME; may be repeated")
	})
	return c
}

// onCluster is an experiment as package slurm sees it.
type onCluster struct {
	x *sweep.Experiment
	o sweep.Options
}

func (c onCluster) Missing(failed bool) ([]int, error) { return c.x.Missing(c.o, failed) }

func (c onCluster) Merge(stores []string) ([]string, error) {
	merged, err := c.x.Merge(c.o, stores)
	return merged.Conflicts, err
}

// runOnSlurm is run on a cluster.
func (p *Program) runOnSlurm(ctx context.Context, path string, o sweep.Options, s slurm.Options) error {
	if s.ArraySize < 1 {
		return errChoice.New("--array-size", s.ArraySize, "at least 1")
	}
	if s.Concurrent < 0 {
		return errChoice.New("--concurrent", s.Concurrent, "at least 0")
	}
	x, err := sweep.Load(path)
	if err != nil {
		return err
	}
	s.Progress, s.Say = sweep.NewProgress(p.Stderr), p.Say
	if file, ok := p.Stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		s.Ask = func(question string) string {
			fmt.Fprint(p.Stderr, "\nheddle: "+question)
			answer, _ := bufio.NewReader(file).ReadString('\n')
			return answer
		}
	}
	files := slurm.Files{Name: x.Name, Experiment: path, Store: x.StorePath(o), Inputs: x.InputsPath(o)}
	conflicts, err := slurm.Run(ctx, onCluster{x, o}, files, s)
	var interrupted *slurm.Interrupted
	if status, ok := p.Interrupted(ctx); ok && errors.As(err, &interrupted) {
		p.Say("interrupted; %v", interrupted)
		p.SetStatus(status)
		return nil
	}
	if err != nil {
		return err
	}
	o.NativesOnly = true
	summary, err := x.Sweep(context.WithoutCancel(ctx), o) // Ctrl-C may have been answered with watching further
	if err != nil {
		return err
	}
	summary.Conflicts = append(conflicts, summary.Conflicts...)
	p.Say("%d of %d runs are stored", summary.Stored, summary.Total)
	return summary.Err()
}

func (p *Program) run(ctx context.Context, path string, o sweep.Options) error {
	x, err := sweep.Load(path)
	if err != nil {
		return err
	}
	o.Progress = sweep.NewProgress(p.Stderr)
	summary, err := x.Sweep(ctx, o)
	for _, row := range summary.Damaged {
		p.Say("%s; its run is carried out again", row)
	}
	if status, ok := p.Interrupted(ctx); ok && errors.Is(err, context.Canceled) {
		p.Say("interrupted; %d of %d runs are stored, and the same command continues from there",
			summary.Stored+summary.Ran-summary.Failed, summary.Total)
		p.SetStatus(status)
		return nil
	}
	if err != nil {
		return err
	}
	return summary.Err()
}

// addSelectionFlags adds the flags that choose what tables and plots show.
func addSelectionFlags(c *cobra.Command, s *sweep.Selection) {
	c.Flags().StringArrayVar(&s.Where, "where", nil, "keep the rows with these values, such as `\"policy=rr,timed threads>=4\"`")
	c.Flags().StringVar(&s.Base, "base", "", "add ratios to the row with these values, such as `\"policy=timed\"`, that is equal otherwise")
	c.Flags().Float64Var(&s.Confidence, "confidence", 0, "`LEVEL` of confidence intervals (default 0.95)")
}

func (p *Program) tableCommand() *cobra.Command {
	var o sweep.Options
	var s sweep.Selection
	var format string
	c := &cobra.Command{
		Use:   "table FILE.yaml...",
		Short: "Print the stored results of experiments, grouped over seeds",
		Long: `Print the stored results of an experiment, grouped over seeds, or those of several
as one table. Options take the place of the file's section 'table'.`,
		Args: p.Files,
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains(table.Formats(), format) {
				return errFormat.New(fmt.Sprintf("%q", format), strings.Join(table.Formats(), ", "))
			}
			t, err := sweep.Tables(args, o, s)
			if err != nil {
				return err
			}
			return t.Write(p.Stdout, format)
		},
	}
	addStoreFlag(c, &o)
	c.Flags().StringVar(&format, "format", table.Text, "`FORMAT` of the table: "+strings.Join(table.Formats(), ", "))
	c.Flags().StringSliceVar(&s.Measures, "measures", nil, "`LIST` of measures: cycles, instructions, context_switches, turns, peak_memory, host_seconds, values (default: the first three and the values)")
	c.Flags().StringSliceVar(&s.Statistics, "statistics", nil, "`LIST` of statistics of each measure: mean, median, sd, min, max, q1, q3, ci, median-ci (default: mean)")
	addSelectionFlags(c, &s)
	return c
}

func (p *Program) planCommand() *cobra.Command {
	var o sweep.Options
	var asJSON, missing bool
	c := &cobra.Command{
		Use:   "plan FILE.yaml",
		Short: "List the runs of an experiment",
		Long: `Print the number of runs of an experiment and of those that are stored or, with
--json, list them for other tools: 'heddle experiment run --runs' carries out runs
by their numbers.`,
		Args: p.OneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			x, err := sweep.Load(args[0])
			if err != nil {
				return err
			}
			list, err := x.List(o, missing)
			if err != nil {
				return err
			}
			if asJSON {
				return list.WriteJSON(p.Stdout)
			}
			fmt.Fprintf(p.Stdout, "%s: %d runs, %d stored\n", args[0], list.Total, list.Stored)
			return nil
		},
	}
	addStoreFlag(c, &o)
	c.Flags().BoolVar(&asJSON, "json", false, "list the runs as JSON")
	c.Flags().BoolVar(&missing, "missing", false, "list only the runs that are not stored")
	c.Flags().Var(&text{kind: "I/N", set: func(s string) error { return o.Shard.UnmarshalText([]byte(s)) }}, "shard", "list only those of shard `I/N`")
	return c
}

func (p *Program) mergeCommand() *cobra.Command {
	var o sweep.Options
	c := &cobra.Command{
		Use:   "merge FILE.yaml [STORE...]",
		Short: "Join the stores of shards",
		Long: `Take the results in stores over into the experiment's: those of its shards, unless
others are named. Runs that two stores share must be equal. Nothing is taken over if
a store is damaged or has results of another build of heddle or of another version
of the experiment; the stores are not changed, and may be merged again.`,
		Args: p.Files,
		RunE: func(_ *cobra.Command, args []string) error {
			x, err := sweep.Load(args[0])
			if err != nil {
				return err
			}
			merged, err := x.Merge(o, args[1:])
			if err != nil {
				return err
			}
			fmt.Fprintln(p.Stdout, merged)
			return sweep.Summary{Conflicts: merged.Conflicts}.Err()
		},
	}
	addStoreFlag(c, &o)
	return c
}

func (p *Program) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE.yaml...",
		Short: "Check experiment files without running anything",
		Args:  p.Files,
		RunE: func(_ *cobra.Command, args []string) error {
			for _, path := range args {
				x, err := sweep.Load(path)
				if err != nil {
					return err
				}
				fmt.Fprintln(p.Stdout, x.Describe())
			}
			return nil
		},
	}
}

func (p *Program) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init FILE.yaml",
		Short: "Write a commented example of an experiment file",
		Args:  p.OneFile,
		RunE:  func(_ *cobra.Command, args []string) error { return sweep.WriteExample(args[0]) },
	}
}
