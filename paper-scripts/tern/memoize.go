package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/memo"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/experiments/table"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

// recordTo records a run for a schedule, its trace in a folder.
func recordTo(ctx context.Context, c heddle.Config, dir string) (trace string, err error) {
	file, err := os.CreateTemp(dir, "*.trace")
	if err != nil {
		return "", err
	}
	defer file.Close()
	_, err = memo.Record(ctx, c, file)
	return file.Name(), err
}

// memoize makes a schedule of a run. A program of which none is kept is Unfit.
func memoize(ctx context.Context, c heddle.Config, dir string, mode slice.Mode) (*memo.Made, error) {
	trace, err := recordTo(ctx, c, dir)
	if err != nil {
		return nil, err
	}
	defer os.Remove(trace)
	m, err := memo.Make(ctx, trace, memo.Options{Mode: mode})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, study.Unfit{Reason: err.Error()}
	}
	return m, nil
}

func table6(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "instructions", Key: "instructions", Number: true},
			{Name: "machine, s", Key: "machine", Number: true},
			{Name: "recorded, s", Key: "recorded", Number: true},
			{Name: "memoized, s", Key: "memoized", Number: true},
			{Name: "times the machine's", Key: "times", Number: true},
			{Name: "paper", Key: "paper"},
			why,
		},
		Notes: []string{
			"Processor seconds of a run of the machine, of a run recorded for a schedule, and of making the schedule with its preconditions of that: races, expressions, slice, simplification by Z3, and a run under the schedule to test it. The last number is that of recording and memoizing together.",
			"The paper's table is not in the text that we have. It says that the memoizer may run offline, and that KLEE, which interprets, is what slows it down.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.Row(x, len(p.Head), func(ctx context.Context, subject *study.Subject, dir string) ([]string, error) {
			return memoizing(ctx, s, subject, dir)
		}))
	}
	return p, nil
}

// memoizing measures what it takes to memoize a run.
func memoizing(ctx context.Context, s *study.Settings, subject *study.Subject, dir string) ([]string, error) {
	c := subject.Config(s.Seed)
	var r *heddle.Result
	plain, err := study.Spent(func() (err error) { _, r, err = study.Run(ctx, c); return err })
	if err != nil {
		return nil, err
	}
	var trace string
	recorded, err := study.Spent(func() (err error) { trace, err = recordTo(ctx, c, dir); return err })
	if err != nil {
		return nil, err
	}
	memoized, err := study.Spent(func() error { _, err := memo.Make(ctx, trace, memo.Options{Mode: slice.TERN}); return err })
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, study.Unfit{Reason: err.Error()}
	}
	return []string{
		subject.Program.Name, fmt.Sprint(r.Instructions), study.Seconds(plain), study.Seconds(recorded), study.Seconds(memoized),
		fmt.Sprintf("%.0f", (recorded+memoized).Seconds()/plain.Seconds()), "-", "",
	}, nil
}

// optimizations are figure 13's ways to check an input: by all constraints, by those that
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

func figure13(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{Head: []table.Column{{Name: "program", Key: "program"}}}
	for _, o := range optimizations {
		name := map[string]string{"all": "no opt", "simplified": "simplify", "sliced": "slice", "both": "both"}[o.key]
		p.Head = append(p.Head, table.Column{Name: name + ", terms", Key: "terms_" + o.key, Number: true}, table.Column{Name: name + ", us", Key: o.key, Number: true})
	}
	p.Head = append(p.Head, table.Column{Name: "times as fast", Key: "times", Number: true}, table.Column{Name: "paper", Key: "paper_times"}, why)
	p.Notes = []string{
		"Microseconds of processor time to check an input against the constraints of a schedule: all that came up, those that the rest does not imply, those of branches with an operation before their post-dominators, and both.",
		"The paper's figure is a plot, of Apache, fft, lu and radix: its text says that the two make checking of lu 16 times as fast.",
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.Row(x, len(p.Head), func(ctx context.Context, subject *study.Subject, dir string) ([]string, error) {
			return checking(ctx, s, &x, subject, dir)
		}))
	}
	return p, nil
}

// checking measures the checks of a program's constraints.
func checking(ctx context.Context, s *study.Settings, x *study.Studied, subject *study.Subject, dir string) ([]string, error) {
	trace, err := recordTo(ctx, subject.Config(s.Seed), dir)
	if err != nil {
		return nil, err
	}
	made, err := schedules.Make(ctx, trace, schedules.Options{Portable: true})
	if err != nil {
		return nil, err
	}
	f, err := memo.Follow(ctx, trace, made, memo.Options{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cells := []string{x.Name}
	var first, last time.Duration
	for _, o := range optimizations {
		options := slice.DefaultOptions()
		options.Mode = o.mode
		terms := memo.Terms(slice.Make(f.Input, options), f.Input)
		executor := f.Recording.Executor
		if o.simplified {
			terms = preconditions.Simplify(executor.Pool, terms, executor.Recorded, preconditions.DefaultLimit)
		}
		set := &preconditions.Set{Args: len(f.Config.Args), Env: f.Config.Env, Derived: executor.Derived(), Terms: distinct(terms)}
		if last, err = checkTime(&f.Config, set); err != nil {
			return nil, err
		}
		if first == 0 {
			first = last
		}
		cells = append(cells, fmt.Sprint(len(set.Terms)), fmt.Sprintf("%.2f", float64(last.Nanoseconds())/1000))
	}
	return append(cells, fmt.Sprintf("%.1f", float64(first)/float64(last)), x.Says("times"), x.Why), nil
}

// distinct leaves out terms that are there before.
func distinct(terms []*symbolic.Expr) (list []*symbolic.Expr) {
	seen := map[*symbolic.Expr]bool{}
	for _, t := range terms {
		if !seen[t] && !t.IsConst() {
			seen[t] = true
			list = append(list, t)
		}
	}
	return list
}

// enough is for how long checks are repeated to measure one.
const enough = 200 * time.Millisecond

// checkTime is the processor time to check the recorded input, which is admitted.
func checkTime(c *heddle.Config, set *preconditions.Set) (time.Duration, error) {
	checker, err := preconditions.NewChecker(set)
	if err != nil {
		return 0, err
	}
	in := memo.NewInput(c)
	defer in.Close()
	for n := 1; ; n *= 2 {
		spent, err := study.Spent(func() error {
			for range n {
				if failed, shape := checker.Check(&in.Input); failed >= 0 || !shape {
					return fmt.Errorf("bug: the recorded input does not satisfy term %d", failed)
				}
			}
			return nil
		})
		if err != nil || spent >= enough {
			return spent / time.Duration(n), err
		}
	}
}
