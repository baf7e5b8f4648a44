package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// The prices of the timing model, without the checks at calls and returns, and without
// the calls of slot() and the counting of branches too.
func withAllPrices(*arch.Costs) {}

func withoutChecks(c *arch.Costs) { c.SlotCheck = 0 }

func withoutSlots(c *arch.Costs) { c.SlotCheck, c.SlotCall, c.BranchCount = 0, 0, 0 }

func planFigure11(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "sync-schedule", Key: "sync", Number: true},
			{Name: "hybrid", Key: "hybrid", Number: true},
			{Name: "paper: hybrid", Key: "paper_hybrid"},
			{Name: "hybrid over sync", Key: "over", Number: true},
			{Name: "paper", Key: "paper_over"},
			{Name: "by checks", Key: "checks", Number: true},
			{Name: "by slot()", Key: "slots", Number: true},
			{Name: "by constraints", Key: "order", Number: true},
			{Name: "with its own constraints alone", Key: "own", Number: true},
			{Name: "mem-schedule", Key: "mem", Number: true},
			{Name: "paper", Key: "paper_mem"},
			reasonColumn,
		},
		Notes: []string{
			fmt.Sprintf("Virtual time in times of that of runs without a schedule, means of %d runs, with flag relay and without waits at barriers and sleeps, as PEREGRINE runs.", s.Times),
			"The paper's figure is a plot: its text gives the numbers that are here, and for mem-schedules the 1.2 to 6 times that another system reports.",
			"\"By checks\" is what of \"hybrid over sync\" goes when calls and returns have no check of the thread's flag, \"by slot()\" what goes when calls of slot() and counted branches cost nothing, \"by constraints\" what is left: semaphores, and waiting.",
			"\"With its own constraints alone\" is hybrid over sync without the constraints on memory of the C library, whose code the paper does not instrument; \"-\" if the schedule cannot be followed without them.",
			"Functions are looked up before the run, or the dynamic linker would have most constraints.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.HybridRow(x, len(p.Head), func(ctx context.Context, r *study.HybridRun) ([]string, error) {
			c, err := compareSchedules(ctx, s, r)
			if err != nil {
				return nil, err
			}
			return []string{
				x.Name, fmt.Sprintf("%.3f", c.sync), fmt.Sprintf("%.3f", c.hybrid), x.Reported["hybrid"],
				percentText(c.hybrid/c.sync - 1), x.Reported["over"], percentText(c.checks), percentText(c.slots), percentText(c.order), c.own,
				fmt.Sprintf("%.2f", c.mem), "1.2 to 6", c.explainRow(r, x),
			}, nil
		}, s.Times))
	}
	return p, nil
}

func percentText(share float64) string { return fmt.Sprintf("%+.1f %%", 100*share) }

// comparison is a row of figure 11.
type comparison struct {
	// The times under the three kinds of schedules, in times of that without.
	sync, hybrid, mem float64
	// The additional parts of the hybrid schedule's time, in shares of the sync-schedule's.
	checks, slots, order float64
	own                  string           // how much more it is without constraints on the C library's memory
	run                  *study.TimedRuns // under the hybrid schedule
}

// paperEnforcement is how PEREGRINE enforces schedules.
var paperEnforcement = enforce.Options{Relay: enforce.FlagRelay, SkipWait: true}

func compareSchedules(ctx context.Context, s *study.Settings, r *study.HybridRun) (*comparison, error) {
	var cycles []float64
	x := &comparison{}
	for _, run := range []struct {
		free  bool
		make  peregrine.Options
		price func(*arch.Costs)
	}{
		{free: true, price: withAllPrices},
		{make: peregrine.Options{SyncOnly: true}, price: withAllPrices},
		{price: withoutSlots},
		{price: withoutChecks},
		{price: withAllPrices},
		{make: peregrine.Options{Every: true}, price: withAllPrices},
	} {
		m := r.Made
		switch {
		case run.free:
			m = nil
		case run.make != peregrine.Options{}:
			var err error
			if m, err = r.Make(ctx, run.make); err != nil {
				return nil, err
			}
		}
		o := paperEnforcement
		o.SyncOnly = run.make.SyncOnly
		t, err := s.Time(ctx, r.RecordedRun, m, o, run.price)
		if err != nil {
			return nil, err
		}
		if m == r.Made {
			x.run = t
		}
		cycles = append(cycles, t.Cycles)
	}
	free, sync := cycles[0], cycles[1]
	x.sync, x.hybrid, x.mem = sync/free, cycles[4]/free, cycles[5]/free
	x.checks, x.slots, x.order = (cycles[4]-cycles[3])/sync, (cycles[3]-cycles[2])/sync, cycles[2]/sync-1
	x.own = "-"
	if t, err := s.Time(ctx, r.RecordedRun, ownConstraintsOnly(r), paperEnforcement, withAllPrices); err == nil {
		x.own = percentText(t.Cycles/sync - 1)
	}
	return x, ctx.Err()
}

// ownConstraintsOnly is the hybrid schedule with the constraints alone that are between lines of
// the program's own source.
func ownConstraintsOnly(r *study.HybridRun) *peregrine.Schedule {
	s := *r.Made.Schedule
	s.Constraints = nil
	for i, c := range r.Made.Schedule.Constraints {
		if i < len(r.File.Notes) && isOwnConstraint(r, r.File.Notes[i]) {
			s.Constraints = append(s.Constraints, c)
		}
	}
	return &peregrine.Schedule{Schedule: &s}
}

