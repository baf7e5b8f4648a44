package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// settings is the configuration, with the command line's changes.
type settings struct {
	Threads int    `mapstructure:"threads"`
	Cores   int    `mapstructure:"cores"`
	Runs    int    `mapstructure:"runs"`
	Inputs  int    `mapstructure:"inputs"`
	Races   int    `mapstructure:"races"`
	Text    int    `mapstructure:"text"`
	Seed    uint64 `mapstructure:"seed"`
	// Programs are the suite's, Racy those with bugs, and Corpus others.
	Programs []suiteProgram  `mapstructure:"programs"`
	Racy     []suiteProgram  `mapstructure:"racy"`
	Corpus   []corpusProgram `mapstructure:"corpus"`
	// Frequent are programs with the arguments above and with others, of which operations are rarer.
	Frequent []frequentProgram `mapstructure:"frequent"`
	// Reported is what the papers say of their systems.
	Reported map[string]reported `mapstructure:"reported"`
}

// reported are a paper's overheads, and its programs.
type reported struct {
	Mean     string `mapstructure:"mean"`
	Greatest string `mapstructure:"greatest"`
	Of       string `mapstructure:"of"`
}

// frequentProgram is one of the suite's programs with several arguments.
type frequentProgram struct {
	Name      string   `mapstructure:"name"`
	Arguments []string `mapstructure:"arguments"`
}

// suiteProgram is a program of the suite. Fixed: its data has no seed.
type suiteProgram struct {
	Name      string `mapstructure:"name"`
	Arguments string `mapstructure:"arguments"`
	Short     string `mapstructure:"short"`
	Fixed     bool   `mapstructure:"fixed"`
}

// corpusProgram is a program of the host; {text} is a file of text.
type corpusProgram struct {
	Name    string   `mapstructure:"name"`
	Command []string `mapstructure:"command"`
}

func loadSettings(o *study.Options) (*settings, error) {
	s := &settings{}
	file, err := o.Load(s, "runs", "inputs", "races", "seed")
	if err != nil {
		return nil, err
	}
	return s, s.checkRanges(file)
}

// checkRanges returns an error for the first field that is out of range.
func (s *settings) checkRanges(f *yamlfile.File) error {
	for _, x := range []struct {
		field              string
		found, least, most int
	}{
		{"threads", s.Threads, 2, 64},
		{"cores", s.Cores, 1, 64},
		{"runs", s.Runs, 2, 100_000},
		{"inputs", s.Inputs, 2, 1000},
		{"races", s.Races, 2, 100_000},
		{"text", s.Text, 1, 1 << 30},
	} {
		if x.found < x.least || x.found > x.most {
			return f.Wrong(x.field, x.found, fmt.Sprintf("%d to %d", x.least, x.most))
		}
	}
	for _, list := range []struct {
		field    string
		programs []suiteProgram
		form     suite.Form
	}{{"programs", s.Programs, suite.Fixed}, {"racy", s.Racy, suite.Buggy}} {
		for i, p := range list.programs {
			if known, err := suite.Find(p.Name); err != nil || !known.Has(list.form) {
				return f.Wrong(fmt.Sprintf("%s[%d].name", list.field, i), p.Name, "a program of guest/programs/suite")
			}
		}
	}
	for i, p := range s.Frequent {
		if known, err := suite.Find(p.Name); err != nil || !known.Has(suite.Fixed) || len(p.Arguments) == 0 {
			return f.Wrong(fmt.Sprintf("frequent[%d]", i), p.Name, "a program of guest/programs/suite and a list of arguments")
		}
	}
	for i, p := range s.Corpus {
		if p.Name == "" || len(p.Command) == 0 {
			return f.Wrong(fmt.Sprintf("corpus[%d]", i), p, "a name and a command")
		}
	}
	return nil
}

// head are the columns of the measured table.
func head() []table.Column {
	return []table.Column{
		{Name: "program", Key: "program"},
		{Name: "system", Key: "system"},
		{Name: "overhead", Key: "overhead", Number: true},
		{Name: "schedules", Key: "schedules", Number: true},
		{Name: "over inputs", Key: "inputs", Number: true},
		{Name: "racy lines left", Key: "lines", Number: true},
		{Name: "remark", Key: "remark"},
	}
}

// planMeasured has a row for each program and system.
func planMeasured(o *study.Options) (*study.Plan, error) {
	s, err := loadSettings(o)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, list := range [][]suiteProgram{s.Programs, s.Racy} {
		for _, p := range list {
			names = append(names, p.Name)
		}
	}
	for _, p := range s.Corpus {
		names = append(names, p.Name)
	}
	wanted, err := o.Only(names)
	if err != nil {
		return nil, err
	}
	plan := &study.Plan{Head: head(), Notes: []string{fmt.Sprintf("%d seeds, %d inputs", s.Runs, s.Inputs)}}
	add := func(name string, key any, system string, measure func(ctx context.Context, dir string) ([]string, error)) {
		if !wanted(strings.TrimSuffix(name, racySuffix)) {
			return
		}
		plan.Rows = append(plan.Rows, study.Row{
			Name: name + " " + system, Key: []any{key, system, s.Threads, s.Cores, s.Runs, s.Inputs, s.Races, s.Text, s.Seed},
			Measure: func(ctx context.Context) ([]string, error) {
				cells, err := study.InFolder(name, len(head())-1, func(ctx context.Context, dir string) ([]string, error) {
					cells, err := measure(ctx, dir)
					return append(append([]string{name}, cells...), "-"), err
				})(ctx)
				if err != nil {
					return nil, err
				}
				return append([]string{name, system}, cells[1:]...), nil
			},
		})
	}
	for _, system := range systems() {
		for _, p := range s.Programs {
			add(p.Name, p, system, func(ctx context.Context, dir string) ([]string, error) { return s.measureProgram(ctx, p, system, dir) })
		}
		for _, p := range s.Corpus {
			add(p.Name, p, system, func(ctx context.Context, dir string) ([]string, error) { return s.measureCorpus(ctx, p, system, dir) })
		}
		for _, p := range s.Racy {
			add(p.Name+racySuffix, p, system, func(ctx context.Context, dir string) ([]string, error) { return s.measureRacy(ctx, p, system, dir) })
		}
	}
	return plan, nil
}

