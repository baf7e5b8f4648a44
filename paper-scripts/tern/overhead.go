package main

import (
	"context"
	"fmt"

	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/experiments/table"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// why is the last column of most tables.
var why = table.Column{Name: "why ours differs", Key: "why"}

// overhead plans a row of a program of figures 11 and 12: cells are made of the times under
// its schedule of operations, each of a way to follow it, in times of that without.
func overhead(s *study.Settings, x study.Studied, columns int, ways []sched.EnforceOptions, cells func(times []float64) []string) study.Row {
	return s.Row(x, columns, func(ctx context.Context, subject *study.Subject, dir string) ([]string, error) {
		r, err := subject.Record(ctx, dir, s.Seed)
		if err != nil {
			return nil, err
		}
		m, err := r.Make(ctx, schedules.Options{SyncOnly: true})
		if err != nil {
			return nil, err
		}
		free, err := s.Makespan(ctx, r, nil, sched.EnforceOptions{})
		if err != nil {
			return nil, err
		}
		var times []float64
		for _, o := range ways {
			under, err := s.Makespan(ctx, r, m, o)
			if err != nil {
				return nil, err
			}
			times = append(times, under/free)
		}
		return cells(times), nil
	}, s.Times)
}

// relayed is how TERN follows a schedule: semaphores pass the turn on (section 5.4); waits
// at barriers and sleeps may be left out (section 7.2).
func relayed(skip bool) sched.EnforceOptions {
	return sched.EnforceOptions{SyncOnly: true, Relay: sched.SemaphoreRelay, SkipWait: skip}
}

// percent is how much more than once something is.
func percent(times float64) string { return fmt.Sprintf("%+.1f %%", 100*(times-1)) }

func figure11(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "time", Key: "time", Number: true},
			{Name: "overhead", Key: "overhead", Number: true},
			{Name: "paper", Key: "paper_overhead"},
			why,
		},
		Notes: []string{
			fmt.Sprintf("Virtual time under schedules of operations, passed on by semaphores, without waits at barriers and sleeps, in times of that without; means of %d runs, 50 in the paper.", s.Times),
			"The paper's figure is a plot: its text says which programs have almost no overhead, and gives that of water-nsquared.",
			"Ours are far above where programs are short: an operation in its turn costs more than the few thousand instructions between two of them (configs/tern/efficiency.yaml has the sizes).",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, overhead(s, x, len(p.Head), []sched.EnforceOptions{relayed(true)}, func(times []float64) []string {
			return []string{x.Name, fmt.Sprintf("%.3f", times[0]), percent(times[0]), x.Says("overhead"), x.Why}
		}))
	}
	return p, nil
}

func figure12(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "all waits", Key: "all", Number: true},
			{Name: "overhead", Key: "overhead_all", Number: true},
			{Name: "paper", Key: "paper_all"},
			{Name: "skipped", Key: "skipped", Number: true},
			{Name: "overhead", Key: "overhead_skipped", Number: true},
			{Name: "paper", Key: "paper_skipped"},
			why,
		},
		Notes: []string{
			fmt.Sprintf("As figure 11, with all waits and without those at barriers and sleeps; means of %d runs.", s.Times),
			"The paper's text says that skipping makes four programs faster, of which it names three; of the others the effect is negligible.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, overhead(s, x, len(p.Head), []sched.EnforceOptions{relayed(false), relayed(true)}, func(times []float64) []string {
			return []string{
				x.Name, fmt.Sprintf("%.3f", times[0]), percent(times[0]), x.Says("all"),
				fmt.Sprintf("%.3f", times[1]), percent(times[1]), x.Says("skipped"), x.Why,
			}
		}))
	}
	return p, nil
}

func table3(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "lines", Key: "lines", Number: true},
			{Name: "annotations", Key: "annotations", Number: true},
			{Name: "paper", Key: "paper_annotations", Number: true},
			{Name: "the paper's", Key: "paper_what"},
		},
		Notes: []string{
			"Annotations are marks of heddle.h in the source, and functions of the program that models and summaries name. Inputs, operations and blocking calls are known without. Custom synchronization that the suite's programs have is named in no file either.",
			"The paper's numbers are those that PEREGRINE's table 6 gives for TERN: the table itself is not in the text that we have, which says 3 to 10 lines for each program.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.Row(x, len(p.Head), func(_ context.Context, subject *study.Subject, _ string) ([]string, error) {
			a, err := subject.Annotations()
			if err != nil {
				return nil, err
			}
			return append(append([]string{x.Name}, a.Cells()...), x.Says("annotations"), x.Says("what")), nil
		}))
	}
	return p, nil
}
