package study

import (
	"context"
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// HybridRun is a recorded run with its hybrid schedule.
type HybridRun struct {
	*RecordedRun
	// Seed is the run's, and Passed how many runs of the choice were passed over
	// before, because a run under their hybrid schedule did not follow it.
	Seed   uint64
	Passed int
	File   *hybrid.File
	Made   *peregrine.Schedule
}

// attempts is how many runs are looked at for one of the choice, and tries how
// many of those whose hybrid schedule can be followed.
const (
	maxRecordings = 200
	maxSchedules  = 10
)

// HybridRow plans the row of a program of which a run of its choice is recorded, and a
// hybrid schedule made.
func (s *Settings) HybridRow(p ProgramStudy, columns int, measure func(context.Context, *HybridRun) ([]string, error), repetitions ...int) Row {
	return s.Row(p, columns, func(ctx context.Context, subject *Subject, dir string) ([]string, error) {
		r, err := s.Hybrid(ctx, subject, p.Record, dir)
		if err != nil {
			return nil, err
		}
		return measure(ctx, r)
	}, repetitions...)
}

// Hybrid records a run of a choice, its trace in dir. A subject that has none is Unfit.
func (s *Settings) Hybrid(ctx context.Context, subject *Subject, which Choice, dir string) (*HybridRun, error) {
	passed := 0
	for seed := s.Seed; seed < s.Seed+maxRecordings && passed < maxSchedules; seed++ {
		r, err := subject.Record(ctx, dir, seed)
		if err != nil {
			return nil, err
		}
		fits, err := which.isFulfilledBy(ctx, r)
		if err != nil {
			return nil, err
		}
		if fits {
			x, reason, err := s.makeHybrid(ctx, r)
			if err != nil {
				return nil, err
			}
			if x != nil {
				x.Seed, x.Passed = seed, passed
				return x, nil
			}
			s.Say("  %s: seed %d is passed over: %s", subject.Program.Name, seed, reason)
			passed++
		}
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	if passed == maxSchedules {
		return nil, Unmeasurable{fmt.Sprintf("of %d recorded runs none has a hybrid schedule that can be followed", maxSchedules)}
	}
	return nil, Unmeasurable{fmt.Sprintf("of the runs with seeds %d to %d none is %s", s.Seed, s.Seed+maxRecordings-1, which)}
}

// makeHybrid makes the hybrid schedule of a recorded run, or says why it cannot be
// followed.
func (s *Settings) makeHybrid(ctx context.Context, r *RecordedRun) (x *HybridRun, reason string, err error) {
	file, err := peregrine.ComputeFile(ctx, r.Trace(), peregrine.Options{})
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	if err != nil {
		return nil, err.Error(), nil
	}
	x = &HybridRun{RecordedRun: r, File: file, Made: &peregrine.Schedule{Schedule: file.Schedule, Counts: file.Counts}}
	_, result, err := Run(ctx, r.ConfigUnder(r.Config(s.Seed), x.Made, enforce.Options{}))
	if err != nil {
		return nil, "", err
	}
	if !result.Schedule.Followed {
		return nil, result.Schedule.Reason, nil
	}
	return x, "", nil
}

// TimedRuns is the result of runs of own seeds: their mean virtual time in cycles, and of the first
// one its instructions and the statistics of its schedule, if it had one.
type TimedRuns struct {
	Cycles       float64
	Instructions uint64
	Schedule     *machine.ScheduleResult
}

// Makespan is the mean virtual time of runs of own seeds, under a schedule if
// there is one.
func (s *Settings) Makespan(ctx context.Context, r *RecordedRun, m *peregrine.Schedule, o enforce.Options) (float64, error) {
	t, err := s.Time(ctx, r, m, o, func(*arch.Costs) {})
	if err != nil {
		return 0, err
	}
	return t.Cycles, nil
}

// Time is Makespan with costs that may be others than the default.
func (s *Settings) Time(ctx context.Context, r *RecordedRun, m *peregrine.Schedule, o enforce.Options, price func(*arch.Costs)) (*TimedRuns, error) {
	results := make([]*machine.Result, s.Times)
	err := RunParallel(ctx, s.Times, func(i int) error {
		c := r.Config(s.Seed + uint64(i))
		price(&c.Costs)
		if m != nil {
			c = r.ConfigUnder(c, m, o)
		}
		var err error
		_, results[i], err = Run(ctx, c)
		if err == nil && m != nil && !results[i].Schedule.Followed {
			err = fmt.Errorf("run %d left its schedule: %s", i, results[i].Schedule.Reason)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	t := &TimedRuns{Instructions: results[0].Instructions, Schedule: results[0].Schedule}
	for _, result := range results {
		t.Cycles += float64(result.Cycles) / float64(s.Times)
	}
	return t, nil
}
