package study

import (
	"context"
	"fmt"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/sched"
)

// Hybrid is a recorded run with its hybrid schedule.
type Hybrid struct {
	*Recorded
	// Seed is the run's, and Passed how many runs of the choice were passed over
	// before, because a run under their hybrid schedule did not follow it.
	Seed   uint64
	Passed int
	File   *hybrid.File
	Made   *schedules.Made
}

// attempts is how many runs are looked at for one of the choice, and tries how
// many of those whose hybrid schedule can be followed.
const (
	attempts = 200
	tries    = 10
)

// HybridRow plans the row of a program of which a run of its choice is recorded, and a
// hybrid schedule made.
func (s *Settings) HybridRow(p Studied, columns int, measure func(context.Context, *Hybrid) ([]string, error), repetitions ...int) Row {
	return s.Row(p, columns, func(ctx context.Context, subject *Subject, dir string) ([]string, error) {
		r, err := s.Hybrid(ctx, subject, p.Record, dir)
		if err != nil {
			return nil, err
		}
		return measure(ctx, r)
	}, repetitions...)
}

// Hybrid records a run of a choice, its trace in dir. A subject that has none is Unfit.
func (s *Settings) Hybrid(ctx context.Context, subject *Subject, which Choice, dir string) (*Hybrid, error) {
	passed := 0
	for seed := s.Seed; seed < s.Seed+attempts && passed < tries; seed++ {
		r, err := subject.Record(ctx, dir, seed)
		if err != nil {
			return nil, err
		}
		fits, err := which.fits(ctx, r)
		if err != nil {
			return nil, err
		}
		if fits {
			x, reason, err := s.scheduled(ctx, r)
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
	if passed == tries {
		return nil, Unfit{fmt.Sprintf("of %d recorded runs none has a hybrid schedule that can be followed", tries)}
	}
	return nil, Unfit{fmt.Sprintf("of the runs with seeds %d to %d none is %s", s.Seed, s.Seed+attempts-1, which)}
}

// scheduled makes the hybrid schedule of a recorded run, or says why it cannot be
// followed.
func (s *Settings) scheduled(ctx context.Context, r *Recorded) (x *Hybrid, reason string, err error) {
	file, err := schedules.Compute(ctx, r.Trace(), schedules.Options{})
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	if err != nil {
		return nil, err.Error(), nil
	}
	x = &Hybrid{Recorded: r, File: file, Made: &schedules.Made{Schedule: file.Schedule, Counts: file.Counts}}
	_, result, err := Run(ctx, r.Under(r.Config(s.Seed), x.Made, sched.EnforceOptions{}))
	if err != nil {
		return nil, "", err
	}
	if !result.Schedule.Followed {
		return nil, result.Schedule.Reason, nil
	}
	return x, "", nil
}

// Timed is what runs of own seeds come to: their mean virtual time in cycles, and of
// the first one what it executed and what was done for its schedule, if it had one.
type Timed struct {
	Cycles       float64
	Instructions uint64
	Schedule     *heddle.ScheduleResult
}

// Makespan is the mean virtual time of runs of own seeds, under a schedule if
// there is one.
func (s *Settings) Makespan(ctx context.Context, r *Recorded, m *schedules.Made, o sched.EnforceOptions) (float64, error) {
	t, err := s.Time(ctx, r, m, o, func(*emu.Costs) {})
	if err != nil {
		return 0, err
	}
	return t.Cycles, nil
}

// Time is Makespan with costs that may be others than the default.
func (s *Settings) Time(ctx context.Context, r *Recorded, m *schedules.Made, o sched.EnforceOptions, price func(*emu.Costs)) (*Timed, error) {
	results := make([]*heddle.Result, s.Times)
	err := Each(ctx, s.Times, func(i int) error {
		c := r.Config(s.Seed + uint64(i))
		price(&c.Costs)
		if m != nil {
			c = r.Under(c, m, o)
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
	t := &Timed{Instructions: results[0].Instructions, Schedule: results[0].Schedule}
	for _, result := range results {
		t.Cycles += float64(result.Cycles) / float64(s.Times)
	}
	return t, nil
}
