package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

// timing is the virtual time of a run on a machine of some cores, in milliseconds,
// and for how long cores were busy, without Frost and with it.
type timing struct{ plain, busy, frost, work float64 }

// measureTimes measures a program with some threads on some cores.
func (s *settings) measureTimes(ctx context.Context, p program, threads, cores int) (*timing, error) {
	c, clean, err := s.programConfig(p, threads)
	defer clean()
	if err != nil {
		return nil, err
	}
	c.Cores, c.Sched.Quantum = cores, s.Quantum
	peregrine.BindNow(&c) // as under Frost
	t := &timing{}
	if t.plain, err = timeWithoutFrost(ctx, c); err != nil {
		return nil, err
	}
	o := frost.DefaultOptions()
	o.Epoch, o.Growth = t.plain/float64(s.Parts), 0
	r, _, err := trial(ctx, c, o)
	if err != nil {
		return nil, err
	}
	for _, e := range r.Epochs {
		t.busy += e.Replicas[0].Work
	}
	t.frost, t.work = r.Crowded, r.Work
	return t, nil
}

//go:embed source/scanloop.c
var scanLoop string

// programConfig is the configuration of a program's fixed form. The scanner scans a folder of
// files again and again.
func (s *settings) programConfig(p program, threads int) (c machine.Config, clean func(), err error) {
	clean = func() {}
	if p.Name != "scanner" {
		subject, err := study.New(p.Paper, p.Name, suite.Fixed, study.Size(p.Arguments), threads)
		if err != nil {
			return c, clean, err
		}
		return subject.Config(1), clean, nil
	}
	known, err := suite.Find(p.Name)
	if err != nil {
		return c, clean, err
	}
	file, err := known.Around(suite.Variant{Form: suite.Fixed, Optimize: 2}, "scanloop", scanLoop)
	if err != nil {
		return c, clean, err
	}
	dir, err := os.MkdirTemp("", "heddle-scan-")
	clean = func() { _ = os.RemoveAll(dir) } // no one needs it any more
	text := bytes.Repeat([]byte("one heddle lifts one thread of the warp and no other\n"), 40)
	for i := 0; err == nil && i < 256; i++ {
		err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.log", i)), text, 0o600)
	}
	c = machine.DefaultConfig()
	c.Args, c.Dir = []string{file, "-p", fmt.Sprint(threads), "-d", "/logs", "-r", fmt.Sprint(s.Repeats)}, "/"
	c.Mounts = append(c.Mounts, machine.Mount{Host: dir, Guest: "/logs"})
	return c, clean, err
}

// timeWithoutFrost is the virtual time of a run without Frost, in milliseconds.
func timeWithoutFrost(ctx context.Context, c machine.Config) (ms float64, err error) {
	_, r, err := study.Run(ctx, c)
	if err != nil {
		return 0, err
	}
	return float64(r.Cycles) / float64(c.Costs.MHz) / 1000, nil
}

// reportedValue is a program's time or energy in the paper's text, or "-".
func (p *program) reportedValue(quantity string, threads int) string {
	return cmp.Or(p.Reported[fmt.Sprint(threads)][quantity], "-")
}

// eachTimed has a row for each program of figures 4 and 5 and each number of threads.
func (s *settings) eachTimed(plan *study.Plan, cells func(program, int, *timing) []string) *study.Plan {
	for _, p := range s.Programs {
		for _, threads := range s.Threads {
			label := fmt.Sprintf("%s %d", p.Paper, threads)
			plan.Rows = append(plan.Rows, study.Row{
				Name: label, Key: []any{p, threads, s.Cores, s.Quantum, s.Parts, s.Repeats},
				Measure: func(ctx context.Context) ([]string, error) {
					m, err := s.measureTimes(ctx, p, threads, s.Cores)
					if err != nil {
						return nil, err
					}
					return append([]string{label}, cells(p, threads, m)...), nil
				},
			})
		}
	}
	return plan
}

// timeColumns are those of figures 4 and 5.
func timeColumns(unit string) []table.Column {
	return []table.Column{
		{Name: "the paper's, threads", Key: "paper"},
		{Name: "ours", Key: "program"},
		{Name: "without Frost" + unit, Key: "plain", Number: true},
		{Name: "with Frost" + unit, Key: "frost", Number: true},
		{Name: "more, %", Key: "overhead", Number: true},
		{Name: "paper, %", Key: "paper_overhead", Number: true},
	}
}

func planFigure4(s *settings) *study.Plan {
	return s.eachTimed(&study.Plan{Head: timeColumns(", ms"), Notes: []string{
		fmt.Sprintf("On %d cores. With Frost: when the last epoch is committed if replicas run beside each other, and not less than all that they", s.Cores),
		"do on these cores if none ever stands still. An epoch ends when all threads have come to an operation or system call; the last one",
		"is executed on one core when the thread-parallel replica has ended.",
	}}, func(p program, threads int, m *timing) []string {
		return []string{p.Name, fmt.Sprintf("%.3f", m.plain), fmt.Sprintf("%.3f", m.frost), number(100 * (m.frost/m.plain - 1)), p.reportedValue("time", threads)}
	})
}

