package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/complementary"
	racereport "github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// taxonomy is the paper's table 1.
var taxonomy = []struct {
	result        complementary.Combination
	bug, strategy string
}{
	{"A-AA", "none", "commit A"},
	{"F-FF", "non-race bug", "roll back"},
	{"A-AB", "type I", "roll back"},
	{"A-AF", "type I", "commit A"},
	{"F-FA", "type I", "commit A"},
	{"A-BB", "type II", "commit B"},
	{"A-BC", "type II", "commit B or C"},
	{"F-AA", "type II", "commit A"},
	{"F-AB", "type II", "commit A or B"},
	{"A-BF", "multiple", "roll back"},
	{"A-FF", "multiple", "roll back"},
}

func planTable1(context.Context) (*table.Table, error) {
	t := &table.Table{Head: []table.Column{
		{Name: "result", Key: "result"},
		{Name: "paper: bug", Key: "paper_bug"},
		{Name: "ours", Key: "bug"},
		{Name: "paper: strategy", Key: "paper_strategy"},
		{Name: "ours", Key: "strategy"},
	}, Notes: []string{
		"Of A-BC and F-AB an execution without preemption and without the order is committed if it does not fail (docs/frost.md).",
	}}
	for _, x := range taxonomy {
		d := x.result.Diagnose()
		strategy := "roll back"
		if d.Commit != complementary.NoReplica {
			strategy = "commit " + resultLetter(x.result, d.Commit)
		}
		t.Rows = append(t.Rows, []string{string(x.result), x.bug, string(d.Bug), x.strategy, strategy})
	}
	return t, nil
}

// resultLetter is that of a replica's result.
func resultLetter(c complementary.Combination, r complementary.Replica) string {
	letters := []byte{c[0], c[2], c[3]} // without the hyphen
	return string(letters[r])
}

// planTable3 compares Frost with the happens-before detector.
func planTable3(s *settings) *study.Plan {
	p := &study.Plan{Head: []table.Column{
		{Name: "the paper's", Key: "paper"},
		{Name: "ours", Key: "program"},
		{Name: "paper: harmful, both", Key: "paper_harmful"},
		{Name: "ours: traditional", Key: "harmful_traditional", Number: true},
		{Name: "Frost", Key: "harmful_frost", Number: true},
		{Name: "with reads", Key: "harmful_reads", Number: true},
		{Name: "its schedule: traditional", Key: "shown_traditional", Number: true},
		{Name: "Frost", Key: "shown_frost", Number: true},
		{Name: "with reads", Key: "shown_reads", Number: true},
		{Name: "paper: benign, traditional", Key: "paper_benign", Number: true},
		{Name: "ours", Key: "benign_traditional", Number: true},
		{Name: "paper: benign, Frost", Key: "paper_benign_frost", Number: true},
		{Name: "ours", Key: "benign_frost", Number: true},
	}, Notes: []string{
		fmt.Sprintf("%d runs of each buggy form, with nothing done to make the bug show, under both detectors: the happens-before one sees the", s.Trials),
		"thread-parallel replica. Harmful: runs with a race of two lines that program.yaml calls harmful, and those of them in which Frost's",
		"outcomes differ, or else what threads have read (--compare-reads); then the same under the schedule of program.yaml, which shows the",
		"bug. Benign: pairs of instructions that race on other lines, and runs in which Frost detects a race and there is no harmful one.",
	}}
	for _, b := range s.Bugs {
		p.Rows = append(p.Rows, study.Row{
			Name: b.Name, Key: []any{b, s.Trials, s.Hang, s.Quantum},
			Measure: func(ctx context.Context) ([]string, error) {
				x, err := s.compareDetectors(ctx, b.Name, false)
				if err != nil {
					return nil, err
				}
				shown, err := s.compareDetectors(ctx, b.Name, true)
				if err != nil {
					return nil, err
				}
				return []string{
					b.Paper, b.Name, b.Reported["harmful"], fmt.Sprint(x.harmful), fmt.Sprint(x.outcomes), fmt.Sprint(x.both),
					fmt.Sprint(shown.harmful), fmt.Sprint(shown.outcomes), fmt.Sprint(shown.both),
					b.Reported["traditional"], fmt.Sprint(len(x.pairs)), b.Reported["frost"], fmt.Sprint(x.benign),
				}, nil
			},
		})
	}
	return p
}

// comparison is the findings of two detectors in the same runs.
type comparison struct {
	harmful, benign int
	outcomes, both  int             // of the harmful ones: that Frost's outcomes show, or what is read
	pairs           map[string]bool // of the instructions of benign races
}

// compareDetectors runs the buggy form of a program, so that its bug shows if that is wanted.
func (s *settings) compareDetectors(ctx context.Context, name string, shows bool) (*comparison, error) {
	size, how := study.Test, sched.Options{Policy: sched.Timed, Quantum: s.Quantum}
	if shows {
		size = study.Trigger
	}
	subject, err := study.New(name, name, suite.Buggy, size, 4)
	if err != nil {
		return nil, err
	}
	if shows {
		if how, err = sched.ParseFlagWords(subject.Program.Schedule); err != nil {
			return nil, err
		}
	}
	x := &comparison{pairs: map[string]bool{}}
	for seed := range s.Trials {
		c := subject.Config(uint64(seed + 1))
		c.Cores, c.Sched = 4, how
		o := s.options()
		o.DetectOnly, o.CompareReads = true, true
		r, err := frost.Run(ctx, c, o)
		if err != nil {
			return nil, err
		}
		all, err := frost.AllRaces(ctx, c, r)
		if err != nil {
			return nil, err
		}
		x.addRun(&subject.Program, r, all)
	}
	return x, nil
}

// addRun counts a run.
func (x *comparison) addRun(p *suite.Program, r *frost.Report, all *racereport.Report) {
	bad := false
	for _, race := range all.Races {
		if isHarmful(p, race) {
			bad = true
		} else {
			x.pairs[fmt.Sprint(race.First.PC, race.Second.PC)] = true
		}
	}
	outcomes := r.Verdict != frost.Clean || slices.ContainsFunc(r.Epochs, func(e *frost.Epoch) bool { return e.Harmless && e.Reads == "" })
	detected := outcomes || r.Harmless > 0
	if detected && !bad {
		x.benign++
	}
	for n, found := range map[*int]bool{&x.harmful: bad, &x.outcomes: bad && outcomes, &x.both: bad && detected} {
		if found {
			*n++
		}
	}
}

// isHarmful reports whether a race is between two lines of a race that the program's
// description calls harmful.
func isHarmful(p *suite.Program, race *racereport.Race) bool {
	return slices.ContainsFunc(p.Races, func(known suite.Race) bool {
		return known.Kind == suite.Harmful && isOnLines(known.Lines, &race.First) && isOnLines(known.Lines, &race.Second)
	})
}

// isOnLines reports whether an access is on one of some lines, or in a function that they call.
func isOnLines(lines []string, a *racereport.Access) bool {
	return slices.ContainsFunc(a.Stack, func(f racereport.Frame) bool {
		return slices.Contains(lines, fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line))
	})
}
