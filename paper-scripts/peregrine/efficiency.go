package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/experiments/table"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// The prices of the timing model, without the checks at calls and returns, and without
// the calls of slot() and the counting of branches too.
func allPrices(*emu.Costs) {}

func noChecks(c *emu.Costs) { c.SlotCheck = 0 }

func noSlots(c *emu.Costs) { c.SlotCheck, c.SlotCall, c.BranchCount = 0, 0, 0 }

func figure11(s *study.Settings) (*study.Plan, error) {
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
			why,
		},
		Notes: []string{
			fmt.Sprintf("Virtual time in times of that of runs without a schedule, means of %d runs, with flag relay and without waits at barriers and sleeps, as PEREGRINE runs.", s.Times),
			"The paper's figure is a plot: its text gives the numbers that are here, and for mem-schedules the 1.2 to 6 times that another system reports.",
			"\"By checks\" is what of \"hybrid over sync\" goes when calls and returns have no check of the thread's flag, \"by slot()\" what goes when instructions between an operation and a constraint call no slot() and branches there are not counted, \"by constraints\" what is left: semaphores, and waiting.",
			"\"With its own constraints alone\" is hybrid over sync without the constraints on memory of the C library, whose code the paper does not instrument; \"-\" if the schedule cannot be followed without them.",
			"Functions are looked up before the run, or the dynamic linker would have most constraints.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.HybridRow(x, len(p.Head), func(ctx context.Context, r *study.Hybrid) ([]string, error) {
			c, err := compare(ctx, s, r)
			if err != nil {
				return nil, err
			}
			return []string{
				x.Name, fmt.Sprintf("%.3f", c.sync), fmt.Sprintf("%.3f", c.hybrid), x.Reported["hybrid"],
				percent(c.hybrid/c.sync - 1), x.Reported["over"], percent(c.checks), percent(c.slots), percent(c.order), c.own,
				fmt.Sprintf("%.2f", c.mem), "1.2 to 6", c.why(r, x),
			}, nil
		}, s.Times))
	}
	return p, nil
}

func percent(share float64) string { return fmt.Sprintf("%+.1f %%", 100*share) }

// comparison is a row of figure 11.
type comparison struct {
	// The times under the three kinds of schedules, in times of that without.
	sync, hybrid, mem float64
	// What makes the hybrid schedule's more than the sync-schedule's, in shares of that.
	checks, slots, order float64
	own                  string       // how much more it is without constraints on the C library's memory
	run                  *study.Timed // under the hybrid schedule
}

// quick is how PEREGRINE enforces schedules.
var quick = sched.EnforceOptions{Relay: sched.FlagRelay, SkipWait: true}

func compare(ctx context.Context, s *study.Settings, r *study.Hybrid) (*comparison, error) {
	var cycles []float64
	x := &comparison{}
	for _, run := range []struct {
		free  bool
		make  schedules.Options
		price func(*emu.Costs)
	}{
		{free: true, price: allPrices},
		{make: schedules.Options{SyncOnly: true}, price: allPrices},
		{price: noSlots},
		{price: noChecks},
		{price: allPrices},
		{make: schedules.Options{Every: true}, price: allPrices},
	} {
		m := r.Made
		switch {
		case run.free:
			m = nil
		case run.make != schedules.Options{}:
			var err error
			if m, err = r.Make(ctx, run.make); err != nil {
				return nil, err
			}
		}
		o := quick
		o.SyncOnly = run.make.SyncOnly
		t, err := s.Time(ctx, r.Recorded, m, o, run.price)
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
	if t, err := s.Time(ctx, r.Recorded, ownAlone(r), quick, allPrices); err == nil {
		x.own = percent(t.Cycles/sync - 1)
	}
	return x, ctx.Err()
}

// ownAlone is the hybrid schedule with the constraints alone that are between lines of
// the program's own source.
func ownAlone(r *study.Hybrid) *schedules.Made {
	s := *r.Made.Schedule
	s.Constraints = nil
	for i, c := range r.Made.Schedule.Constraints {
		if i < len(r.File.Notes) && isOwn(r, r.File.Notes[i]) {
			s.Constraints = append(s.Constraints, c)
		}
	}
	return &schedules.Made{Schedule: &s}
}

// near is how much more time under a hybrid schedule than under a sync-schedule is as
// little as the paper has for all programs but one, and usual by how much a time may be
// above that without a schedule as most of the paper's are.
const (
	near  = 0.06
	usual = 0.15
)

// why says what of a row is not as in the paper, and what that comes from.
func (c *comparison) why(r *study.Hybrid, p study.Studied) string {
	var reasons []string
	e := c.run.Schedule
	if c.sync-1 > usual && p.Reported["hybrid"] != "1.47" {
		reasons = append(reasons, fmt.Sprintf("operations: one in %d instructions, in its turn", c.run.Instructions/max(e.Operations, 1)))
	}
	if over := c.hybrid/c.sync - 1; over > near {
		most := max(c.checks, c.slots, c.order)
		switch most {
		case c.slots:
			reasons = append(reasons, fmt.Sprintf("slot(): before %d of %d instructions, those from an operation to a constraint; %s",
				e.Slots, c.run.Instructions, whose(r)))
		case c.checks:
			reasons = append(reasons, "checks: it calls functions often")
		default:
			reasons = append(reasons, fmt.Sprintf("constraints: threads were held for %d of %d; %s", e.Stalled, e.Constraints, whose(r)))
		}
	}
	if p.Why != "" {
		reasons = append(reasons, p.Why)
	}
	return strings.Join(reasons, ". ")
}

// whose says how many constraints are between two lines of the program's own source.
func whose(r *study.Hybrid) string {
	all := len(r.Made.Schedule.Constraints)
	return fmt.Sprintf("%d of %d constraints are the C library's, which the paper does not instrument", all-own(r), all)
}

func figure12(s *study.Settings) (*study.Plan, error) {
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
			why,
		},
		Notes: []string{
			fmt.Sprintf("Virtual time under the hybrid schedule with semaphore relay and all waits, in times of that with each of the two, and with both; means of %d runs.", s.Times),
			"The paper's figure is a plot: its text says which programs each of the two makes faster.",
			"\"Waited\" are operations for whose turn a thread was held, \"left out\" waits at barriers and sleeps that are left out.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.HybridRow(x, len(p.Head), func(ctx context.Context, r *study.Hybrid) ([]string, error) {
			return speedUps(ctx, s, r, x)
		}, s.Times))
	}
	return p, nil
}

// speedUps is a row of figure 12.
func speedUps(ctx context.Context, s *study.Settings, r *study.Hybrid, x study.Studied) ([]string, error) {
	var times []*study.Timed
	for _, o := range []sched.EnforceOptions{
		{}, {Relay: sched.FlagRelay}, {SkipWait: true}, {Relay: sched.FlagRelay, SkipWait: true},
	} {
		t, err := s.Time(ctx, r.Recorded, r.Made, o, allPrices)
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
	return append(cells, faster(x, times)), nil
}

// faster says why the paper's two ways of making a program faster do not. Times are
// those of plain runs, with flag relay, and without waits.
func faster(p study.Studied, times []*study.Timed) string {
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
