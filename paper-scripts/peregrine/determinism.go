package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/experiments/table"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// racy are the programs of the paper's table 1, and what the tables say of them.
var racy = []struct {
	stand
	races, constraints string
	sync               string // whether sync-schedules are deterministic
}{
	{stand{"Apache", "apache-21287", programs.Buggy, study.Trigger}, "0", "0", "yes"},
	{stand{"PBZip2", "compressor", programs.Buggy, study.Trigger}, "4", "3", "no"},
	{stand{"barnes", "barnes", programs.Buggy, study.Trigger}, "5", "1", "no"},
	{stand{"fft", "fft", programs.Buggy, study.Trigger}, "10", "4", "no"},
	{stand{"lu-non-contig", "lu-non-contig", programs.Buggy, study.Trigger}, "10", "7", "no"},
	{stand{"streamcluster", "streamcluster", programs.Buggy, study.Trigger}, "0", "0", "yes"},
	{stand{"racey", "racey", programs.Buggy, study.Test}, "167974", "9963", "no"},
}

// eachRacy calls do for the racy programs that are wanted.
func eachRacy(s *settings, do func(i int, subject *study.Subject) error) error {
	for i, r := range racy {
		list, err := s.subjects([]stand{r.stand})
		if err != nil {
			return err
		}
		for _, subject := range list {
			if err := do(i, subject); err != nil {
				return err
			}
		}
	}
	return nil
}

func table1(_ context.Context, s *settings) (*table.Table, error) {
	t := &table.Table{Head: []table.Column{
		{Name: "the paper's", Key: "paper"}, {Name: "ours", Key: "program"}, {Name: "races on", Key: "races"}, {Name: "what goes wrong", Key: "why"},
	}}
	return t, eachRacy(s, func(i int, subject *study.Subject) error {
		var on, why []string
		for _, r := range subject.Program.Races {
			on = append(on, r.Object)
			why = append(why, r.Why)
		}
		t.Rows = append(t.Rows, []string{racy[i].paper, racy[i].name, strings.Join(on, ", "), strings.Join(why, " ")})
		return nil
	})
}

// recorded records a run of a subject in a temporary folder and hands it on.
func (s *settings) recorded(ctx context.Context, subject *study.Subject, do func(*study.Recorded) error) error {
	dir, err := os.MkdirTemp("", "heddle-peregrine-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s.say("%s: recording", subject.Program.Name)
	r, err := subject.Record(ctx, dir, s.seed)
	if err != nil {
		return err
	}
	return do(r)
}

func table2(ctx context.Context, s *settings) (*table.Table, error) {
	t := &table.Table{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "races", Key: "races", Number: true},
			{Name: "paper", Key: "paper_races", Number: true},
			{Name: "constraints", Key: "constraints", Number: true},
			{Name: "paper", Key: "paper_constraints", Number: true},
			{Name: "pruned", Key: "pruned", Number: true},
			{Name: "also reduced", Key: "reduced", Number: true},
		},
		Notes: []string{
			"Races are dynamic ones that the order of synchronization operations leaves unordered; constraints are left when those that others imply are pruned (section 3.2).",
			"\"Also reduced\" is what is left by transitive reduction, beyond the paper.",
			"The paper counts 0 races for Apache and streamcluster, whose operations order their accesses; those of the stand-ins leave some unordered.",
		},
	}
	return t, eachRacy(s, func(i int, subject *study.Subject) error {
		return s.recorded(ctx, subject, func(r *study.Recorded) error {
			m, err := r.Make(ctx, schedules.Options{})
			if err != nil {
				return err
			}
			c := m.Counts
			pruned := "-"
			if c.Unpruned > 0 {
				pruned = fmt.Sprintf("%.0f %%", 100-100*float64(c.Subsumed)/float64(c.Unpruned))
			}
			t.Rows = append(t.Rows, []string{
				racy[i].name, fmt.Sprint(c.Races), racy[i].races, fmt.Sprint(c.Subsumed), racy[i].constraints, pruned, fmt.Sprint(c.Reduced),
			})
			return nil
		})
	})
}

// verdict says whether runs were deterministic, and how many were not.
func verdict(different, runs int) string {
	if different == 0 {
		return "yes"
	}
	return fmt.Sprintf("no (%d of %d)", different, runs)
}

func table3(ctx context.Context, s *settings) (*table.Table, error) {
	t := &table.Table{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "sync-schedule", Key: "sync"},
			{Name: "paper", Key: "paper_sync"},
			{Name: "hybrid schedule", Key: "hybrid"},
			{Name: "paper", Key: "paper_hybrid"},
			{Name: "to the last bit", Key: "exact"},
		},
		Notes: []string{
			fmt.Sprintf("%d runs under sync-schedules and %d under hybrid schedules, of own seeds, on 2 to 16 cores, with injected delays. "+
				"As in the paper, runs are equivalent that have the same output and the same end.", s.syncRuns, s.runs),
			"\"To the last bit\": final memory and each thread's number of instructions are the same too, under hybrid schedules.",
		},
	}
	return t, eachRacy(s, func(i int, subject *study.Subject) error {
		return s.recorded(ctx, subject, func(r *study.Recorded) error {
			hybrid, err := r.Make(ctx, schedules.Options{})
			if err != nil {
				return err
			}
			s.say("%s: %d runs under its hybrid schedule", racy[i].name, s.runs)
			different, inexact, err := s.repeat(ctx, r, hybrid, sched.EnforceOptions{}, s.runs)
			if err != nil {
				return err
			}
			s.say("%s: %d runs under its sync-schedule", racy[i].name, s.syncRuns)
			loose, _, err := s.repeat(ctx, r, hybrid, sched.EnforceOptions{SyncOnly: true, Free: true}, s.syncRuns)
			if err != nil {
				return err
			}
			t.Rows = append(t.Rows, []string{
				racy[i].name, verdict(loose, s.syncRuns), racy[i].sync, verdict(different, s.runs), "yes", verdict(inexact, s.runs),
			})
			return nil
		})
	})
}

// repeat runs a subject many times under a schedule. It returns how many runs
// differ from the recorded one in output or end, and how many from the first
// in memory or a thread's instructions; a run that does not follow the schedule
// differs.
func (s *settings) repeat(ctx context.Context, r *study.Recorded, m *schedules.Made, o sched.EnforceOptions, runs int) (different, inexact int, err error) {
	outcomes := make([]study.Outcome, runs)
	results := make([]*heddle.Result, runs)
	err = study.Each(runs, func(i int) error {
		var err error
		outcomes[i], results[i], err = study.Run(ctx, r.Under(r.Varied(i), m, o))
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	for i := range runs {
		if outcomes[i] != r.Outcome || !results[i].Schedule.Followed {
			different++
			s.say("%s: run %d: %s, status %d %s", r.Program.Name, i, results[i].Outcome, results[i].ExitCode, results[i].Schedule.Reason)
		}
		if results[i].StateDigest != results[0].StateDigest {
			inexact++
		}
	}
	return different, inexact, nil
}
