package main

import (
	"fmt"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

// table4Settings is the configuration of table 4, with the command line's changes.
type table4Settings struct {
	// Runs is the number of runs of each input and mode; their seeds start at Seed.
	Runs    int    `mapstructure:"runs"`
	Seed    uint64 `mapstructure:"seed"`
	Cores   int    `mapstructure:"cores"`
	Threads []int  `mapstructure:"threads"`
	// Programs are those with a table.
	Programs []buggyProgram `mapstructure:"programs"`
	// Reported is the number of runs in which the paper saw the bug, by mode.
	Reported map[string]string `mapstructure:"reported"`

	o *study.Options
}

// buggyProgram is a program with a bug at some sizes.
type buggyProgram struct {
	Name  string        `mapstructure:"name"`
	Sizes []programSize `mapstructure:"sizes"`
}

// programSize is an amount of computation of a program.
type programSize struct {
	Name      string `mapstructure:"name"`
	Arguments string `mapstructure:"arguments"`
}

func planTable4(o *study.Options) (*study.Plan, error) {
	s := &table4Settings{o: o, Seed: 1}
	file, err := o.Load(s, "runs", "seed", "cores", "threads")
	if err != nil {
		return nil, err
	}
	if err := s.checkRanges(file); err != nil {
		return nil, err
	}
	name, err := o.Flags.GetString("program")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range s.Programs {
		if p.Name == name {
			return s.layTable(p), nil
		}
		names = append(names, p.Name)
	}
	return nil, fmt.Errorf("--program %s: one of %s", name, strings.Join(names, ", "))
}

// checkRanges returns an error for the first field that is out of range.
func (s *table4Settings) checkRanges(f *yamlfile.File) error {
	switch {
	case s.Runs < 1:
		return f.Wrong("runs", s.Runs, "at least 1")
	case s.Cores < 0 || s.Cores > 64:
		return f.Wrong("cores", s.Cores, "0 to 64")
	case len(s.Threads) == 0:
		return f.Wrong("threads", "missing", "a list of numbers")
	}
	for i, n := range s.Threads {
		if n < 2 || n > 64 {
			return f.Wrong(fmt.Sprintf("threads[%d]", i), n, "2 to 64")
		}
	}
	for i, p := range s.Programs {
		if known, err := suite.Find(p.Name); err != nil || !known.Has(suite.Buggy) || len(p.Sizes) == 0 {
			return f.Wrong(fmt.Sprintf("programs[%d]", i), p, "a program of guest/programs/suite with a bug, and sizes")
		}
	}
	return nil
}

// layTable has a row for each number of threads and mode, and a column for each amount of
// computation.
func (s *table4Settings) layTable(p buggyProgram) *study.Plan {
	plan := &study.Plan{
		Head: []table.Column{{Name: "threads", Key: "threads", Number: true}, {Name: "mode", Key: "mode"}},
		Notes: []string{
			fmt.Sprintf("In how many of %d runs of %s, each with a seed of its own, the bug showed; \"left\" is how many of all runs left the schedule.", s.Runs, p.Name),
			"TERN: one schedule of synchronization operations for each number of threads, recorded at the least size without the bug and followed at all sizes.",
			"The paper's fft reads a time too early only when threads are very unevenly fast, and never did so free; the noise of the machine that heddle emulates shows it in some runs.",
		},
	}
	for _, size := range p.Sizes {
		plan.Head = append(plan.Head, table.Column{Name: size.Name, Key: size.Name, Number: true})
	}
	plan.Head = append(plan.Head, table.Column{Name: "paper: each", Key: "paper"}, table.Column{Name: "left", Key: "left", Number: true})
	for _, threads := range s.Threads {
		for _, m := range runModes {
			plan.Rows = append(plan.Rows, s.planRow(p, threads, m))
		}
	}
	return plan
}
