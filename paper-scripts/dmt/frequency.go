package main

import (
	"context"
	"fmt"
	"os"

	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
)

// shortQuantum is a quantum of CoreDet's, in instructions, beside the default of 50000.
const shortQuantum = 5000

// frequencyColumns are the systems of the table of frequencies.
func frequencyColumns() (columns []frequencyColumn) {
	for _, policy := range []string{sched.Kendo, sched.CoreDet, sched.Parrot, sched.DThreads, sched.Consequence} {
		columns = append(columns, frequencyColumn{table.Column{Name: policy, Key: policy, Number: true}, exactOptions(policy)})
		if policy == sched.CoreDet {
			short := exactOptions(policy)
			short.Quantum = shortQuantum
			columns = append(columns, frequencyColumn{table.Column{Name: fmt.Sprintf("%s, quantum %d", policy, shortQuantum), Key: "coredet_short", Number: true}, short})
		}
	}
	return columns
}

// frequencyColumn is a column of overheads under a policy.
type frequencyColumn struct {
	table.Column
	options sched.Options
}

// planFrequency has a row for each program and command line, with the instructions between two operations of a thread
// and the overheads of systems.
func planFrequency(o *study.Options) (*study.Plan, error) {
	s, err := loadSettings(o)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range s.Frequent {
		names = append(names, p.Name)
	}
	wanted, err := o.Only(names)
	if err != nil {
		return nil, err
	}
	plan := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "arguments", Key: "arguments"},
			{Name: "instructions for each operation", Key: "interval", Number: true},
		},
		Notes: []string{"Instructions of all threads for each operation, and virtual time in times of that under timed. Arguments differ in how much is computed between two operations."},
	}
	for _, c := range frequencyColumns() {
		plan.Head = append(plan.Head, c.Column)
	}
	for _, p := range s.Frequent {
		for _, arguments := range p.Arguments {
			if !wanted(p.Name) {
				continue
			}
			plan.Rows = append(plan.Rows, study.Row{
				Name: p.Name + " " + arguments, Key: []any{p.Name, arguments, s.Threads, s.Cores, s.Seed},
				Measure: study.InFolder(p.Name, len(plan.Head), func(ctx context.Context, dir string) ([]string, error) {
					return s.measureFrequency(ctx, suiteProgram{Name: p.Name, Fixed: true}, arguments, dir)
				}),
			})
		}
	}
	return plan, nil
}

func (s *settings) measureFrequency(ctx context.Context, p suiteProgram, arguments, dir string) ([]string, error) {
	t, err := s.suiteTarget(p, suite.Fixed, arguments, sched.Timed)
	if err != nil {
		return nil, err
	}
	interval, err := measureInterval(ctx, t, dir)
	if err != nil {
		return nil, err
	}
	cells := []string{p.Name, arguments, fmt.Sprint(interval)}
	for _, c := range frequencyColumns() {
		overhead, err := measureOverhead(ctx, t, t, c.options)
		if err != nil {
			return nil, err
		}
		cells = append(cells, overhead)
	}
	return cells, nil
}

// measureInterval is the number of instructions of all threads for each operation, in a run under timed.
func measureInterval(ctx context.Context, t *target, dir string) (uint64, error) {
	file, err := os.CreateTemp(dir, "*.trace")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	c := t.config(0)
	c.Sched = exactOptions(sched.Timed)
	c.Record = &machine.Record{To: file, Sync: &machine.SyncRecord{}}
	_, r, err := study.Run(ctx, c)
	if err != nil {
		return 0, err
	}
	tr, err := trace.Open(file.Name())
	if err != nil {
		return 0, err
	}
	defer tr.Close()
	operations := uint64(0)
	for e, err := range trace.Get[event.Sync](tr, trace.Key{Kind: trace.Sync}, trace.Where{}) {
		if err != nil {
			return 0, err
		}
		if e.Phase == event.Return && e.Effects&event.Inner == 0 {
			operations++
		}
	}
	return r.Instructions / max(operations, 1), nil
}
