package main

import (
	"context"
	"fmt"

	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// whyColumn is the last column of most tables.
var whyColumn = table.Column{Name: "why ours differs", Key: "why"}

// planOverheadRow plans a row of a program of figures 11 and 12: cells formats the times
// under its schedule of operations, one for each way of following it, relative to the time
// without.
func planOverheadRow(s *study.Settings, x study.ProgramStudy, columns int, ways []enforce.Options, cells func(times []float64) []string) study.Row {
	return s.Row(x, columns, func(ctx context.Context, subject *study.Subject, dir string) ([]string, error) {
		r, err := subject.Record(ctx, dir, s.Seed)
		if err != nil {
			return nil, err
		}
		m, err := r.Make(ctx, peregrine.Options{SyncOnly: true})
		if err != nil {
			return nil, err
		}
		free, err := s.Makespan(ctx, r, nil, enforce.Options{})
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

// relayOptions is TERN's way of following a schedule: semaphores pass the turn on (section
// 5.4); waits at barriers and sleeps may be skipped (section 7.2).
func relayOptions(skip bool) enforce.Options {
	return enforce.Options{SyncOnly: true, Relay: enforce.SemaphoreRelay, SkipWait: skip}
}

// formatOverhead is the excess of a relative time over one, in percent.
func formatOverhead(times float64) string { return fmt.Sprintf("%+.1f %%", 100*(times-1)) }

func planFigure11(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "time", Key: "time", Number: true},
			{Name: "overhead", Key: "overhead", Number: true},
			{Name: "paper", Key: "paper_overhead"},
			whyColumn,
		},
		Notes: []string{
			fmt.Sprintf("Virtual time under schedules of operations, passed on by semaphores, without waits at barriers and sleeps, in times of that without; means of %d runs, 50 in the paper.", s.Times),
			"The paper's figure is a plot: its text says which programs have almost no overhead, and gives that of water-nsquared.",
			"Ours are far above where programs are short: an operation in its turn costs more than the few thousand instructions between two of them (configs/tern/efficiency.yaml has the sizes).",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, planOverheadRow(s, x, len(p.Head), []enforce.Options{relayOptions(true)}, func(times []float64) []string {
			return []string{x.Name, fmt.Sprintf("%.3f", times[0]), formatOverhead(times[0]), x.PaperValue("overhead"), x.Why}
		}))
	}
	return p, nil
}

func planFigure12(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "all waits", Key: "all", Number: true},
			{Name: "overhead", Key: "overhead_all", Number: true},
			{Name: "paper", Key: "paper_all"},
			{Name: "skipped", Key: "skipped", Number: true},
			{Name: "overhead", Key: "overhead_skipped", Number: true},
			{Name: "paper", Key: "paper_skipped"},
			whyColumn,
		},
		Notes: []string{
			fmt.Sprintf("As figure 11, with all waits and without those at barriers and sleeps; means of %d runs.", s.Times),
			"The paper's text says that skipping makes four programs faster, of which it names three; of the others the effect is negligible.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, planOverheadRow(s, x, len(p.Head), []enforce.Options{relayOptions(false), relayOptions(true)}, func(times []float64) []string {
			return []string{
				x.Name, fmt.Sprintf("%.3f", times[0]), formatOverhead(times[0]), x.PaperValue("all"),
				fmt.Sprintf("%.3f", times[1]), formatOverhead(times[1]), x.PaperValue("skipped"), x.Why,
			}
		}))
	}
	return p, nil
}

func planTable3(s *study.Settings) (*study.Plan, error) {
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
			return append(append([]string{x.Name}, a.Cells()...), x.PaperValue("annotations"), x.PaperValue("what")), nil
		}))
	}
	return p, nil
}
