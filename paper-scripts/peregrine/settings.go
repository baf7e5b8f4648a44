package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// settings are a configuration file's, as the command line overrides them.
type settings struct {
	// Threads are the worker threads of each program, Cores those of the machine
	// of recorded runs (0: as many as threads), and Seed that of the first one. With
	// BindNow functions are looked up before the run.
	Threads int    `mapstructure:"threads"`
	Cores   int    `mapstructure:"cores"`
	BindNow bool   `mapstructure:"bind_now"`
	Seed    uint64 `mapstructure:"seed"`
	// Runs and SyncRuns are under hybrid schedules and sync-schedules; a time is
	// the mean of Times.
	Runs     int       `mapstructure:"runs"`
	SyncRuns int       `mapstructure:"sync_runs"`
	Times    int       `mapstructure:"times"`
	Programs []program `mapstructure:"programs"`

	o *study.Options
}

// program is a program of ours in place of one of the paper's.
type program struct {
	Name  string `mapstructure:"name"`
	Paper string `mapstructure:"paper"`
	// Form, Arguments (a size or a command line) and Threads, if not the
	// settings', are what is run.
	Form      programs.Form `mapstructure:"form"`
	Arguments string        `mapstructure:"arguments"`
	Threads   int           `mapstructure:"threads"`
	// Sched is how the recorded run is scheduled, and Record which run is taken.
	Sched  sched.Options `mapstructure:"sched"`
	Record choice        `mapstructure:"record"`
	// Reported is what the paper says of it, by the keys of columns; Why is why
	// ours differs.
	Reported map[string]string `mapstructure:"reported"`
	Why      string            `mapstructure:"why"`
}

// choice says which run of a program is recorded: the first one, from the seed on,
// of which it is true.
type choice string

const (
	whichever choice = ""        // the first
	open      choice = "open"    // the order of operations leaves a race of the program's description open
	settled   choice = "settled" // it leaves none of them open
)

// UnmarshalText accepts the choices.
func (c *choice) UnmarshalText(text []byte) error {
	*c = choice(text)
	if *c == whichever || *c == open || *c == settled {
		return nil
	}
	return fmt.Errorf("%s or %s", open, settled)
}

// plan is what lays a table out with settings from a file.
func plan(lay func(*settings) (*study.Plan, error)) func(*study.Options) (*study.Plan, error) {
	return func(o *study.Options) (*study.Plan, error) {
		s := &settings{o: o}
		file, err := o.Load(s, overriding...)
		if err != nil {
			return nil, err
		}
		if err := s.check(file); err != nil {
			return nil, err
		}
		only, err := o.Flags.GetStringSlice("only")
		if err != nil {
			return nil, err
		}
		if err := s.keep(only); err != nil {
			return nil, err
		}
		return lay(s)
	}
}

// check returns the first field that is out of range.
func (s *settings) check(f *yamlfile.File) error {
	for _, x := range []struct {
		field              string
		found, least, most int
	}{
		{"threads", s.Threads, 1, 64},
		{"cores", s.Cores, 0, 64},
		{"runs", s.Runs, 1, 1_000_000},
		{"sync_runs", s.SyncRuns, 1, 1_000_000},
		{"times", s.Times, 1, 1_000_000},
	} {
		if x.found < x.least || x.found > x.most {
			return f.Wrong(x.field, x.found, fmt.Sprintf("%d to %d", x.least, x.most))
		}
	}
	if len(s.Programs) == 0 {
		return f.Wrong("programs", "missing", "a list of programs")
	}
	for i, p := range s.Programs {
		known, err := programs.Find(p.Name)
		if err != nil {
			return f.Wrong(fmt.Sprintf("programs[%d].name", i), p.Name, "a program of guest/programs")
		}
		if !known.Has(p.Form) {
			return f.Wrong(fmt.Sprintf("programs[%d].form", i), p.Form, fmt.Sprint(known.Forms))
		}
	}
	return nil
}

// keep leaves out all programs but those named, if any are.
func (s *settings) keep(only []string) error {
	if len(only) == 0 {
		return nil
	}
	var names []string
	for _, p := range s.Programs {
		names = append(names, p.Name)
	}
	for _, name := range only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--only %s: one of %s", name, strings.Join(names, ", "))
		}
	}
	s.Programs = slices.DeleteFunc(s.Programs, func(p program) bool { return !slices.Contains(only, p.Name) })
	return nil
}

