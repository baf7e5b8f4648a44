package main

import (
	"context"
	"fmt"

	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/experiments/table"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

func figure11(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "sync-schedule", Key: "sync", Number: true},
			{Name: "hybrid", Key: "hybrid", Number: true},
			{Name: "paper: hybrid", Key: "paper_hybrid"},
			{Name: "hybrid over sync", Key: "over", Number: true},
			{Name: "paper", Key: "paper_over"},
			{Name: "mem-schedule", Key: "mem", Number: true},
			{Name: "paper", Key: "paper_mem"},
			why,
		},
		Notes: []string{
			fmt.Sprintf("Virtual time in times of that of runs without a schedule, means of %d runs, with flag relay and without waits at barriers and sleeps, as PEREGRINE runs.", s.Times),
			"The paper's figure is a plot: its text gives the numbers that are here, and for mem-schedules the 1.2 to 6 times that another system reports.",
			"Ours lie above 1 because the programs are short: an operation in its turn costs more than the few thousand instructions between two of them.",
			"Hybrid schedules cost much more than sync-schedules where a thread runs long between an operation and a constraint (swaptions, compressor, water-spatial): each instruction there has a call of slot(), as in PEREGRINE, but ours have constraints on the C library's memory, too. Functions are looked up before the run, or the dynamic linker would have most constraints.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.HybridRow(x, len(p.Head), func(ctx context.Context, r *study.Hybrid) ([]string, error) {
			ratios, err := ratios(ctx, s, r)
			if err != nil {
				return nil, err
			}
			return []string{
				x.Name, fmt.Sprintf("%.3f", ratios[0]), fmt.Sprintf("%.3f", ratios[1]), x.Reported["hybrid"],
				fmt.Sprintf("%+.1f %%", 100*(ratios[1]/ratios[0]-1)), x.Reported["over"], fmt.Sprintf("%.2f", ratios[2]), "1.2 to 6", x.Why,
			}, nil
		}, s.Times))
	}
	return p, nil
}

// ratios are the times under a sync-schedule, a hybrid schedule and a mem-schedule,
// in times of that without.
func ratios(ctx context.Context, s *study.Settings, r *study.Hybrid) ([]float64, error) {
	free, err := s.Makespan(ctx, r.Recorded, nil, sched.EnforceOptions{})
	if err != nil {
		return nil, err
	}
	var ratios []float64
	for _, o := range []schedules.Options{{SyncOnly: true}, {}, {Every: true}} {
		m := r.Made
		if o.SyncOnly || o.Every {
			if m, err = r.Make(ctx, o); err != nil {
				return nil, err
			}
		}
		under, err := s.Makespan(ctx, r.Recorded, m, sched.EnforceOptions{Relay: sched.FlagRelay, SkipWait: true})
		if err != nil {
			return nil, err
		}
		ratios = append(ratios, under/free)
	}
	return ratios, nil
}

func figure12(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "flag relay", Key: "flag", Number: true},
			{Name: "skip waits", Key: "skip", Number: true},
			{Name: "both", Key: "both", Number: true},
			{Name: "paper: faster by", Key: "paper"},
			why,
		},
		Notes: []string{
			fmt.Sprintf("Virtual time under the hybrid schedule with semaphore relay and all waits, in times of that with each of the two, and with both; means of %d runs.", s.Times),
			"The paper's figure is a plot: its text says which programs each of the two makes faster.",
			"Our programs wait at barriers for the slowest thread, and under a schedule for their turns anyway: so little is won by leaving the waits out.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.HybridRow(x, len(p.Head), func(ctx context.Context, r *study.Hybrid) ([]string, error) {
			var times []float64
			for _, o := range []sched.EnforceOptions{
				{}, {Relay: sched.FlagRelay}, {SkipWait: true}, {Relay: sched.FlagRelay, SkipWait: true},
			} {
				cycles, err := s.Makespan(ctx, r.Recorded, r.Made, o)
				if err != nil {
					return nil, err
				}
				times = append(times, cycles)
			}
			cells := []string{x.Name}
			for _, cycles := range times[1:] {
				cells = append(cells, fmt.Sprintf("%.2f", times[0]/cycles))
			}
			return append(cells, x.Reported["faster"], x.Why), nil
		}, s.Times))
	}
	return p, nil
}
