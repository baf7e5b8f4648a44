package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// reasonColumn is the last column of most tables.
var reasonColumn = table.Column{Name: "why ours differs", Key: "why"}

func planTable1(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{Head: []table.Column{
		{Name: "the paper's", Key: "paper"},
		{Name: "the paper: race", Key: "paper_race"},
		{Name: "ours", Key: "program"},
		{Name: "races on", Key: "races"},
		{Name: "ours: race", Key: "why"},
	}}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, study.Row{Name: x.Name, Key: x, Measure: func(context.Context) ([]string, error) {
			known, err := suite.Find(x.Name)
			if err != nil {
				return nil, err
			}
			var on, reasons []string
			for _, r := range known.Races {
				on, reasons = append(on, r.Object), append(reasons, r.Why)
			}
			return []string{x.Paper, x.Reported["race"], x.Name, strings.Join(on, ", "), strings.Join(reasons, "; ")}, nil
		}})
	}
	return p, nil
}

func planTable2(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "races", Key: "races", Number: true},
			{Name: "paper", Key: "paper_races", Number: true},
			{Name: "constraints", Key: "constraints", Number: true},
			{Name: "paper", Key: "paper_constraints", Number: true},
			{Name: "pruned", Key: "pruned", Number: true},
			{Name: "paper", Key: "paper_pruned", Number: true},
			{Name: "reduced", Key: "reduced", Number: true},
			{Name: "of its own", Key: "own", Number: true},
			reasonColumn,
		},
		Notes: []string{
			"Races are pairs of accesses that the order of synchronization operations leaves unordered; constraints are left when those that others imply are pruned (section 3.2), and pruned is by how many fewer they are than the races.",
			"\"Reduced\" is what is left of them by transitive reduction, beyond the paper; \"of its own\" how many of those are between two lines of the program's own source.",
			"The rest are on memory of the C library and the dynamic linker, or between those and the program; the paper compiles the program alone with its instrumentation.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.HybridRow(x, len(p.Head), func(_ context.Context, r *study.HybridRun) ([]string, error) {
			c := r.File.Counts
			pruned := "-"
			if c.Races > 0 {
				pruned = fmt.Sprintf("%.0f %%", 100-100*float64(c.Subsumed)/float64(c.Races))
			}
			return []string{
				x.Name, fmt.Sprint(c.Races), x.Reported["races"], fmt.Sprint(c.Subsumed), x.Reported["constraints"],
				pruned, x.Reported["pruned"], fmt.Sprint(c.Reduced), fmt.Sprint(countOwn(r)), x.Why,
			}, nil
		}))
	}
	return p, nil
}

// countOwn counts the constraints between two lines of the program's own source.
func countOwn(r *study.HybridRun) int {
	n := 0
	for _, note := range r.File.Notes {
		if isOwnConstraint(r, note) {
			n++
		}
	}
	return n
}

// isOwnConstraint reports whether a constraint with that note is one of those.
func isOwnConstraint(r *study.HybridRun, note string) bool {
	source := r.Program.Name + ".c:"
	first, second, _ := strings.Cut(note, " -> ")
	return strings.HasPrefix(first, source) && strings.HasPrefix(second, source)
}

// describeTally says whether runs were deterministic, and how many were not.
func describeTally(t *study.Tally) string {
	if t.Deterministic() {
		return "yes"
	}
	return fmt.Sprintf("no (%d of %d)", t.Different, t.Runs)
}

// describeSeed is the seed of a recorded run, with how many were passed over.
func describeSeed(r *study.HybridRun) string {
	if r.Passed == 0 {
		return fmt.Sprint(r.Seed)
	}
	return fmt.Sprintf("%d (%d passed over)", r.Seed, r.Passed)
}

