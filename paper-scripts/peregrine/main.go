// Command peregrine measures what PEREGRINE's tables 1 to 3 and figures 11 and
// 12 show, with the suite's programs in place of the paper's, and prints the
// paper's numbers beside ours (H. Cui and others, Efficient deterministic
// multithreading through schedule relaxation, SOSP 2011).
//
//	go run ./paper-scripts/peregrine all
//	go run ./paper-scripts/peregrine --runs 1000 table3
//
// Execution times are virtual: cycles of the timing model (docs/scheduling.md),
// which are repeatable. The host's times are in docs/performance.md.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/experiments/table"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(os.Stdout, os.Stderr).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "peregrine:", err)
		os.Exit(1)
	}
}

// settings are the command line's.
type settings struct {
	threads, runs, syncRuns, times int
	seed                           uint64
	format                         string
	only                           []string
	progress                       io.Writer
}

// artefact is a table or figure of the paper.
type artefact struct {
	name, title string
	measure     func(context.Context, *settings) (*table.Table, error)
}

var artefacts = []artefact{
	{"table1", "Table 1: programs and their races", table1},
	{"table2", "Table 2: hybrid schedules", table2},
	{"table3", "Table 3: determinism of sync-schedules and hybrid schedules", table3},
	{"figure11", "Figure 11: execution time under schedules, in times of that without", figure11},
	{"figure12", "Figure 12: speed-up by flag relay and by skipping waits", figure12},
}

func names() []string {
	list := []string{"all"}
	for _, a := range artefacts {
		list = append(list, a.name)
	}
	return list
}

func command(out, progress io.Writer) *cobra.Command {
	s := &settings{progress: progress}
	c := &cobra.Command{
		Use:   "peregrine [flags] " + strings.Join(names(), "|") + " ...",
		Short: "Measure PEREGRINE's tables 1 to 3 and figures 11 and 12",
		Args:  cobra.MatchAll(cobra.MinimumNArgs(1), cobra.OnlyValidArgs), ValidArgs: names(),
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, args []string) error { return run(c.Context(), out, s, args) },
	}
	f := c.Flags()
	f.IntVar(&s.threads, "threads", 8, "worker threads `N` of each program, as in the paper")
	f.IntVar(&s.runs, "runs", 50, "`N` runs of each program under its hybrid schedule; the paper has 1000 (table3)")
	f.IntVar(&s.syncRuns, "sync-runs", 50, "`N` runs of each program under its sync-schedule (table3)")
	f.IntVar(&s.times, "times", 5, "`N` runs that a time is the mean of (figure11, figure12)")
	f.Uint64Var(&s.seed, "seed", 1, "`SEED` of the recorded runs")
	f.StringVar(&s.format, "format", table.Text, "`FORMAT` of the output: "+strings.Join(table.Formats(), ", "))
	f.StringSliceVar(&s.only, "only", nil, "`PROGRAMS` of the suite to take, and no others")
	return c
}

func run(ctx context.Context, out io.Writer, s *settings, wanted []string) error {
	if !slices.Contains(table.Formats(), s.format) {
		return fmt.Errorf("--format %s: one of %s", s.format, strings.Join(table.Formats(), ", "))
	}
	for _, a := range artefacts {
		if !slices.Contains(wanted, a.name) && !slices.Contains(wanted, "all") {
			continue
		}
		t, err := a.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		if s.format == table.Text {
			fmt.Fprintf(out, "\n%s\n\n", a.title)
		}
		if err := t.Write(out, s.format); err != nil {
			return err
		}
	}
	return nil
}

// say tells how far the work has come.
func (s *settings) say(format string, args ...any) { fmt.Fprintf(s.progress, format+"\n", args...) }

// stand is a program of ours in place of one of the paper's.
type stand struct {
	paper, name string
	form        programs.Form
	size        study.Size
}

// subjects builds those of the programs that are wanted.
func (s *settings) subjects(all []stand) ([]*study.Subject, error) {
	var list []*study.Subject
	for _, p := range all {
		if len(s.only) > 0 && !slices.Contains(s.only, p.name) {
			continue
		}
		subject, err := study.New(p.paper, p.name, p.form, p.size, s.threads)
		if err != nil {
			return nil, err
		}
		list = append(list, subject)
	}
	return list, nil
}