// near is how much more time under a hybrid schedule than under a sync-schedule is as
// little as the paper has for all programs but one, and usual by how much a time may be
// above that without a schedule as most of the paper's are.
const (
	smallOverhead = 0.06
	usualOverhead = 0.15
)

// explainRow says how a row differs from the paper, and why.
func (c *comparison) explainRow(r *study.HybridRun, p study.ProgramStudy) string {
	var reasons []string
	e := c.run.Schedule
	if c.sync-1 > usualOverhead && p.Reported["hybrid"] != "1.47" {
		reasons = append(reasons, fmt.Sprintf("operations: one in %d instructions, in its turn", c.run.Instructions/max(e.Operations, 1)))
	}
	if over := c.hybrid/c.sync - 1; over > smallOverhead {
		most := max(c.checks, c.slots, c.order)
		switch most {
		case c.slots:
			reasons = append(reasons, fmt.Sprintf("slot(): before %d of %d instructions, those from an operation to a constraint; %s",
				e.Slots, c.run.Instructions, libraryConstraints(r)))
		case c.checks:
			reasons = append(reasons, "checks: it calls functions often")
		default:
			reasons = append(reasons, fmt.Sprintf("constraints: threads were held for %d of %d; %s", e.Stalled, e.Constraints, libraryConstraints(r)))
		}
	}
	if p.Why != "" {
		reasons = append(reasons, p.Why)
	}
	return strings.Join(reasons, ". ")
}

// libraryConstraints says how many constraints are between two lines of the program's own source.
func libraryConstraints(r *study.HybridRun) string {
	all := len(r.Made.Schedule.Constraints)
	return fmt.Sprintf("%d of %d constraints are the C library's, which the paper does not instrument", all-countOwn(r), all)
}

func planFigure12(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "flag relay", Key: "flag", Number: true},
			{Name: "skip waits", Key: "skip", Number: true},
			{Name: "both", Key: "both", Number: true},
			{Name: "paper: faster by", Key: "paper"},
			{Name: "operations", Key: "operations", Number: true},
			{Name: "waited", Key: "waited", Number: true},
			{Name: "left out", Key: "skipped", Number: true},
			reasonColumn,
		},
		Notes: []string{
			fmt.Sprintf("Virtual time under the hybrid schedule with semaphore relay and all waits, in times of that with each of the two, and with both; means of %d runs.", s.Times),
			"The paper's figure is a plot: its text says which programs each of the two makes faster.",
			"\"Waited\" are operations for whose turn a thread was held, \"left out\" waits at barriers and sleeps that are left out.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.HybridRow(x, len(p.Head), func(ctx context.Context, r *study.HybridRun) ([]string, error) {
			return speedUpCells(ctx, s, r, x)
		}, s.Times))
	}
	return p, nil
}

// speedUpCells is a row of figure 12.
func speedUpCells(ctx context.Context, s *study.Settings, r *study.HybridRun, x study.ProgramStudy) ([]string, error) {
	var times []*study.TimedRuns
	for _, o := range []enforce.Options{
		{}, {Relay: enforce.FlagRelay}, {SkipWait: true}, {Relay: enforce.FlagRelay, SkipWait: true},
	} {
		t, err := s.Time(ctx, r.RecordedRun, r.Made, o, withAllPrices)
		if err != nil {
			return nil, err
		}
		times = append(times, t)
	}
	cells := []string{x.Name}
	for _, t := range times[1:] {
		cells = append(cells, fmt.Sprintf("%.2f", times[0].Cycles/t.Cycles))
	}
	plain, skipping := times[0].Schedule, times[2].Schedule
	cells = append(cells, x.Reported["faster"], fmt.Sprint(plain.Operations), fmt.Sprint(plain.Waited), fmt.Sprint(skipping.Skipped))
	return append(cells, explainSpeedUp(x, times)), nil
}

// explainSpeedUp says why the paper's two ways of making a program faster do not. Times are
// those of plain runs, with flag relay, and without waits.
func explainSpeedUp(p study.ProgramStudy, times []*study.TimedRuns) string {
	const significant = 1.05
	var reasons []string
	plain, skipping := times[0].Schedule, times[2].Schedule
	if strings.Contains(p.Reported["faster"], "flag") && times[0].Cycles/times[1].Cycles < significant {
		reasons = append(reasons, fmt.Sprintf("flag relay: wake-ups are %.1f %% of the time, %d in %d instructions",
			100*float64(plain.Gate.Delayed)/times[0].Cycles, plain.Gate.Released, times[0].Instructions))
	}
	if strings.Contains(p.Reported["faster"], "skipped") && times[0].Cycles/times[2].Cycles < significant {
		why := fmt.Sprintf("waits: of %d that are left out each thread waits for its next turn instead, which the same order gives it", skipping.Skipped)
		if skipping.Skipped == 0 {
			why = "waits: it has none"
		}
		reasons = append(reasons, why)
	}
	if p.Why != "" {
		reasons = append(reasons, p.Why)
	}
	return strings.Join(reasons, ". ")
}
