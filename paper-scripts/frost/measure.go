package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/experiments/table"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// bugs are the rows of table 2.
var bugs = []struct{ paper, name, outcome string }{
	{"pbzip2", "compressor", "F-AA"},
	{"apache 21287", "apache-21287", "A-BB or A-AB"},
	{"apache 25520", "apache-25520", "A-BC"},
	{"apache 45605", "apache-45605", "A-AB"},
	{"MySQL 644", "mysql-644", "A-BC"},
	{"MySQL 791", "mysql-791", "A-BC"},
	{"MySQL 2011", "mysql-2011", "A-BC"},
	{"MySQL 3596", "mysql-3596", "F-BC"},
	{"MySQL 12848", "mysql-12848", "F-FA"},
	{"pfscan", "scanner", "F-FA"},
	{"glibc 12486", "glibc-12486", "F-AA"},
}

// hang is when a replica of table 2's short programs counts as hanging.
const hang = 3_000_000

// trial is a run under Frost with its output.
func trial(ctx context.Context, c heddle.Config, o frost.Options) (*frost.Report, string, error) {
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, nil
	r, err := frost.Run(ctx, c, o)
	return r, out.String(), err
}

func table2(ctx context.Context, s *settings) (*table.Table, error) {
	t := &table.Table{Head: []table.Column{
		{Name: "the paper's", Key: "paper"},
		{Name: "ours", Key: "program"},
		{Name: "paper's outcome", Key: "paper_outcome"},
		{Name: "our outcomes", Key: "outcomes"},
		{Name: "paper: survived, detected", Key: "paper_survived"},
		{Name: "ours: survived", Key: "survived", Number: true},
		{Name: "detected", Key: "detected", Number: true},
	}, Notes: []string{
		"An outcome is that of a run's first epoch with a race. A run without one ended right by itself: the bug did not show.",
	}}
	for _, b := range bugs {
		if !s.wants(b.name) {
			continue
		}
		fmt.Fprintln(s.progress, b.name)
		row, err := bugRow(ctx, s, b.name)
		if err != nil {
			return nil, err
		}
		t.Rows = append(t.Rows, append([]string{b.paper, b.name, b.outcome, row[0], "100 %, 100 %"}, row[1:]...))
	}
	return t, nil
}

// bugRow counts what the trials of a bug come to.
func bugRow(ctx context.Context, s *settings, name string) ([]string, error) {
	fixed, err := study.New(name, name, programs.Fixed, study.Trigger, 4)
	if err != nil {
		return nil, err
	}
	right, _, err := study.Run(ctx, fixed.Config(1))
	if err != nil {
		return nil, err
	}
	buggy, err := study.New(name, name, programs.Buggy, study.Trigger, 4)
	if err != nil {
		return nil, err
	}
	schedule, err := sched.ParseWords(buggy.Program.Schedule)
	if err != nil {
		return nil, err
	}
	outcomes := map[string]int{}
	survived, detected := 0, 0
	for seed := range s.trials {
		c := buggy.Config(uint64(seed + 1))
		c.Cores, c.Sched = 4, schedule
		o := frost.DefaultOptions()
		o.Hang = hang
		r, out, err := trial(ctx, c, o)
		if err != nil {
			return nil, err
		}
		if r.Result.ExitCode == 0 && (buggy.Program.Output != programs.Same || out == right.Output) {
			survived++
		}
		if r.Verdict != frost.Clean {
			detected++
		}
		if list := r.Combinations(); len(list) > 0 {
			outcomes[string(list[0])]++
		}
	}
	return []string{counts(outcomes), percent(survived, s.trials), percent(detected, s.trials)}, nil
}

func counts(m map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, fmt.Sprintf("%s %d", name, m[name]))
	}
	return strings.Join(list, ", ")
}

func percent(n, of int) string { return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(of)) }

// work is the instructions of all replicas, and of the thread-parallel ones.
func work(r *frost.Report) (all, first float64) {
	for _, e := range r.Epochs {
		first += float64(e.Replicas[0].Instructions)
		for i := range e.Replicas {
			all += float64(e.Replicas[i].Instructions)
		}
	}
	return all, first
}

// rates are sampling rates; the paper names its overhead at the first and the last.
var rates = []struct {
	rate  float64
	paper string
}{{0.035, "17"}, {0.1, "-"}, {0.25, "-"}, {0.5, "-"}, {1, "200"}}

func figure7(ctx context.Context, s *settings) (*table.Table, error) {
	t := &table.Table{Head: []table.Column{
		{Name: "rate", Key: "rate", Number: true},
		{Name: "paper, pfscan, %", Key: "paper", Number: true},
		{Name: "ours, scanner, %", Key: "work", Number: true},
	}, Notes: []string{"Instructions of all replicas; on 8 cores with 8 threads, as in the paper, they are the time."}}
	subject, err := study.New("pfscan", "scanner", programs.Fixed, study.Test, 8)
	if err != nil {
		return nil, err
	}
	c := subject.Config(1)
	for _, x := range rates {
		fmt.Fprintln(s.progress, "rate", x.rate)
		o := frost.DefaultOptions()
		o.Sample, o.Epoch, o.Growth = x.rate, 0.05, 0
		r, _, err := trial(ctx, c, o)
		if err != nil {
			return nil, err
		}
		all, first := work(r)
		t.Rows = append(t.Rows, []string{fmt.Sprint(x.rate), x.paper, number(100 * (all/first - 1))})
	}
	return t, nil
}
