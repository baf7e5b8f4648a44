// Package served measures the rows of the papers' tables and figures that are about servers: real servers of Debian with
// their clients, in windows of requests (package windows).
//
// A configuration file has the loads, and a row for each number that a paper prints. What is measured together, such as
// the runs under schedules of a load, is measured once for all rows that have a value of it. A row without a value is not
// measured, and says why.
package served

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/heddle-dmt/heddle/experiments/servers"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/experiments/windows"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

// settings are those of a configuration file.
type settings struct {
	// Runs follow the schedules of a load's first run, each on another machine.
	Runs  int    `mapstructure:"runs"`
	Loads []load `mapstructure:"loads"`
	Rows  []row  `mapstructure:"rows"`
}

// load is a server with what is asked of it.
type load struct {
	Name  string `mapstructure:"name"`
	Paper string `mapstructure:"paper"`
	// Server is its file, relative to the settings; Values take the place of those of the file.
	Server string            `mapstructure:"server"`
	Values map[string]string `mapstructure:"values"`
	// Tasks are the rules of its requests, Window is the number of requests of a full window, and Cores are those of the machine.
	Tasks  string `mapstructure:"tasks"`
	Window int    `mapstructure:"window"`
	Cores  int    `mapstructure:"cores"`
	// Hybrid has races looked for as well.
	Hybrid bool `mapstructure:"hybrid"`
	// Count names the value that is the number of requests. A memoizing run has one of Share of them.
	Count string `mapstructure:"count"`
	Share int    `mapstructure:"share"`
	// Text says what is asked, with the factor by which the paper's load is larger.
	Text string `mapstructure:"text"`

	server *servers.Server
	rules  windows.Rules
}

// row is a number of a paper.
type row struct {
	// Place is the table or figure, Load the load, and What is measured.
	Place string `mapstructure:"place"`
	Load  string `mapstructure:"load"`
	What  string `mapstructure:"what"`
	// Value is what is measured: one of those of a measurement (values), or empty, and then Why says why nothing is.
	Value    string `mapstructure:"value"`
	Reported string `mapstructure:"reported"`
	Why      string `mapstructure:"why"`
}

// measurement makes some values of a load.
type measurement struct {
	values  []string
	measure func(context.Context, *study.Options, *settings, *load) (map[string]string, error)
}

// measurements are all of them.
func measurements() []measurement {
	return []measurement{
		{
			[]string{
				"races", "constraints", "sync_outputs", "sync_states", "hybrid_outputs", "hybrid_states", "detection",
				"sync_throughput", "sync_response", "hybrid_throughput", "hybrid_response", "hybrid_over_sync",
			}, measureSchedules,
		},
		{
			[]string{
				"instructions", "branches", "plain", "simplified", "lower", "symbolic", "slicing", "simplification",
				"ratio_plain", "ratio_simplified",
			}, measureSlice,
		},
		{[]string{"recording"}, measureRecording},
		{[]string{"reuse", "memoized", "schedules", "constrained", "terms", "memoizing", "checking"}, measureReuse},
	}
}

