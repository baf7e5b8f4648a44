package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/analyses/races"
	racereport "github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/experiments/prediction"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// racesFlags are the flags of `heddle races`.
type racesFlags struct {
	mode, benign string
	words        string
	json         bool
	library      bool
	verbose      bool
	suppressions []string
	limit        int
	data, code   []string
	output       string
	exitCode     int
	from, to     string // places of the run
	predictFlags
}

func (a *app) racesCommand() *cobra.Command {
	var f racesFlags
	var run runFlags
	c := &cobra.Command{
		Use:   "races [flags] TRACE | [flags] -- PROGRAM [ARGUMENTS]",
		Short: "Find data races in a recorded run",
		Long: `Find data races in a recorded run: pairs of accesses to the same bytes by
different threads, at least one of them a write, that nothing orders. With
--mode hb they are ordered by the program's synchronization; with --mode schedule
by the order that its synchronization operations had in this run, which leaves the
races that a schedule must order.

The trace is one of heddle record --races; the run of another trace is replayed to
see its accesses. After -- a program is run, recorded and analysed at once; without
-o its standard output goes to standard error, as standard output has the report.
docs/races.md describes the report.

With --predict races that another order of the run's events has are searched for,
too. Each is reported only if it happened when the program was run in that order. A
trace is one of heddle schedule record then.`,
		Example: `  heddle record -o run.trace --races -- ./racy
  heddle races run.trace
  heddle races --mode schedule --json run.trace > races.json
  heddle races --cores 4 --seed 7 -- ./racy
  heddle races --predict --witness found -- ./racy`,
		RunE: func(c *cobra.Command, args []string) error {
			a.output().SayMissing(c.Flags(), predictDependences)
			if c.ArgsLenAtDash() == 0 && len(args) > 0 {
				return a.racesOfProgram(c.Context(), c.Flags(), f, run, args)
			}
			if err := command.OneFile(c, args); err != nil {
				return err
			}
			own := pflag.NewFlagSet("", pflag.ContinueOnError)
			new(racesFlags).define(own)
			if !run.quiet {
				a.sayForeign(c.Flags(), own, "a trace, only on a program that is run")
			}
			if f.predicts {
				return a.predictRaces(c.Context(), f, args[0], args[0])
			}
			return a.racesOfTrace(c.Context(), f, args[0])
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	cli.GroupNew(flags, "Races", func() { f.define(flags) })
	addMachineFlags(flags)
	addRunFlags(flags, &run)
	addScheduleFlags(flags, &run.schedule)
	addRegionFlag(flags, &run.region)
	addStretchFlags(flags, &f.from, &f.to)
	cli.Group(flags, groupOutput, "from", "to")
	return c
}

func (f *racesFlags) define(flags *pflag.FlagSet) {
	flags.StringVar(&f.mode, "mode", "hb", "`ORDER` of accesses: hb, by the program's synchronization, or schedule, as it was recorded")
	flags.StringVar(&f.benign, "benign", string(racereport.Mark), "`ACTION` for races whose write changes nothing: keep them like others, mark or prune them")
	flags.StringVar(&f.words, "atomic-words", string(racereport.AutoWords), "in mode hb, `RULE` for words of instructions with LOCK or XCHG: race, like others; order, their accesses are synchronization; code, those of C++ code and of the libraries of OpenMP and oneTBB are; auto: order for programs in Go and Rust, code for others")
	flags.BoolVar(&f.json, "json", false, "print JSON")
	flags.IntVar(&f.limit, "limit", 0, "describe only the first `N` races; 0: all")
	flags.BoolVar(&f.library, "library", false, "show races of the C library's own code, too")
	flags.StringSliceVar(&f.data, "data", nil, "only races at the addresses `FROM-TO`, TO excluded")
	flags.StringSliceVar(&f.code, "code", nil, "only races of an instruction at `FROM-TO`, TO excluded")
	flags.StringArrayVar(&f.suppressions, "suppress", nil, "leave out races by the rules in `FILE`")
	flags.BoolVar(&f.verbose, "verbose", false, "say how many races each rule of --suppress left out")
	flags.StringVarP(&f.output, "output", "o", "", "write the report to `FILE`")
	flags.IntVar(&f.exitCode, "error-exitcode", 0, "exit with status `N` if there are races")
	f.definePrediction(flags)
}

// options returns the options of the flags.
func (f *racesFlags) options() (o racereport.Options, err error) {
	o = racereport.Options{Benign: racereport.Benign(f.benign), Words: racereport.Words(f.words), Library: f.library, Limit: f.limit, Verbose: f.verbose}
	var known bool
	if o.Order, known = racereport.Modes[f.mode]; !known {
		return o, command.ErrFlag.New("mode", quote(f.mode), "hb, schedule")
	}
	switch o.Benign {
	case racereport.Keep, racereport.Mark, racereport.Prune:
	default:
		return o, command.ErrFlag.New("benign", quote(f.benign), "keep, mark, prune")
	}
	switch o.Words {
	case racereport.RaceWords, racereport.AutoWords:
	case racereport.OrderWords, racereport.CodeWords:
		if o.Order != races.HappensBefore {
			return o, command.ErrFlag.New("atomic-words", f.words+" with --mode "+f.mode, "race, auto; mode hb orders by words")
		}
	default:
		return o, command.ErrFlag.New("atomic-words", quote(f.words), "race, code, order, auto")
	}
	if f.limit < 0 {
		return o, command.ErrFlag.New("limit", f.limit, "0 or more")
	}
	if f.exitCode < 0 || f.exitCode > 255 {
		return o, command.ErrFlag.New("error-exitcode", f.exitCode, "0 to 255")
	}
	for _, list := range []struct {
		flag  string
		texts []string
		into  *[]racereport.Range
	}{{"data", f.data, &o.Data}, {"code", f.code, &o.Code}} {
		ranges, err := command.Addresses(list.flag, list.texts)
		if err != nil {
			return o, err
		}
		for _, r := range ranges {
			*list.into = append(*list.into, racereport.Range(r))
		}
	}
	if err := f.checkPrediction(o); err != nil {
		return o, err
	}
	o.Rules, err = racereport.ReadRules(f.suppressions)
	return o, err
}

// racesOfTrace reports the races of a trace. One without accesses is replayed, and analysed meanwhile.
func (a *app) racesOfTrace(ctx context.Context, f racesFlags, path string) error {
	missing, err := lacks(path, trace.Memory)
	if err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	if !missing {
		return a.output().ExportTo(f.output, func(out io.Writer) error {
			found, err := prediction.ReportRecorded(ctx, path, path, o)
			if err != nil {
				return err
			}
			return a.writeRaces(out, f, found)
		})
	}
	a.say("%s has no memory accesses: the run is replayed to record them", path)
	live := racereport.NewLive(path, o)
	defer live.Close()
	if err := a.repeat(ctx, path, recordFlags{listener: live, races: true}); err != nil {
		return err
	}
	return a.reportLive(f, live)
}

func (a *app) writeRaces(out io.Writer, f racesFlags, found *racereport.Report) error {
	if found.Static+found.Confirmed() > 0 && f.exitCode != 0 {
		a.status = f.exitCode
	}
	if f.json {
		_, err := out.Write(found.JSON())
		return err
	}
	return found.Text(out)
}

// racesOfProgram runs a program, and reports its races unless the run failed or something
// of the host ended it: which races it would show then depends on the host.
func (a *app) racesOfProgram(ctx context.Context, flags *pflag.FlagSet, f racesFlags, run runFlags, args []string) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	if f.output == "" {
		a.guestStdout = a.stderr
	}
	if f.predicts {
		if f.from+f.to != "" {
			return command.ErrFlag.New("from and --to", f.from+" "+f.to+" with --predict", "none")
		}
		return a.predictProgram(ctx, flags, f, run, args)
	}
	o.During = a.isInRegion
	live := racereport.NewLive(strings.Join(args, " "), o)
	defer live.Close()
	result, err := a.record(ctx, flags, run, recordFlags{listener: live, races: true, from: f.from, to: f.to}, args)
	if err != nil || !ended(result) {
		return err
	}
	if s := result.Stretch; s != nil && s.Why != "" {
		a.status = exitFailure
		return nil
	}
	return a.reportLive(f, live)
}

// reportLive writes the report of a run that has ended.
func (a *app) reportLive(f racesFlags, live *racereport.Live) error {
	found, err := live.Report()
	if err != nil {
		return err
	}
	return a.output().ExportTo(f.output, func(out io.Writer) error { return a.writeRaces(out, f, found) })
}