// idle is the part of its power at full load that a machine takes when it is idle.
// It is chosen so that a machine with two of eight cores busy takes 29 % more energy
// with three times the work in 1.08 times the time, near the paper's 26 % of pbzip2.
const idle = 0.7

// energyOf is the energy of a machine that is on for some time with cores busy for some:
// the idle part for as long as it is on, and the rest in proportion to the cores
// that are busy. A unit is a millisecond of full load.
func (s *settings) energyOf(on, busy float64) float64 {
	return idle*on + (1-idle)*busy/float64(s.Cores)
}

func planFigure5(s *settings) *study.Plan {
	return s.eachTimed(&study.Plan{Head: timeColumns(""), Notes: []string{
		"A model: the machine takes 70 % of its full power when it is idle, and the rest in proportion to the cores that are busy.",
		"The unit is what it takes in a millisecond of full load. The paper measures a machine of 2009 with a power meter.",
	}}, func(p program, threads int, m *timing) []string {
		plain, under := s.energyOf(m.plain, m.busy), s.energyOf(m.frost, m.work)
		return []string{p.Name, fmt.Sprintf("%.3f", plain), fmt.Sprintf("%.3f", under), number(100 * (under/plain - 1)), p.reportedValue("energy", threads)}
	})
}

func planFigure6(s *settings) *study.Plan {
	plan := &study.Plan{Head: []table.Column{
		{Name: "threads", Key: "threads"},
		{Name: "without Frost", Key: "plain", Number: true},
		{Name: "with Frost", Key: "frost", Number: true},
		{Name: "more time, %", Key: "overhead", Number: true},
		{Name: "paper, pfscan, %", Key: "paper_overhead", Number: true},
	}, Notes: []string{
		fmt.Sprintf("Throughput of the scanner on %d cores, in scans of the folder in a millisecond of virtual time. The paper's figure is a plot; its", s.ScaleCores),
		"text says that pfscan scales to 10 cores without Frost, where memory is what holds it up, and to 6 with Frost, at less than 4 %",
		"more time. The timing model has no bandwidth of memory.",
	}}
	i := slices.IndexFunc(s.Programs, func(p program) bool { return p.Name == "scanner" })
	if i < 0 {
		return plan
	}
	p := s.Programs[i]
	for _, threads := range s.ScaleThreads {
		plan.Rows = append(plan.Rows, study.Row{
			Name: fmt.Sprint(threads), Key: []any{p, threads, s.ScaleCores, s.Quantum, s.Parts, s.Repeats, s.ScaleReported},
			Measure: func(ctx context.Context) ([]string, error) {
				m, err := s.measureTimes(ctx, p, threads, s.ScaleCores)
				if err != nil {
					return nil, err
				}
				scans := float64(s.Repeats)
				return []string{
					fmt.Sprint(threads), fmt.Sprintf("%.2f", scans/m.plain), fmt.Sprintf("%.2f", scans/m.frost), number(100 * (m.frost/m.plain - 1)),
					cmp.Or(s.ScaleReported[fmt.Sprint(threads)], "-"),
				}, nil
			},
		})
	}
	return plan
}

func planFigure7(s *settings) *study.Plan {
	plan := &study.Plan{Head: []table.Column{
		{Name: "rate", Key: "rate", Number: true},
		{Name: "paper, pfscan, %", Key: "paper", Number: true},
		{Name: "ours, scanner, %", Key: "work", Number: true},
	}, Notes: []string{"Instructions of all replicas; on 8 cores with 8 threads, as in the paper, they are the time."}}
	for _, x := range s.Rates {
		plan.Rows = append(plan.Rows, study.Row{
			Name: fmt.Sprint(x.Rate), Key: []any{x, s.Cores, s.Quantum, s.Repeats},
			Measure: func(ctx context.Context) ([]string, error) { return s.sampled(ctx, x) },
		})
	}
	return plan
}

// sampled measures the work of all replicas at a sampling rate.
func (s *settings) sampled(ctx context.Context, x rate) ([]string, error) {
	c, clean, err := s.programConfig(program{Name: "scanner"}, s.Cores)
	defer clean()
	if err != nil {
		return nil, err
	}
	c.Cores, c.Sched.Quantum = s.Cores, s.Quantum
	o := frost.DefaultOptions()
	o.Sample, o.Epoch, o.Growth = x.Rate, 0.2, 0
	r, _, err := trial(ctx, c, o)
	if err != nil {
		return nil, err
	}
	all, first := work(r)
	return []string{fmt.Sprint(x.Rate), x.Reported, number(100 * (all/first - 1))}, nil
}

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