// Plan lays the table of a configuration file out.
func Plan(o *study.Options) (*study.Plan, error) {
	s := &settings{Runs: 1}
	file, err := o.Load(s, "runs")
	if err != nil {
		return nil, err
	}
	if err := s.complete(o.Config, file); err != nil {
		return nil, err
	}
	var names []string
	for _, l := range s.Loads {
		names = append(names, l.Name)
	}
	wanted, err := o.Only(names)
	if err != nil {
		return nil, err
	}
	plan := &study.Plan{Head: []table.Column{
		{Name: "in the paper", Key: "place"},
		{Name: "measured", Key: "what"},
		{Name: "load", Key: "load"},
		{Name: "ours", Key: "ours", Number: true},
		{Name: "paper", Key: "paper", Number: true},
		{Name: "remark", Key: "remark"},
	}}
	found := s.results(o)
	for i := range s.Loads {
		if l := &s.Loads[i]; wanted(l.Name) {
			plan.Notes = append(plan.Notes, fmt.Sprintf("%s: %s; windows of %d, on %d cores, which server and client share.",
				l.Name, l.Text, l.Window, l.Cores))
		}
	}
	for _, r := range s.Rows {
		if !wanted(r.Load) {
			continue
		}
		l := s.find(r.Load)
		missing := l.server.Missing()
		plan.Rows = append(plan.Rows, study.Row{
			Name: r.Place + " " + r.What + " " + r.Load, Key: []any{r, *l, l.server, s.Runs, missing},
			Measure: func(ctx context.Context) ([]string, error) {
				cells := func(ours, remark string) []string {
					return []string{r.Place, r.What, l.Name, ours, cmp.Or(r.Reported, "-"), remark}
				}
				switch {
				case r.Value == "":
					return cells("-", "not measured: "+r.Why), nil
				case missing != "":
					return cells("-", fmt.Sprintf("not measured: the host has no %s (packages: %v)", missing, l.server.Packages)), nil
				}
				values, err := found(ctx, l, r.Value)
				if err != nil {
					return nil, err
				}
				return cells(values[r.Value], r.Why), nil
			},
		})
	}
	return plan, nil
}

// results returns a function that measures each measurement of each load once.
func (s *settings) results(o *study.Options) func(context.Context, *load, string) (map[string]string, error) {
	type key struct {
		load string
		of   int
	}
	known := map[key]func(context.Context) (map[string]string, error){}
	return func(ctx context.Context, l *load, value string) (map[string]string, error) {
		list := measurements()
		k := key{l.Name, slices.IndexFunc(list, func(m measurement) bool { return slices.Contains(m.values, value) })}
		if known[k] == nil {
			result := sync.OnceValues(func() (map[string]string, error) { return list[k.of].measure(ctx, o, s, l) })
			known[k] = func(context.Context) (map[string]string, error) { return result() }
		}
		return known[k](ctx)
	}
}

func (s *settings) find(name string) *load {
	at := slices.IndexFunc(s.Loads, func(l load) bool { return l.Name == name })
	if at < 0 {
		return nil
	}
	return &s.Loads[at]
}

// complete loads the servers' files, and returns an error about the first field that is wrong.
func (s *settings) complete(path string, file *yamlfile.File) (err error) {
	if s.Runs < 1 || s.Runs > 1000 {
		return file.Wrong("runs", s.Runs, "1 to 1000")
	}
	for i := range s.Loads {
		l := &s.Loads[i]
		field := func(name string) string { return fmt.Sprintf("loads[%d].%s", i, name) }
		if l.server, err = servers.Load(filepath.Join(filepath.Dir(path), l.Server)); err != nil {
			return err
		}
		if l.rules, err = windows.LoadRules(l.Tasks); err != nil {
			return err
		}
		switch {
		case l.Window < 1 || l.Window > 1000:
			return file.Wrong(field("window"), l.Window, "1 to 1000")
		case l.Cores < 1 || l.Cores > maxCores:
			return file.Wrong(field("cores"), l.Cores, fmt.Sprintf("1 to %d", maxCores))
		case l.Share < 0 || l.Share > 1000:
			return file.Wrong(field("share"), l.Share, "0 to 1000")
		case l.Count != "" && !l.server.Uses(l.Count):
			return file.Wrong(field("count"), l.Count, "a name of the server's values")
		}
		for name := range l.Values {
			if !l.server.Uses(name) {
				return file.Wrong(field("values"), name, "names of the server's values")
			}
		}
	}
	var known []string
	for _, m := range measurements() {
		known = append(known, m.values...)
	}
	for i, r := range s.Rows {
		field := func(name string) string { return fmt.Sprintf("rows[%d].%s", i, name) }
		switch {
		case s.find(r.Load) == nil:
			return file.Wrong(field("load"), r.Load, "the name of a load")
		case r.Value == "" && r.Why == "":
			return file.Wrong(field("why"), "missing", "the reason for which nothing is measured, or a value")
		case r.Value != "" && !slices.Contains(known, r.Value):
			return file.Wrong(field("value"), r.Value, fmt.Sprint(known))
		}
	}
	return nil
}
