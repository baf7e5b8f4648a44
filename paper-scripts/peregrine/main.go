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
	"slices"

	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/experiments/table"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

// settings are the command line's.
type settings struct {
	threads, runs, syncRuns, times int
	seed                           uint64
	only                           []string
	progress                       io.Writer
}

func main() {
	s := &settings{progress: os.Stderr}
	script := study.Script{Name: "peregrine", Short: "Measure PEREGRINE's tables 1 to 3 and figures 11 and 12", Artefacts: []study.Artefact{
		{Name: "table1", Title: "Table 1: programs and their races", Measure: s.with(table1)},
		{Name: "table2", Title: "Table 2: hybrid schedules", Measure: s.with(table2)},
		{Name: "table3", Title: "Table 3: determinism of sync-schedules and hybrid schedules", Measure: s.with(table3)},
		{Name: "figure11", Title: "Figure 11: execution time under schedules, in times of that without", Measure: s.with(figure11)},
		{Name: "figure12", Title: "Figure 12: speed-up by flag relay and by skipping waits", Measure: s.with(figure12)},
	}}
	script.Main(func(f *pflag.FlagSet) {
		f.IntVar(&s.threads, "threads", 8, "worker threads `N` of each program, as in the paper")
		f.IntVar(&s.runs, "runs", 50, "`N` runs of each program under its hybrid schedule; the paper has 1000 (table3)")
		f.IntVar(&s.syncRuns, "sync-runs", 50, "`N` runs of each program under its sync-schedule (table3)")
		f.IntVar(&s.times, "times", 5, "`N` runs that a time is the mean of (figure11, figure12)")
		f.Uint64Var(&s.seed, "seed", 1, "`SEED` of the recorded runs")
		f.StringSliceVar(&s.only, "only", nil, "`PROGRAMS` of the suite to take, and no others")
	})
}

// with is a measurement with the settings.
func (s *settings) with(measure func(context.Context, *settings) (*table.Table, error)) func(context.Context) (*table.Table, error) {
	return func(ctx context.Context) (*table.Table, error) { return measure(ctx, s) }
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
