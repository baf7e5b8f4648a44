package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/experiments/minimize"
	schedminimize "github.com/heddle-dmt/heddle/sched/minimize"
)

// minimizeFlags are those of `heddle minimize`.
type minimizeFlags struct {
	output, stdout, perfetto string
	runs                     int
	quiet                    bool
}

func (a *app) minimizeCommand() *cobra.Command {
	var f minimizeFlags
	c := &cobra.Command{
		Use:   "minimize [flags] TRACE",
		Short: "Find the shortest schedule under which a recorded run fails",
		Long: `Find the shortest schedule under which a recorded run fails in the same way: with
as few context switches as can be found, and then as few stores that other threads
see late. A run fails when it ends by a signal, with a status other than 0,
in a deadlock or at its limit of instructions (--max-instructions when it was
recorded), or, with --stdout, when its output is wrong.

Each schedule that is tried is really run. The trace of the shortest is one that
heddle replay follows to the same failure. The steps of that schedule are printed,
with source lines if the program has debug information. Ctrl-C ends the search and
keeps the best so far.`,
		Example: `  heddle record -o failing.trace --model tso --sched random --quantum 20 -- ./dekker
  heddle minimize failing.trace
  heddle replay failing-short.trace`,
		Args: command.OneFile,
		RunE: func(c *cobra.Command, args []string) error { return a.minimize(c.Context(), f, args[0]) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.output, "output", "o", "", "write the trace of the shortest failing run to `FILE`; TRACE's name with -short if not given")
	flags.StringVar(&f.perfetto, "perfetto", "", "write a timeline of that run for ui.perfetto.dev to `FILE`")
	flags.StringVar(&f.stdout, "stdout", "", "`FILE` with the right output: a run with another one fails")
	flags.IntVar(&f.runs, "runs", 2000, "try at most `N` schedules; 0: no bound")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "leave out progress on standard error")
	return c
}

// minimize carries out `heddle minimize`.
func (a *app) minimize(ctx context.Context, f minimizeFlags, path string) error {
	if f.output == "" {
		ending := filepath.Ext(path)
		f.output = strings.TrimSuffix(path, ending) + "-short" + ending
	}
	if f.runs < 0 {
		return command.ErrFlag.New("runs", f.runs, "a whole number, not negative")
	}
	for _, path := range []string{f.output, f.perfetto} {
		if err := checkWritable(path); err != nil {
			return err
		}
	}
	o := minimize.Options{Runs: f.runs, Perfetto: f.perfetto}
	if f.stdout != "" {
		right, err := os.ReadFile(f.stdout)
		if err != nil {
			return command.ErrReadFile.Wrap(command.Reason(err), f.stdout)
		}
		o.Right.Stdouts = [][]byte{right}
	}
	if err := a.sayDamage(path); err != nil {
		return err
	}
	progress := a.minimizeProgress(f.quiet)
	o.Progress = progress.printCost
	report, err := minimize.Minimize(ctx, path, f.output, o)
	progress.end()
	if status, ok := interrupted(ctx); ok && (err == nil || errors.Is(err, context.Canceled)) {
		a.status = status
		if report == nil {
			a.say("interrupted before the first schedule was tried; nothing is written")
			return nil
		}
		a.say("interrupted; %s has the shortest failing run so far", f.output)
	}
	if err != nil {
		return err
	}
	return report.Write(a.stdout)
}

// minimizeProgress prints the progress of a search: in one line that changes on a terminal, in a
// line for each improvement elsewhere.
type minimizeProgress struct {
	liveLine
	quiet bool
	best  schedminimize.Cost
}

func (a *app) minimizeProgress(quiet bool) *minimizeProgress {
	return &minimizeProgress{liveLine: liveLine{app: a, terminal: a.onTerminal()}, quiet: quiet}
}

func (p *minimizeProgress) printCost(runs int, best schedminimize.Cost) {
	same := p.printed && best == p.best
	if p.quiet || same && !p.terminal {
		return
	}
	p.best = best
	p.liveLine.print(fmt.Sprintf("schedules tried: %d; the shortest has %d context switches, %d delayed stores", runs, best.Switches, best.Delays))
}

// liveLine prints texts on standard error, each in place of the last: in one line that changes on
// a terminal, in lines elsewhere.
type liveLine struct {
	app      *app
	terminal bool
	printed  bool
}

// onTerminal reports whether standard error is a terminal.
func (a *app) onTerminal() bool {
	file, ok := a.stderr.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func (l *liveLine) print(text string) {
	l.printed = true
	if l.terminal {
		fmt.Fprintf(l.app.stderr, "\r%s ", text)
		return
	}
	fmt.Fprintln(l.app.stderr, text)
}

func (l *liveLine) end() {
	if l.terminal && l.printed {
		fmt.Fprintln(l.app.stderr)
	}
}
