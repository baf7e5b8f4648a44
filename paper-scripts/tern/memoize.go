package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

// recordTrace records a run for a schedule, with its trace in a folder.
func recordTrace(ctx context.Context, c machine.Config, dir string) (trace string, err error) {
	file, err := os.CreateTemp(dir, "*.trace")
	if err != nil {
		return "", err
	}
	defer file.Close()
	_, err = tern.Record(ctx, c, file)
	return file.Name(), err
}

// memoizeRun makes a schedule of a run. If none can be made the error is Unmeasurable.
func memoizeRun(ctx context.Context, c machine.Config, dir string, mode slice.Mode) (*tern.Schedule, error) {
	trace, err := recordTrace(ctx, c, dir)
	if err != nil {
		return nil, err
	}
	defer os.Remove(trace)
	m, err := tern.Make(ctx, trace, tern.Options{Mode: mode})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, study.Unmeasurable{Reason: err.Error()}
	}
	return m, nil
}

func planTable6(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "instructions", Key: "instructions", Number: true},
			{Name: "machine, s", Key: "machine", Number: true},
			{Name: "recorded, s", Key: "recorded", Number: true},
			{Name: "memoized, s", Key: "memoized", Number: true},
			{Name: "times the machine's", Key: "times", Number: true},
			{Name: "paper", Key: "paper"},
			whyColumn,
		},
		Notes: []string{
			"Processor seconds of a run of the machine, of a run recorded for a schedule, and of making the schedule with its preconditions of that: races, expressions, slice, simplification by Z3, and a run under the schedule to test it. The last number is that of recording and memoizing together.",
			"The paper's table is not in the text that we have. It says that the memoizer may run offline, and that KLEE, which interprets, is what slows it down.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.Row(x, len(p.Head), func(ctx context.Context, subject *study.Subject, dir string) ([]string, error) {
			return measureMemoizing(ctx, s, subject, dir)
		}))
	}
	return p, nil
}

// measureMemoizing measures the cost of memoizing a run.
func measureMemoizing(ctx context.Context, s *study.Settings, subject *study.Subject, dir string) ([]string, error) {
	c := subject.Config(s.Seed)
	var r *machine.Result
	plain, err := study.ProcessorTimeOf(func() (err error) { _, r, err = study.Run(ctx, c); return err })
	if err != nil {
		return nil, err
	}
	var trace string
	recorded, err := study.ProcessorTimeOf(func() (err error) { trace, err = recordTrace(ctx, c, dir); return err })
	if err != nil {
		return nil, err
	}
	memoized, err := study.ProcessorTimeOf(func() error { _, err := tern.Make(ctx, trace, tern.Options{Mode: slice.TERN}); return err })
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, study.Unmeasurable{Reason: err.Error()}
	}
	return []string{
		subject.Program.Name, fmt.Sprint(r.Instructions), study.Seconds(plain), study.Seconds(recorded), study.Seconds(memoized),
		fmt.Sprintf("%.0f", (recorded+memoized).Seconds()/plain.Seconds()), "-", "",
	}, nil
}

// optimizations are figure 13's ways to check an input: by all constraints, by constraints that
// the rest does not imply (section 7.3), by those of branches near operations (section
// 7.4), and by both.
var optimizations = []struct {
	key        string
	mode       slice.Mode
	simplified bool
}{
	{"all", slice.Upper, false},
	{"simplified", slice.Upper, true},
	{"sliced", slice.TERN, false},
	{"both", slice.TERN, true},
}

func planFigure13(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{Head: []table.Column{{Name: "program", Key: "program"}}}
	for _, o := range optimizations {
		name := map[string]string{"all": "no opt", "simplified": "simplify", "sliced": "slice", "both": "both"}[o.key]
		p.Head = append(p.Head, table.Column{Name: name + ", terms", Key: "terms_" + o.key, Number: true}, table.Column{Name: name + ", us", Key: o.key, Number: true})
	}
	p.Head = append(p.Head, table.Column{Name: "times as fast", Key: "times", Number: true}, table.Column{Name: "paper", Key: "paper_times"}, whyColumn)
	p.Notes = []string{
		"Microseconds of processor time to check an input against the constraints of a schedule: all that came up, those that the rest does not imply, those of branches with an operation before their post-dominators, and both.",
		"The paper's figure is a plot, of Apache, fft, lu and radix: its text says that the two make checking of lu 16 times as fast.",
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.Row(x, len(p.Head), func(ctx context.Context, subject *study.Subject, dir string) ([]string, error) {
			return measureChecking(ctx, s, &x, subject, dir)
		}))
	}
	return p, nil
}

// measureChecking measures the checks of a program's constraints.
func measureChecking(ctx context.Context, s *study.Settings, x *study.ProgramStudy, subject *study.Subject, dir string) ([]string, error) {
	trace, err := recordTrace(ctx, subject.Config(s.Seed), dir)
	if err != nil {
		return nil, err
	}
	made, err := peregrine.Make(ctx, trace, peregrine.Options{Portable: true})
	if err != nil {
		return nil, err
	}
	f, err := tern.RunConcolic(ctx, trace, made, tern.Options{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cells := []string{x.Name}
	var first, last time.Duration
	for _, o := range optimizations {
		options := slice.DefaultOptions()
		options.Mode = o.mode
		terms := tern.Terms(slice.Make(f.Input, options), f.Input)
		executor := f.Recording.Executor
		if o.simplified {
			terms = preconditions.Simplify(executor.Pool, terms, executor.Recorded, preconditions.Limits{Steps: preconditions.DefaultLimit})
		}
		set := &preconditions.Set{Args: len(f.Config.Args), Env: f.Config.Env, Derived: executor.Derived(), Terms: distinctTerms(terms)}
		if last, err = measureCheck(&f.Config, set); err != nil {
			return nil, err
		}
		if first == 0 {
			first = last
		}
		cells = append(cells, fmt.Sprint(len(set.Terms)), fmt.Sprintf("%.2f", float64(last.Nanoseconds())/1000))
	}
	return append(cells, fmt.Sprintf("%.1f", float64(first)/float64(last)), x.PaperValue("times"), x.Why), nil
}

// distinctTerms removes repeated and constant terms.
func distinctTerms(terms []*symbolic.Expr) (list []*symbolic.Expr) {
	seen := map[*symbolic.Expr]bool{}
	for _, t := range terms {
		if !seen[t] && !t.IsConst() {
			seen[t] = true
			list = append(list, t)
		}
	}
	return list
}

// minMeasuredTime is the time for which a check is repeated to measure it.
const minMeasuredTime = 200 * time.Millisecond

// measureCheck returns the processor time of checking the recorded input, which is
// admitted.
func measureCheck(c *machine.Config, set *preconditions.Set) (time.Duration, error) {
	checker, err := preconditions.NewChecker(set)
	if err != nil {
		return 0, err
	}
	in := tern.NewInput(c)
	defer in.Close()
	for n := 1; ; n *= 2 {
		spent, err := study.ProcessorTimeOf(func() error {
			for range n {
				if failed, shape := checker.Check(&in.Input); failed >= 0 || !shape {
					return fmt.Errorf("bug: the recorded input does not satisfy term %d", failed)
				}
			}
			return nil
		})
		if err != nil || spent >= minMeasuredTime {
			return spent / time.Duration(n), err
		}
	}
}
