package main

import (
	"context"
	"fmt"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/experiments/table"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// timed are the programs of figures 11 and 12. The figures are plots, of which
// the text gives the numbers that are here: the time under hybrid schedules, and
// the group of programs that skipping waits makes faster.
var timed = []struct {
	stand
	paper string
	group string
}{
	{stand{"PBZip2", "compressor", programs.Buggy, study.Test}, "within 15 %", ""},
	{stand{"aget", "downloader", programs.Fixed, study.Test}, "within 15 %", ""},
	{stand{"pfscan", "scanner", programs.Fixed, study.Test}, "within 15 %", ""},
	{stand{"barnes", "barnes", programs.Buggy, study.Test}, "below 1", "flag relay, skip"},
	{stand{"fft", "fft", programs.Buggy, study.Test}, "within 15 %", ""},
	{stand{"lu-contig", "lu-contig", programs.Fixed, study.Test}, "within 15 %", ""},
	{stand{"lu-non-contig", "lu-non-contig", programs.Buggy, study.Test}, "below 1", "flag relay, skip"},
	{stand{"radix", "radix", programs.Fixed, study.Test}, "below 1", "flag relay, skip"},
	{stand{"water-spatial", "water-spatial", programs.Fixed, study.Test}, "below 1", "flag relay, skip"},
	{stand{"water-nsquared", "water-nsquared", programs.Fixed, study.Test}, "1.23", "flag relay"},
	{stand{"ocean", "ocean", programs.Fixed, study.Test}, "below 1", "flag relay, skip"},
	{stand{"fmm", "fmm", programs.Fixed, study.Test}, "within 15 %", ""},
	{stand{"cholesky", "cholesky", programs.Fixed, study.Test}, "1.47", "flag relay"},
	{stand{"blackscholes", "blackscholes", programs.Fixed, study.Test}, "within 15 %", ""},
	{stand{"swaptions", "swaptions", programs.Fixed, study.Test}, "within 15 %", ""},
	{stand{"streamcluster", "streamcluster", programs.Buggy, study.Test}, "within 15 %", ""},
}

// eachTimed calls do with a recorded run of each program that is wanted.
func eachTimed(ctx context.Context, s *settings, do func(i int, r *study.Recorded) error) error {
	for i, p := range timed {
		list, err := s.subjects([]stand{p.stand})
		if err != nil {
			return err
		}
		for _, subject := range list {
			if err := s.recorded(ctx, subject, func(r *study.Recorded) error { return do(i, r) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// makespan is the mean virtual time of runs of own seeds, under a schedule if
// there is one.
func (s *settings) makespan(ctx context.Context, r *study.Recorded, m *schedules.Made, o sched.EnforceOptions) (float64, error) {
	results := make([]*heddle.Result, s.times)
	err := study.Each(s.times, func(i int) error {
		c := r.Config(s.seed + uint64(i))
		if m != nil {
			c = r.Under(c, m, o)
		}
		var err error
		_, results[i], err = study.Run(ctx, c)
		if err == nil && m != nil && !results[i].Schedule.Followed {
			err = fmt.Errorf("%s left its schedule: %s", r.Program.Name, results[i].Schedule.Reason)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, result := range results {
		sum += float64(result.Cycles) / float64(s.times)
	}
	return sum, nil
}

func figure11(ctx context.Context, s *settings) (*table.Table, error) {
	t := &table.Table{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "sync-schedule", Key: "sync", Number: true},
			{Name: "hybrid", Key: "hybrid", Number: true},
			{Name: "paper", Key: "paper_hybrid"},
			{Name: "hybrid over sync", Key: "over", Number: true},
			{Name: "mem-schedule", Key: "mem", Number: true},
		},
		Notes: []string{
			"Virtual time in times of that of runs without a schedule, with flag relay and without waits at barriers and sleeps, as PEREGRINE runs.",
			"The paper: at most 5.4 % from sync-schedule to hybrid schedule, 13.4 % for water-nsquared; 1.2 to 6 times for a mem-schedule (another system's).",
		},
	}
	fast := sched.EnforceOptions{Relay: sched.FlagRelay, SkipWait: true}
	return t, eachTimed(ctx, s, func(i int, r *study.Recorded) error {
		free, err := s.makespan(ctx, r, nil, sched.EnforceOptions{})
		if err != nil {
			return err
		}
		var ratios []float64
		for _, o := range []schedules.Options{{SyncOnly: true}, {}, {Every: true}} {
			m, err := r.Make(ctx, o)
			if err != nil {
				return err
			}
			under, err := s.makespan(ctx, r, m, fast)
			if err != nil {
				return err
			}
			ratios = append(ratios, under/free)
		}
		t.Rows = append(t.Rows, []string{
			timed[i].name, fmt.Sprintf("%.3f", ratios[0]), fmt.Sprintf("%.3f", ratios[1]), timed[i].paper,
			fmt.Sprintf("%+.1f %%", 100*(ratios[1]/ratios[0]-1)), fmt.Sprintf("%.2f", ratios[2]),
		})
		return nil
	})
}

func figure12(ctx context.Context, s *settings) (*table.Table, error) {
	t := &table.Table{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "flag relay", Key: "flag", Number: true},
			{Name: "skip waits", Key: "skip", Number: true},
			{Name: "both", Key: "both", Number: true},
			{Name: "paper: faster by", Key: "paper"},
		},
		Notes: []string{"Virtual time under the hybrid schedule with semaphore relay and all waits, in times of that with each of the two, and with both."},
	}
	return t, eachTimed(ctx, s, func(i int, r *study.Recorded) error {
		m, err := r.Make(ctx, schedules.Options{})
		if err != nil {
			return err
		}
		var times []float64
		for _, o := range []sched.EnforceOptions{
			{}, {Relay: sched.FlagRelay}, {SkipWait: true}, {Relay: sched.FlagRelay, SkipWait: true},
		} {
			cycles, err := s.makespan(ctx, r, m, o)
			if err != nil {
				return err
			}
			times = append(times, cycles)
		}
		row := []string{timed[i].name}
		for _, cycles := range times[1:] {
			row = append(row, fmt.Sprintf("%.2f", times[0]/cycles))
		}
		t.Rows = append(t.Rows, append(row, timed[i].group))
		return nil
	})
}
