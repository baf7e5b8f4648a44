package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// table2 has a row for each bug.
func table2(s *settings) *study.Plan {
	p := &study.Plan{Head: []table.Column{
		{Name: "the paper's", Key: "paper"},
		{Name: "ours", Key: "program"},
		{Name: "paper's outcome", Key: "paper_outcome"},
		{Name: "our outcomes", Key: "outcomes"},
		{Name: "paper: survived, detected", Key: "paper_survived"},
		{Name: "ours: survived", Key: "survived", Number: true},
		{Name: "detected", Key: "detected", Number: true},
		{Name: "seeds", Key: "seeds", Number: true},
		{Name: "other outcomes, because", Key: "why"},
	}, Notes: []string{
		fmt.Sprintf("%d trials of each bug: the first seeds with which it manifests under Frost's shepherding, when nothing survives it. An outcome is", s.Trials),
		"that of a run's first epoch with a race.",
	}}
	for _, b := range s.Bugs {
		p.Rows = append(p.Rows, study.Row{
			Name: b.Name, Key: []any{b, s.Trials, s.Hang},
			Measure: func(ctx context.Context) ([]string, error) { return s.trials(ctx, b) },
		})
	}
	return p
}

// mostSeeds is how many seeds are looked at for each trial that is wanted.
const mostSeeds = 40

// trials makes the row of a bug.
func (s *settings) trials(ctx context.Context, b bug) ([]string, error) {
	buggy, right, err := s.exhibit(ctx, b)
	if err != nil {
		return nil, err
	}
	outcomes := map[string]int{}
	done, survived, detected, seed := 0, 0, 0, uint64(1)
	for ; done < s.Trials && seed <= uint64(mostSeeds*s.Trials); seed++ {
		o := s.options()
		o.DetectOnly, o.Sample = true, 0
		if wrong, _, err := buggy(ctx, seed, o, right); err != nil || !wrong {
			if err != nil {
				return nil, err
			}
			continue
		}
		done++
		wrong, r, err := buggy(ctx, seed, s.options(), right)
		if err != nil {
			return nil, err
		}
		if !wrong {
			survived++
		}
		if r.Verdict != frost.Clean {
			detected++
		}
		if list := r.Combinations(); len(list) > 0 {
			outcomes[string(list[0])]++
		}
	}
	return []string{
		b.Paper, b.Name, strings.Join(b.Outcomes, " or "), counts(outcomes), "100 %, 100 %", percent(survived, done), percent(detected, done),
		fmt.Sprint(seed - 1), cmp.Or(b.whyNot(outcomes), "-"),
	}, nil
}

// whyNot says why outcomes are others than the paper's, if some are.
func (b *bug) whyNot(outcomes map[string]int) string {
	for found := range outcomes {
		if !slices.Contains(b.Outcomes, found) {
			return b.Why
		}
	}
	return ""
}

// exhibit is how a bug's buggy form is run, with the output of the fixed one: it reports
// whether the run ended wrong.
func (s *settings) exhibit(ctx context.Context, b bug) (func(context.Context, uint64, frost.Options, string) (bool, *frost.Report, error), string, error) {
	subject := func(form suite.Form) (*study.Subject, error) {
		return study.New(b.Paper, b.Name, form, study.Size(b.Arguments), 4)
	}
	fixed, err := subject(suite.Fixed)
	if err != nil {
		return nil, "", err
	}
	right, _, err := study.Run(ctx, fixed.Config(1))
	if err != nil {
		return nil, "", err
	}
	buggy, err := subject(suite.Buggy)
	if err != nil {
		return nil, "", err
	}
	how, err := sched.ParseFlagWords(b.Schedule)
	run := func(ctx context.Context, seed uint64, o frost.Options, right string) (bool, *frost.Report, error) {
		c := buggy.Config(seed)
		c.Cores, c.Sched = machine.DefaultConfig().Cores, how
		r, out, err := trial(ctx, c, o)
		if err != nil {
			return false, nil, err
		}
		return r.Failure != "" || r.Result.ExitCode != 0 || buggy.Program.Output == suite.Same && out != right, r, nil
	}
	return run, right.Output, err
}
