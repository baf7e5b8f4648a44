package main

import (
	"context"
	"fmt"
	"os"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// mode is a way to run a program.
type mode struct {
	name, key string
	// config is a run's, of the subject; r and m are what was memoized, nil unless
	// the mode memoizes.
	memoizes bool
	config   func(c heddle.Config, r *study.Recorded, m *schedules.Made) heddle.Config
}

// modes are the paper's three.
var modes = []mode{
	{name: "free", key: "free", config: func(c heddle.Config, _ *study.Recorded, _ *schedules.Made) heddle.Config { return c }},
	{name: "CoreDet", key: "coredet", config: func(c heddle.Config, _ *study.Recorded, _ *schedules.Made) heddle.Config {
		c.Sched = sched.Options{Policy: sched.CoreDet}
		return c
	}},
	{name: "TERN", key: "tern", memoizes: true, config: func(c heddle.Config, r *study.Recorded, m *schedules.Made) heddle.Config {
		c = r.Under(c, m, sched.EnforceOptions{SyncOnly: true, Free: true})
		c.MaxInstructions = 0 // the recorded run was on a smaller input
		return c
	}},
}

// row plans the runs of a mode with a number of threads.
func (s *settings) row(p program, threads int, m mode) study.Row {
	return study.Row{
		Name: fmt.Sprintf("%s %d %s", p.Name, threads, m.name), Key: []any{p, threads, s.Cores, s.Seed, s.Runs, m.key},
		Measure: func(ctx context.Context) ([]string, error) {
			subject, err := study.New("fft", p.Name, programs.Buggy, study.Test, threads)
			if err != nil {
				return nil, err
			}
			subject.Cores = s.Cores
			var recorded *study.Recorded
			var made *schedules.Made
			if m.memoizes {
				if recorded, made, err = s.memoize(ctx, subject.With(p.Sizes[0].Arguments)); err != nil {
					return nil, err
				}
			}
			cells, left := []string{fmt.Sprint(threads), m.name}, 0
			for _, size := range p.Sizes {
				shown, gone, err := s.runs(ctx, subject.With(size.Arguments), func(c heddle.Config) heddle.Config {
					return m.config(c, recorded, made)
				})
				if err != nil {
					return nil, err
				}
				cells, left = append(cells, fmt.Sprint(shown)), left+gone
			}
			return append(cells, s.Reported[m.key], fmt.Sprint(left)), nil
		},
	}
}

// memoize records runs until one is right, and makes its schedule.
func (s *settings) memoize(ctx context.Context, subject *study.Subject) (*study.Recorded, *schedules.Made, error) {
	dir, err := os.MkdirTemp("", "heddle-tern-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	for seed := s.Seed; seed < s.Seed+100; seed++ {
		r, err := subject.Record(ctx, dir, seed)
		if err != nil {
			return nil, nil, err
		}
		if r.Outcome.ExitCode == 0 {
			m, err := r.Make(ctx, schedules.Options{SyncOnly: true, Portable: true})
			return r, m, err
		}
		if err := r.Close(); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("%s shows its bug in each of 100 runs", subject.Program.Name)
}

// runs counts the runs that do not end well, and those that left their schedule.
func (s *settings) runs(ctx context.Context, subject *study.Subject, config func(heddle.Config) heddle.Config) (shown, left int, err error) {
	outcomes := make([]study.Outcome, s.Runs)
	results := make([]*heddle.Result, s.Runs)
	steps := study.NewSteps(s.o, subject.Program.Name, s.Runs)
	err = study.Each(ctx, s.Runs, func(i int) error {
		var err error
		outcomes[i], results[i], err = study.Run(ctx, config(subject.Config(s.Seed+uint64(i))))
		steps.Step()
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	for i, o := range outcomes {
		if o.ExitCode != 0 {
			shown++
		}
		if r := results[i].Schedule; r != nil && !r.Followed {
			left++
		}
	}
	return shown, left, nil
}
