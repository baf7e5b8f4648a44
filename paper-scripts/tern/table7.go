package main

import (
	"context"
	"fmt"

	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// maxRecordedRuns is the number of recorded runs of a program among which one must show the
// bug, and one must not.
const maxRecordedRuns = 100

func planTable7(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "the paper's", Key: "paper"},
			{Name: "reproduced", Key: "reproduced", Number: true},
			{Name: "avoided", Key: "avoided", Number: true},
			{Name: "paper", Key: "paper_both"},
			{Name: "with constraints: reproduced", Key: "hybrid_reproduced", Number: true},
			{Name: "avoided", Key: "hybrid_avoided", Number: true},
			whyColumn,
		},
		Notes: []string{
			fmt.Sprintf("Of %d runs with own seeds, numbers of cores and injected delays: how many show the bug under the schedule of operations of a run that showed it, and how many do not under that of a run that did not; then the same under hybrid schedules, which order races too.", s.Runs),
			"The paper's table with its five bugs is not in the text that we have; these are the five that PEREGRINE took from the same studies.",
			"\"Left\" are runs that left the schedule and went on without. Where a bug is a race that the order of operations leaves open (PEREGRINE's table 3), a schedule of operations alone need not settle it; the paper's settled all five.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.Row(x, len(p.Head), func(ctx context.Context, subject *study.Subject, dir string) ([]string, error) {
			cells := []string{x.Name, x.Paper, "", "", "all, all", "", "", x.Why}
			for i, failing := range []bool{true, false} {
				r, err := recordRun(ctx, s, subject, dir, failing)
				if err != nil {
					return nil, err
				}
				for k, o := range []peregrine.Options{{SyncOnly: true}, {}} {
					if cells[2+i+3*k], err = countAlike(ctx, s, r, o, failing); err != nil {
						return nil, err
					}
				}
			}
			return cells, nil
		}, s.Runs))
	}
	return p, nil
}

// recordRun records the first run that shows the bug, or that does not.
func recordRun(ctx context.Context, s *study.Settings, subject *study.Subject, dir string, failing bool) (*study.RecordedRun, error) {
	for seed := s.Seed; seed < s.Seed+maxRecordedRuns; seed++ {
		r, err := subject.Record(ctx, dir, seed)
		if err != nil {
			return nil, err
		}
		if (r.Outcome.ExitCode != 0) == failing {
			s.Say("  %s: seed %d, fails: %v", subject.Program.Name, seed, failing)
			return r, nil
		}
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	return nil, study.Unmeasurable{Reason: fmt.Sprintf("of %d recorded runs all end alike: the bug shows in all or in none", maxRecordedRuns)}
}

// countAlike counts the runs under the schedule of a recorded run that show the bug if the
// recorded run did, or do not if it did not.
func countAlike(ctx context.Context, s *study.Settings, r *study.RecordedRun, o peregrine.Options, failing bool) (string, error) {
	m, err := r.Make(ctx, o)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "no schedule", nil
	}
	t, err := r.Repeat(ctx, s.Options, m, enforce.Options{SyncOnly: o.SyncOnly, Free: true}, s.Runs)
	if err != nil {
		return "", err
	}
	same := t.Failed
	if !failing {
		same = t.Runs - t.Failed
	}
	text := fmt.Sprintf("%d of %d", same, t.Runs)
	if t.Left > 0 {
		text += fmt.Sprintf(", %d left", t.Left)
	}
	return text, nil
}
