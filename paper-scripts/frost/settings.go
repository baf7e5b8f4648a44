package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// settings are a configuration file's, as the command line overrides them.
type settings struct {
	// Trials are the runs of each bug, Hang is when a replica hangs, and Quantum by how
	// many cycles cores are apart where no schedule of a bug says it.
	Trials  int    `mapstructure:"trials"`
	Hang    uint64 `mapstructure:"hang"`
	Quantum uint64 `mapstructure:"quantum"`
	Bugs    []bug  `mapstructure:"bugs"`
	// Cores are those of the machine of figures 4, 5 and 7, ScaleCores of figure 6, with
	// the numbers of threads for each.
	Cores        int       `mapstructure:"cores"`
	ScaleCores   int       `mapstructure:"scale_cores"`
	Threads      []int     `mapstructure:"threads"`
	ScaleThreads []int     `mapstructure:"scale_threads"`
	Parts        int       `mapstructure:"parts"`
	Repeats      int       `mapstructure:"repeats"`
	Programs     []program `mapstructure:"programs"`
	Rates        []rate    `mapstructure:"rates"`
	// ScaleReported is how much more time the paper has in figure 6, in percent, by threads.
	ScaleReported map[string]string `mapstructure:"scale_reported"`

	o *study.Options
}

// bug is a program with a bug, and the paper's numbers of the one that it stands for.
type bug struct {
	Name      string   `mapstructure:"name"`
	Paper     string   `mapstructure:"paper"`
	Arguments string   `mapstructure:"arguments"`
	Schedule  []string `mapstructure:"schedule"`
	// Outcomes and Reported are the paper's entries in table 2 and in table 3, by column.
	// Why is why ours differ.
	Outcomes []string          `mapstructure:"outcomes"`
	Reported map[string]string `mapstructure:"reported"`
	Why      string            `mapstructure:"why"`
}

// program is one whose time is measured, with the paper's numbers by threads.
type program struct {
	Name      string                       `mapstructure:"name"`
	Paper     string                       `mapstructure:"paper"`
	Arguments string                       `mapstructure:"arguments"`
	Reported  map[string]map[string]string `mapstructure:"reported"`
}

// rate is a sampling rate.
type rate struct {
	Rate     float64 `mapstructure:"rate"`
	Reported string  `mapstructure:"reported"`
}

// plan lays a table out with settings from a file.
func plan(lay func(*settings) *study.Plan) func(*study.Options) (*study.Plan, error) {
	return func(o *study.Options) (*study.Plan, error) {
		s := &settings{o: o, Trials: 1, Hang: frost.DefaultOptions().Hang}
		file, err := o.Load(s, "trials")
		if err != nil {
			return nil, err
		}
		if err := s.check(file); err != nil {
			return nil, err
		}
		var names []string
		for _, b := range s.Bugs {
			names = append(names, b.Name)
		}
		for _, p := range s.Programs {
			names = append(names, p.Name)
		}
		wanted, err := o.Only(names)
		if err != nil {
			return nil, err
		}
		s.Bugs = slices.DeleteFunc(s.Bugs, func(b bug) bool { return !wanted(b.Name) })
		s.Programs = slices.DeleteFunc(s.Programs, func(p program) bool { return !wanted(p.Name) })
		return lay(s), nil
	}
}

// check returns the first field that is out of range.
func (s *settings) check(f *yamlfile.File) error {
	if s.Trials < 1 || s.Trials > 1_000_000 {
		return f.Wrong("trials", s.Trials, "1 to 1000000")
	}
	for i, b := range s.Bugs {
		if known, err := suite.Find(b.Name); err != nil || !known.Has(suite.Buggy) {
			return f.Wrong(fmt.Sprintf("bugs[%d].name", i), b.Name, "a program of guest/programs/suite with a bug")
		}
	}
	for i, p := range s.Programs {
		if _, err := suite.Find(p.Name); err != nil {
			return f.Wrong(fmt.Sprintf("programs[%d].name", i), p.Name, "a program of guest/programs/suite")
		}
	}
	for _, n := range slices.Concat(s.Threads, s.ScaleThreads) {
		if n < 1 || n > sched.MaxCores {
			return f.Wrong("threads", n, fmt.Sprintf("1 to %d", sched.MaxCores))
		}
	}
	return nil
}

// options are Frost's for short programs with a bug.
func (s *settings) options() frost.Options {
	o := frost.DefaultOptions()
	o.Hang = s.Hang
	return o
}

// trial is a run under Frost with its output.
func trial(ctx context.Context, c machine.Config, o frost.Options) (*frost.Report, string, error) {
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, nil
	r, err := frost.Run(ctx, c, o)
	return r, out.String(), err
}

func counts(m map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, fmt.Sprintf("%s %d", name, m[name]))
	}
	return strings.Join(list, ", ")
}

func percent(n, of int) string { return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(of)) }

func number(x float64) string { return fmt.Sprintf("%.1f", x) }
