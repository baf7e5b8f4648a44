// Command tern measures TERN's table 4, the stability of a bug in SPLASH-2's fft
// over inputs that differ slightly, with the suite's fft in its place (H. Cui and
// others, Stable deterministic multithreading through schedule memoization, OSDI
// 2010, section 8.2.1).
//
//	go run ./paper-scripts/tern table4
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/experiments/table"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// settings are the command line's.
type settings struct {
	runs     int
	program  string
	progress io.Writer
}

// size is an amount of computation of a program: the arguments beside the number
// of threads.
type size struct{ name, arguments string }

// sizes are three of each program in which the paper studies the bug; fft's are
// the paper's.
var sizes = map[string][]size{
	"fft":           {{"m10", "-p {threads} -m 10"}, {"m12", "-p {threads} -m 12"}, {"m14", "-p {threads} -m 14"}},
	"lu-non-contig": {{"n64", "-p {threads} -n 64"}, {"n96", "-p {threads} -n 96"}, {"n128", "-p {threads} -n 128"}},
	"barnes":        {{"n16", "-p {threads} -n 16"}, {"n24", "-p {threads} -n 24"}, {"n32", "-p {threads} -n 32"}},
}

// threadCounts are the paper's.
var threadCounts = []int{2, 4, 8}

func main() {
	s := &settings{progress: os.Stderr}
	script := study.Script{Name: "tern", Short: "Measure TERN's table 4", Artefacts: []study.Artefact{{
		Name: "table4", Title: "Table 4: stability of a bug over inputs",
		Measure: func(ctx context.Context) (*table.Table, error) {
			if sizes[s.program] == nil {
				return nil, fmt.Errorf("--program %s: one of fft, lu-non-contig, barnes", s.program)
			}
			return table4(ctx, s)
		},
	}}}
	script.Main(func(f *pflag.FlagSet) {
		f.IntVar(&s.runs, "runs", 100, "`N` runs of each input and mode, as in the paper")
		f.StringVar(&s.program, "program", "fft", "`PROGRAM`: fft, as in the paper's table, lu-non-contig or barnes")
	})
}

// table4 has a row for each number of threads and, for each mode, a column for
// each amount of computation.
func table4(ctx context.Context, s *settings) (*table.Table, error) {
	t := &table.Table{
		Head: []table.Column{{Name: "threads", Key: "threads", Number: true}},
		Notes: []string{
			fmt.Sprintf("In how many of %d runs, each with a seed of its own, the bug showed.", s.runs),
			"TERN: one schedule of synchronization operations for each number of threads, recorded at the least size without the bug, followed at all sizes; a run that shows the bug leaves it there.",
			"The paper: without TERN or CoreDet the bug never showed; under CoreDet it showed or not depending on the input, always the same for one input; under TERN it never showed.",
		},
	}
	modes := []struct {
		name, key string
		measure   func(context.Context, *settings, *study.Recorded, *schedules.Made, *study.Subject) (int, error)
	}{{"free", "nondet", free}, {"CoreDet", "coredet", coreDet}, {"TERN", "tern", tern}}
	for _, m := range modes {
		for _, size := range sizes[s.program] {
			t.Head = append(t.Head, table.Column{Name: m.name + " " + size.name, Key: m.key + "_" + size.name, Number: true})
		}
	}
	for _, threads := range threadCounts {
		subject, err := study.New("fft", s.program, programs.Buggy, study.Test, threads)
		if err != nil {
			return nil, err
		}
		memoized, schedule, err := s.memoize(ctx, subject.With(sizes[s.program][0].arguments))
		if err != nil {
			return nil, err
		}
		row := []string{fmt.Sprint(threads)}
		for _, m := range modes {
			for _, size := range sizes[s.program] {
				fmt.Fprintf(s.progress, "%s, %d threads, %s: %d runs\n", m.name, threads, size.name, s.runs)
				shown, err := m.measure(ctx, s, memoized, schedule, subject.With(size.arguments))
				if err != nil {
					return nil, err
				}
				row = append(row, fmt.Sprint(shown))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// memoize records runs until one is right, and makes its schedule.
func (s *settings) memoize(ctx context.Context, subject *study.Subject) (*study.Recorded, *schedules.Made, error) {
	dir, err := os.MkdirTemp("", "heddle-tern-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	for seed := uint64(1); seed <= 100; seed++ {
		r, err := subject.Record(ctx, dir, seed)
		if err != nil {
			return nil, nil, err
		}
		if r.Outcome.ExitCode == 0 {
			m, err := r.Make(ctx, schedules.Options{SyncOnly: true})
			return r, m, err
		}
		if err := r.Close(); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("%s shows its bug in each of 100 runs", subject.Program.Name)
}

// shown counts the runs that do not end well.
func (s *settings) shown(ctx context.Context, config func(seed uint64) heddle.Config) (int, error) {
	wrong := make([]bool, s.runs)
	err := study.Each(s.runs, func(i int) error {
		o, _, err := study.Run(ctx, config(uint64(i+1)))
		wrong[i] = o.ExitCode != 0
		return err
	})
	n := 0
	for _, w := range wrong {
		if w {
			n++
		}
	}
	return n, err
}

func free(ctx context.Context, s *settings, _ *study.Recorded, _ *schedules.Made, subject *study.Subject) (int, error) {
	return s.shown(ctx, subject.Config)
}

func coreDet(ctx context.Context, s *settings, _ *study.Recorded, _ *schedules.Made, subject *study.Subject) (int, error) {
	return s.shown(ctx, func(seed uint64) heddle.Config {
		c := subject.Config(seed)
		c.Sched = sched.Options{Policy: sched.CoreDet}
		return c
	})
}

func tern(ctx context.Context, s *settings, r *study.Recorded, m *schedules.Made, subject *study.Subject) (int, error) {
	return s.shown(ctx, func(seed uint64) heddle.Config {
		c := r.Under(subject.Config(seed), m, sched.EnforceOptions{SyncOnly: true, Free: true})
		c.MaxInstructions = 0 // the recorded run was on a smaller input
		return c
	})
}
