package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/complementary"
	racereport "github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/experiments/table"
	"github.com/heddle-dmt/heddle/guest/programs"
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

func table1(context.Context, *settings) (*table.Table, error) {
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
			strategy = "commit " + letter(x.result, d.Commit)
		}
		t.Rows = append(t.Rows, []string{string(x.result), x.bug, string(d.Bug), x.strategy, strategy})
	}
	return t, nil
}

// letter is that of a replica's result.
func letter(c complementary.Combination, r complementary.Replica) string {
	letters := []byte{c[0], c[2], c[3]} // without the hyphen
	return string(letters[r])
}

// coverage is the paper's table 3, in the order of bugs: runs in which both found
// the harmful race, and benign races of the traditional detector and of Frost.
var coverage = []struct{ harmful, traditional, frost string }{
	{"5, 5", "3", "1"},
	{"0, 0", "55", "2"},
	{"3, 3", "61", "2"},
	{"3, 3", "65", "2"},
	{"4, 4", "2899", "2"},
	{"3, 3", "808", "1"},
	{"0, 0", "1414", "1"},
	{"0, 0", "658", "2"},
	{"0, 0", "1449", "2"},
	{"5, 5", "0", "0"},
	{"6, 6", "9", "3"},
}

func table3(ctx context.Context, s *settings) (*table.Table, error) {
	t := &table.Table{Head: []table.Column{
		{Name: "the paper's", Key: "paper"},
		{Name: "ours", Key: "program"},
		{Name: "paper: harmful, both", Key: "paper_harmful"},
		{Name: "ours: traditional", Key: "harmful_traditional", Number: true},
		{Name: "Frost", Key: "harmful_frost", Number: true},
		{Name: "missed", Key: "missed", Number: true},
		{Name: "its schedule: traditional", Key: "shown_traditional", Number: true},
		{Name: "Frost", Key: "shown_frost", Number: true},
		{Name: "missed", Key: "shown_missed", Number: true},
		{Name: "paper: benign, traditional", Key: "paper_benign", Number: true},
		{Name: "ours", Key: "benign_traditional", Number: true},
		{Name: "paper: benign, Frost", Key: "paper_benign_frost", Number: true},
		{Name: "ours", Key: "benign_frost", Number: true},
	}, Notes: []string{
		fmt.Sprintf("%d runs of each buggy form, with nothing done to make the bug show, under both detectors: the happens-before one sees the", s.trials),
		"thread-parallel replica. Harmful: runs with a race of two lines that program.yaml calls harmful, and those of them that Frost",
		"detects; then the same under the schedule of program.yaml, which shows the bug. Frost misses what changes no outcome: a lost",
		"update, say, that no replica loses (section 3.4.4). Benign: pairs of instructions that race on other lines, and runs in which",
		"Frost detects a race and there is no harmful one.",
	}}
	for i, b := range bugs {
		if !s.wants(b.name) {
			continue
		}
		fmt.Fprintln(s.progress, b.name)
		x, err := compare(ctx, s, b.name, false)
		if err != nil {
			return nil, err
		}
		shown, err := compare(ctx, s, b.name, true)
		if err != nil {
			return nil, err
		}
		c := coverage[i]
		t.Rows = append(t.Rows, []string{
			b.paper, b.name, c.harmful, fmt.Sprint(x.harmful), fmt.Sprint(x.both), fmt.Sprint(x.harmful - x.both),
			fmt.Sprint(shown.harmful), fmt.Sprint(shown.both), fmt.Sprint(shown.harmful - shown.both),
			c.traditional, fmt.Sprint(len(x.pairs)), c.frost, fmt.Sprint(x.benign),
		})
	}
	return t, nil
}

// comparison is what two detectors found in the same runs.
type comparison struct {
	harmful, both, benign int
	pairs                 map[string]bool // of the instructions of benign races
}

// together is by how many cycles a core may be ahead of another in table 3's runs:
// the default's 50000 are more than most of the programs' threads run for.
const together = 200

// compare runs the buggy form of a program, so that its bug shows if that is wanted.
func compare(ctx context.Context, s *settings, name string, shows bool) (*comparison, error) {
	size, how := study.Test, sched.Options{Policy: sched.Timed, Quantum: together}
	if shows {
		size = study.Trigger
	}
	subject, err := study.New(name, name, programs.Buggy, size, 4)
	if err != nil {
		return nil, err
	}
	if shows {
		if how, err = sched.ParseWords(subject.Program.Schedule); err != nil {
			return nil, err
		}
	}
	x := &comparison{pairs: map[string]bool{}}
	for seed := range s.trials {
		c := subject.Config(uint64(seed + 1))
		c.Cores, c.Sched = 4, how
		o := frost.DefaultOptions()
		o.Hang, o.DetectOnly = hang, true
		r, err := frost.Run(ctx, c, o)
		if err != nil {
			return nil, err
		}
		all, err := frost.AllRaces(ctx, c, r)
		if err != nil {
			return nil, err
		}
		x.add(&subject.Program, r, all)
	}
	return x, nil
}

// add counts a run.
func (x *comparison) add(p *programs.Program, r *frost.Report, all *racereport.Report) {
	bad := false
	for _, race := range all.Races {
		if harmful(p, race) {
			bad = true
		} else {
			x.pairs[fmt.Sprint(race.First.PC, race.Second.PC)] = true
		}
	}
	detected := r.Verdict != frost.Clean || r.Harmless > 0
	switch {
	case bad && detected:
		x.harmful, x.both = x.harmful+1, x.both+1
	case bad:
		x.harmful++
	case detected:
		x.benign++
	}
}

// harmful tells whether a race is between two lines of a race that the program's
// description calls harmful.
func harmful(p *programs.Program, race *racereport.Race) bool {
	return slices.ContainsFunc(p.Races, func(known programs.Race) bool {
		return known.Kind == programs.Harmful && on(known.Lines, &race.First) && on(known.Lines, &race.Second)
	})
}

// on tells whether an access is on one of some lines, or in what they call.
func on(lines []string, a *racereport.Access) bool {
	return slices.ContainsFunc(a.Stack, func(f racereport.Frame) bool {
		return slices.Contains(lines, fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line))
	})
}