// key is what a row about a program depends on.
type key struct {
	Program     program
	Threads     int
	Cores       int
	BindNow     bool
	Seed        uint64
	Repetitions []int
}

// row plans a row of so many columns about a program, of a recorded run.
func (s *settings) row(p program, columns int, measure func(context.Context, *recorded) ([]string, error), repetitions ...int) study.Row {
	return study.Row{
		Name: p.Name, Key: key{p, s.Threads, s.Cores, s.BindNow, s.Seed, repetitions},
		Measure: func(ctx context.Context) (cells []string, err error) {
			dir, err := os.MkdirTemp("", "heddle-peregrine-")
			if err != nil {
				return nil, err
			}
			defer os.RemoveAll(dir)
			r, err := s.record(ctx, p, dir)
			var none unfit
			if errors.As(err, &none) {
				return blank(p, columns, none), nil
			}
			if err != nil {
				return nil, err
			}
			return measure(ctx, r)
		},
	}
}

// blank is the row of a program that cannot be measured: the reason is in the last
// column.
func blank(p program, columns int, reason unfit) []string {
	cells := slices.Repeat([]string{"-"}, columns)
	cells[0], cells[columns-1] = p.Name, reason.Error()
	return cells
}

// recorded is a recorded run with its hybrid schedule.
type recorded struct {
	*study.Recorded
	seed   uint64
	file   *hybrid.File
	hybrid *schedules.Made
	// passed is how many runs of the choice were passed over, because a run under
	// their hybrid schedule did not follow it.
	passed int
}

// attempts is how many runs are looked at for one of the choice, and tries how
// many of those whose hybrid schedule can be followed.
const (
	attempts = 200
	tries    = 10
)

// unfit is the error of a program of which no run can be taken.
type unfit struct{ reason string }

func (u unfit) Error() string { return u.reason }

// record records a run of a program of its choice.
func (s *settings) record(ctx context.Context, p program, dir string) (*recorded, error) {
	threads := s.Threads
	if p.Threads > 0 {
		threads = p.Threads
	}
	subject, err := study.New(p.Paper, p.Name, p.Form, study.Size(p.Arguments), threads)
	if err != nil {
		return nil, err
	}
	subject.Sched, subject.Cores, subject.BindNow = p.Sched, s.Cores, s.BindNow
	passed := 0
	for seed := s.Seed; seed < s.Seed+attempts && passed < tries; seed++ {
		r, err := subject.Record(ctx, dir, seed)
		if err != nil {
			return nil, err
		}
		fits, err := p.Record.fits(ctx, r)
		if err != nil {
			return nil, err
		}
		if fits {
			x, reason, err := s.scheduled(ctx, r)
			if err != nil {
				return nil, err
			}
			if x != nil {
				x.seed, x.passed = seed, passed
				return x, nil
			}
			s.o.Say("  %s: seed %d is passed over: %s", p.Name, seed, reason)
			passed++
		}
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	if passed == tries {
		return nil, unfit{fmt.Sprintf("of %d recorded runs none has a hybrid schedule that can be followed", tries)}
	}
	return nil, unfit{fmt.Sprintf("of the runs with seeds %d to %d none is %s", s.Seed, s.Seed+attempts-1, p.Record)}
}

// scheduled makes the hybrid schedule of a recorded run, or says why it cannot be
// followed.
func (s *settings) scheduled(ctx context.Context, r *study.Recorded) (x *recorded, reason string, err error) {
	file, err := schedules.Compute(ctx, r.Trace(), schedules.Options{})
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	if err != nil {
		return nil, err.Error(), nil
	}
	x = &recorded{Recorded: r, file: file, hybrid: &schedules.Made{Schedule: file.Schedule, Counts: file.Counts}}
	_, result, err := study.Run(ctx, r.Under(r.Config(s.Seed), x.hybrid, sched.EnforceOptions{}))
	if err != nil {
		return nil, "", err
	}
	if !result.Schedule.Followed {
		return nil, result.Schedule.Reason, nil
	}
	return x, "", nil
}