// racySuffix is after the names of programs with bugs.
const racySuffix = ", buggy"

// suiteTarget makes a target of a program of the suite, with hints if the system uses them.
func (s *settings) suiteTarget(p suiteProgram, form suite.Form, arguments, system string) (*target, error) {
	v := suite.Variant{Form: form, Optimize: 2, Debug: true, Hints: system == systemHints}
	subject, err := study.NewVariant(p.Name, p.Name, v, study.Size(arguments), s.Threads)
	if err != nil {
		return nil, err
	}
	subject.Cores = s.Cores
	with := func(i int) *study.Subject {
		if p.Fixed {
			return subject
		}
		return subject.WithArguments(fmt.Sprintf("%s -s %d", arguments, i+1))
	}
	return &target{name: p.Name, subject: with(0), config: func(i int) machine.Config {
		return with(i).Config(s.Seed)
	}}, nil
}

func (s *settings) measureProgram(ctx context.Context, p suiteProgram, system, dir string) ([]string, error) {
	short, err := s.suiteTarget(p, suite.Fixed, p.Short, system)
	if err != nil {
		return nil, err
	}
	if system == systemPeregrine {
		return s.measurePeregrine(ctx, short, dir, !p.Fixed)
	}
	plain, err := s.suiteTarget(p, suite.Fixed, p.Arguments, sched.Timed)
	if err != nil {
		return nil, err
	}
	long, err := s.suiteTarget(p, suite.Fixed, p.Arguments, system)
	if err != nil {
		return nil, err
	}
	return s.measurePolicy(ctx, plain, long, short, policyOf(system), dir, !p.Fixed)
}

// measurePolicy measures the time of a target in times of that of a plain one, and the schedules of a short one.
func (s *settings) measurePolicy(ctx context.Context, plain, long, short *target, policy, dir string, data bool) ([]string, error) {
	overhead, err := measureOverhead(ctx, plain, long, exactOptions(policy))
	if err != nil {
		return nil, err
	}
	seeds, inputs, err := s.countSchedules(ctx, short, policy, dir, data)
	return []string{overhead, seeds, inputs, "-"}, err
}

// measureOverhead is the time of a target under a policy, in times of that of a plain one under timed.
func measureOverhead(ctx context.Context, plain, under *target, o sched.Options) (string, error) {
	free, err := measureCycles(ctx, plain, exactOptions(sched.Timed))
	if err != nil {
		return "", err
	}
	took, err := measureCycles(ctx, under, o)
	return fmt.Sprintf("%.3f", took/free), err
}

func (s *settings) measureCorpus(ctx context.Context, p corpusProgram, system, dir string) ([]string, error) {
	if system == systemPeregrine {
		return nil, study.Unmeasurable{Reason: "hybrid schedules are made of the suite's programs only"}
	}
	name, err := exec.LookPath(p.Command[0])
	if err != nil {
		return nil, study.Unmeasurable{Reason: p.Command[0] + " is not installed"}
	}
	text := filepath.Join(dir, "text")
	if err := outfile.WriteBytes(text, linesOfText(s.Text)); err != nil {
		return nil, err
	}
	t := &target{name: p.Name, config: func(int) machine.Config {
		c := machine.DefaultConfig()
		c.Args, c.Dir, c.Cores, c.Seed = []string{name}, "/", s.Cores, s.Seed
		for _, a := range p.Command[1:] {
			c.Args = append(c.Args, strings.ReplaceAll(a, "{text}", text))
		}
		return c
	}}
	few := *s
	few.Runs = min(s.Runs, 4) // they are long
	return few.measurePolicy(ctx, t, t, t, policyOf(system), dir, false)
}

// linesOfText is a text of n bytes.
func linesOfText(n int) []byte {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%x lines of %d\n", i*2654435761%1_000_003, i)
	}
	return []byte(b.String()[:n])
}

func (s *settings) measureRacy(ctx context.Context, p suiteProgram, system, dir string) ([]string, error) {
	if system == systemPeregrine {
		return nil, study.Unmeasurable{Reason: "measured elsewhere: table 3 of PEREGRINE"}
	}
	t, err := s.suiteTarget(p, suite.Buggy, p.Arguments, system)
	if err != nil {
		return nil, err
	}
	lines, err := s.countRacyLines(ctx, t, policyOf(system), dir)
	return []string{"-", "-", "-", lines}, err
}

// number reads a cell.
func number(cell string) (float64, bool) {
	v, err := strconv.ParseFloat(cell, 64)
	return v, err == nil
}
