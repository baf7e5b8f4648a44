package main

import (
	"context"
	"fmt"
	"os"

	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// runMode is a way to run a program.
type runMode struct {
	name, key string
	// config returns the configuration of a run of the subject; r and m are the memoized
	// run and its schedule, nil unless the mode memoizes.
	memoizes bool
	config   func(c machine.Config, r *study.RecordedRun, m *peregrine.Schedule) machine.Config
}

// runModes are the paper's three.
var runModes = []runMode{
	{name: "free", key: "free", config: func(c machine.Config, _ *study.RecordedRun, _ *peregrine.Schedule) machine.Config { return c }},
	{name: "CoreDet", key: "coredet", config: func(c machine.Config, _ *study.RecordedRun, _ *peregrine.Schedule) machine.Config {
		c.Sched = sched.Options{Policy: sched.CoreDet}
		return c
	}},
	{name: "TERN", key: "tern", memoizes: true, config: func(c machine.Config, r *study.RecordedRun, m *peregrine.Schedule) machine.Config {
		c = r.ConfigUnder(c, m, enforce.Options{SyncOnly: true, Free: true})
		c.MaxInstructions = 0 // the recorded run was on a smaller input
		return c
	}},
}

// planRow plans the runs of a mode with a number of threads.
func (s *table4Settings) planRow(p buggyProgram, threads int, m runMode) study.Row {
	return study.Row{
		Name: fmt.Sprintf("%s %d %s", p.Name, threads, m.name), Key: []any{p, threads, s.Cores, s.Seed, s.Runs, m.key},
		Measure: func(ctx context.Context) ([]string, error) {
			subject, err := study.New("fft", p.Name, suite.Buggy, study.Test, threads)
			if err != nil {
				return nil, err
			}
			subject.Cores = s.Cores
			var recorded *study.RecordedRun
			var made *peregrine.Schedule
			if m.memoizes {
				if recorded, made, err = s.memoizeGoodRun(ctx, subject.WithArguments(p.Sizes[0].Arguments)); err != nil {
					return nil, err
				}
			}
			cells, left := []string{fmt.Sprint(threads), m.name}, 0
			for _, size := range p.Sizes {
				shown, gone, err := s.countRuns(ctx, subject.WithArguments(size.Arguments), func(c machine.Config) machine.Config {
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

// memoizeGoodRun records runs until one ends well, and makes its schedule.
func (s *table4Settings) memoizeGoodRun(ctx context.Context, subject *study.Subject) (*study.RecordedRun, *peregrine.Schedule, error) {
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
			m, err := r.Make(ctx, peregrine.Options{SyncOnly: true, Portable: true})
			return r, m, err
		}
		if err := r.Close(); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("%s shows its bug in each of 100 runs", subject.Program.Name)
}

// countRuns counts the runs that do not end well, and the runs that left their schedule.
func (s *table4Settings) countRuns(ctx context.Context, subject *study.Subject, config func(machine.Config) machine.Config) (shown, left int, err error) {
	outcomes := make([]study.Outcome, s.Runs)
	results := make([]*machine.Result, s.Runs)
	steps := study.NewSteps(s.o, subject.Program.Name, s.Runs)
	err = study.RunParallel(ctx, s.Runs, func(i int) error {
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