func planTable3(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "sync-schedule", Key: "sync"},
			{Name: "paper", Key: "paper_sync"},
			{Name: "hybrid schedule", Key: "hybrid"},
			{Name: "paper", Key: "paper_hybrid"},
			{Name: "to the last bit", Key: "exact"},
			{Name: "seed", Key: "seed", Number: true},
			reasonColumn,
		},
		Notes: []string{
			fmt.Sprintf("%d runs under sync-schedules and %d under hybrid schedules, of own seeds, on 2 to 16 cores, with injected delays. "+
				"As in the paper, runs are equivalent that have the same output and the same end; a run that leaves the schedule is not.", s.SyncRuns, s.Runs),
			"\"To the last bit\": final memory and each thread's number of instructions are the same too, under hybrid schedules.",
			"\"Seed\" is the recorded run's: the first in which the order of operations leaves the program's race open or, where the paper finds no race, leaves none open. Runs were passed over whose hybrid schedule cannot be followed (docs/schedules.md, limits).",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.HybridRow(x, len(p.Head), func(ctx context.Context, r *study.HybridRun) ([]string, error) {
			ordered, operations, err := repeatRuns(ctx, s, r)
			if err != nil {
				return nil, err
			}
			exact := "yes"
			if ordered.States > 1 {
				exact = fmt.Sprintf("no (%d states)", ordered.States)
			}
			return []string{
				x.Name, describeTally(operations), x.Reported["sync"], describeTally(ordered), x.Reported["hybrid"], exact, describeSeed(r), x.Why,
			}, nil
		}, s.Runs, s.SyncRuns))
	}
	return p, nil
}

// repeatRuns repeats a recorded run under its hybrid schedule and its sync-schedule.
func repeatRuns(ctx context.Context, s *study.Settings, r *study.HybridRun) (ordered, operations *study.Tally, err error) {
	if ordered, err = r.Repeat(ctx, s.Options, r.Made, enforce.Options{}, s.Runs); err != nil {
		return nil, nil, err
	}
	alone, err := r.Make(ctx, peregrine.Options{SyncOnly: true})
	if err != nil {
		return nil, nil, err
	}
	operations, err = r.Repeat(ctx, s.Options, alone, enforce.Options{SyncOnly: true, Free: true}, s.SyncRuns)
	return ordered, operations, err
}

// planSuite is table 3 for all racy programs, with numbers of different results.
func planSuite(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "operations", Key: "operations", Number: true},
			{Name: "constraints", Key: "constraints", Number: true},
			{Name: "runs", Key: "runs", Number: true},
			{Name: "states", Key: "states", Number: true},
			{Name: "left", Key: "left", Number: true},
			{Name: "sync-only runs", Key: "sync_runs", Number: true},
			{Name: "results", Key: "sync_results", Number: true},
			{Name: "other than recorded", Key: "sync_different", Number: true},
			{Name: "left", Key: "sync_left", Number: true},
			{Name: "paper's sync-only", Key: "paper_sync"},
			{Name: "seed", Key: "seed"},
		},
		Notes: []string{
			"Runs of own seeds, on 2 to 16 cores, with injected delays. \"States\" are different outputs, ends, final memories and numbers of instructions of threads under the hybrid schedule; " +
				"\"results\" different outputs and ends under the sync-schedule; \"left\" are runs that did not follow the schedule to its end.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.HybridRow(x, len(p.Head), func(ctx context.Context, r *study.HybridRun) ([]string, error) {
			ordered, operations, err := repeatRuns(ctx, s, r)
			if err != nil {
				return nil, err
			}
			paper := x.Reported["sync"]
			switch paper {
			case "yes":
				paper = "one result"
			case "no":
				paper = "differs"
			default:
				paper = "-"
			}
			return []string{
				x.Name, fmt.Sprint(len(r.File.Schedule.Operations)), fmt.Sprint(len(r.File.Schedule.Constraints)),
				fmt.Sprint(ordered.Runs), fmt.Sprint(ordered.States), fmt.Sprint(ordered.Left),
				fmt.Sprint(operations.Runs), fmt.Sprint(operations.Results), fmt.Sprint(operations.Different), fmt.Sprint(operations.Left), paper, describeSeed(r),
			}, nil
		}, s.Runs, s.SyncRuns))
	}
	return p, nil
}
