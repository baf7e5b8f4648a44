package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/experiments/h3"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/outfile"
)

var errNotReproduced = errs.Define("reproduce-no-schedule",
	"no schedule was written: {reason}",
	"No schedule leads to the failure, or none was found within the limits, or the program did not fail under the one that was found; the report has the details.",
	"Allow more time with --timeout or memory with --memory, or choose another --model or --encoding.")

// reproduceFlags are those of `heddle reproduce`.
type reproduceFlags struct {
	output, bug, stdout, model, encoding string
	smt2, perfetto, profile              string
	shared                               []string
	memory, checkpoint                   string
	every                                uint64
	timeout                              time.Duration
	explain, symbolic                    bool
}

// bugs are the values of --bug, and the classes of failures that they name.
var bugs = map[string]string{
	"auto": "", "assert": machine.FailureAssertion, "crash": machine.FailureCrash, "deadlock": machine.FailureDeadlock,
	"hang": machine.FailureHang, "output": machine.FailureWrong,
}

func (a *app) reproduceCommand() *cobra.Command {
	var f reproduceFlags
	c := &cobra.Command{
		Use:   "reproduce [flags] TRACE",
		Short: "Compute a schedule that makes a failure happen again, from branch traces",
		Long: `Compute a schedule that makes a recorded failure happen again, from the branches of
each core and the times of its threads (H3). Of the trace it uses the branch traces
(of heddle record --pt; the run of another trace is replayed to record them) and the
context switches, and how the run ended: no values, no order of synchronization, no
accesses to memory. Of a long run, --checkpoint has only the part after a checkpoint
solved.

The program is then run under the schedule; heddle replay --schedule does so again.`,
		Example: `  heddle record --pt -o failing.trace --seed 3 -- ./program
  heddle reproduce failing.trace
  heddle replay --schedule failing.schedule failing.trace`,
		Args: command.OneFile,
		RunE: func(c *cobra.Command, args []string) error {
			a.output().SayMissing(c.Flags(), reproduceDependences)
			return a.reproduce(c.Context(), f, args[0])
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.output, "output", "o", "", "write the schedule to `FILE`; TRACE's name with .schedule if not given")
	flags.StringVar(&f.bug, "bug", "auto", "`CLASS` of the failure: auto, assert, crash, deadlock, hang or output")
	flags.StringVar(&f.stdout, "stdout", "", "`FILE` with the right output: printing something else is a failure")
	flags.StringVar(&f.model, "model", "", "memory `MODEL`: sc, tso or pso; that of the recorded run if not given")
	flags.StringVar(&f.encoding, "encoding", "heddle", "`ENCODING` of the constraints: heddle, clap or h3")
	flags.DurationVar(&f.timeout, "timeout", time.Hour, "give up after `DURATION`")
	flags.StringVar(&f.memory, "memory", "4G", "give up when heddle uses this much memory, `SIZE`, to follow threads and search for a schedule; 0: no bound")
	flags.StringSliceVar(&f.shared, "shared", nil, "`NAMES` of the variables that threads share, and no others")
	flags.StringVar(&f.profile, "profile", "", "`TRACE` of a run that did not fail, with --memory: memory that its threads did not share is not shared")
	flags.StringVar(&f.checkpoint, "checkpoint", "none", "solve only the part after a `CHECKPOINT`: none, auto (the last one from which there is a schedule), last, or its number")
	flags.Uint64Var(&f.every, "checkpoint-every", 1_000_000, "number of `INSTRUCTIONS` of all threads between checkpoints")
	flags.BoolVar(&f.symbolic, "symbolic", false, "compute the schedule from the symbolic trace alone: do not search by executing the program where that gives none")
	flags.BoolVar(&f.explain, "explain", false, "print the shared memory, the constraints, and the steps")
	flags.StringVar(&f.smt2, "smt2", "", "write the formula for other solvers to `FILE`")
	flags.StringVar(&f.perfetto, "perfetto", "", "write a timeline of the run for ui.perfetto.dev to `FILE`")
	return c
}

// options returns the options of the flags.
func (f *reproduceFlags) options() (h3.Options, error) {
	o := h3.Options{Model: f.model, Encoding: f.encoding, Timeout: f.timeout, Shared: f.shared, Profile: f.profile, Symbolic: f.symbolic, Now: time.Now}
	class, ok := bugs[f.bug]
	switch {
	case f.timeout < 0:
		return o, command.ErrFlag.New("timeout", f.timeout, "a duration that is not negative, such as 90s; 0 means no limit")
	case !ok:
		return o, command.ErrFlag.New("bug", f.bug, "auto, assert, crash, deadlock, hang or output")
	case !slices.Contains(h3.Encodings(), f.encoding):
		return o, command.ErrFlag.New("encoding", f.encoding, "heddle, clap or h3")
	case f.profile != "" && len(f.shared) > 0:
		return o, command.ErrFlag.New("profile", f.profile, "a trace, without --shared")
	case !slices.Contains([]string{"", "sc", "tso", "pso"}, f.model):
		return o, command.ErrFlag.New("model", f.model, "sc, tso or pso")
	}
	var memory job.Size
	if err := memory.UnmarshalText([]byte(f.memory)); err != nil {
		return o, command.ErrFlag.New("memory", f.memory, "a size like 512M or 4G")
	}
	if o.Checkpoints, ok = h3.ParseCheckpoints(f.checkpoint, f.every); !ok {
		return o, command.ErrFlag.New("checkpoint", f.checkpoint, "none, auto, last or a number from 1, with --checkpoint-every of 1 or more")
	}
	o.Bug, o.Memory = class, uint64(memory)
	if f.stdout != "" {
		var err error
		if o.Stdout, err = os.ReadFile(f.stdout); err != nil {
			return o, command.ErrReadFile.Wrap(command.Reason(err), f.stdout)
		}
	}
	return o, nil
}

// reproduce carries out `heddle reproduce`.
func (a *app) reproduce(ctx context.Context, f reproduceFlags, path string) error {
	if f.output == "" {
		f.output = strings.TrimSuffix(path, ".trace") + ".schedule"
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	for _, path := range []string{f.output, f.perfetto} {
		if err := checkWritable(path); err != nil {
			return err
		}
	}
	for _, path := range []string{path, f.profile} {
		if path == "" {
			continue
		}
		if err := a.sayDamage(path); err != nil {
			return err
		}
	}
	var formula *outfile.File
	if f.smt2 != "" {
		if formula, err = outfile.Create(f.smt2); err != nil {
			return command.ErrWriteFile.Wrap(err, f.smt2)
		}
		defer formula.Discard()
		o.Formula = formula
	}
	limited := ctx
	if f.timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	with, remove, err := a.withBranches(limited, path)
	if err != nil {
		return err
	}
	defer remove()
	r, err := h3.OpenWithBranches(limited, path, with)
	if err != nil {
		return err
	}
	defer r.Close()
	out, err := r.Reproduce(limited, o)
	if formula != nil && (err == nil || formula.Err() != nil) {
		if err := formula.Commit(); err != nil {
			return command.ErrWriteFile.Wrap(err, f.smt2)
		}
	}
	if err != nil {
		return err
	}
	if err := r.Report(a.stdout, out, f.explain); err != nil {
		return err
	}
	switch {
	case out.Answer == smt.Unsatisfiable:
		return errNotReproduced.New("no schedule leads to this failure under the memory model " + out.Model.String())
	case out.Undecided() != nil:
		return out.Undecided()
	case out.Answer != smt.Satisfiable:
		return errNotReproduced.New("none was found within the limits; allow more with --timeout or --memory")
	case !out.Verified:
		return errNotReproduced.New("the program does not fail under the schedule that was found")
	}
	if f.explain || f.perfetto != "" {
		if err := out.Steps(ctx, a.stdout, f.perfetto, o.Stdout); err != nil {
			return err
		}
	}
	s, err := r.Schedule(out)
	if err == nil {
		err = s.WriteFile(f.output)
	}
	if err != nil {
		return command.ErrWriteFile.Wrap(err, f.output)
	}
	return nil
}
