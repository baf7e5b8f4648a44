package sweep

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/minimize"
	"github.com/heddle-dmt/heddle/experiments/sweep/store"
)

// shortenAll looks for the shortest failing schedules of the runs that the
// experiment asks for and that are not stored yet.
func (s *sweep) shortenAll(ctx context.Context, folder string, workers int) error {
	if s.plan.Experiment.Failures.Minimize == 0 {
		return nil
	}
	chosen, err := s.failingRuns()
	if err != nil {
		return err
	}
	var tasks []task
	stored := 0
	for _, run := range chosen {
		ok, err := s.store.GetShortest(run.Key, &minimize.Report{})
		if err := s.noteDamage(err); err != nil {
			return err
		}
		if ok && !s.again {
			stored++
			continue
		}
		tasks = append(tasks, task{run: run, shorten: &shortening{
			Job: run.Job, Base: filepath.Join(folder, s.plan.Experiment.fileName(run.Point)), Runs: s.plan.Experiment.Failures.Runs,
		}})
	}
	s.progress.Start(len(tasks), stored)
	defer s.progress.Stop()
	return s.carryOutTasks(ctx, tasks, workers)
}

// failingRuns lists, for each row of the table, the failing runs to be made shorter:
// those with the fewest turns of threads, in the order of the plan where those are
// equal.
func (s *sweep) failingRuns() ([]Run, error) {
	type candidate struct {
		run   Run
		turns uint64
	}
	rows := map[string][]candidate{} // for look-up only
	var order []string
	for _, run := range s.plan.Runs {
		record, ok, err := s.store.Get(run.slot, 1)
		if err != nil {
			return nil, err
		}
		if !ok || record.Failure != "" || record.Report.Result == nil || classOf(record, store.Native{}, false) == "" {
			continue
		}
		if s.failing.precedes(run) {
			continue
		}
		group := run.Point.withoutSeed().storeSlot()
		if rows[group] == nil {
			order = append(order, group)
		}
		rows[group] = append(rows[group], candidate{run, record.Report.Result.Turns})
	}
	var chosen []Run
	for _, group := range order {
		list := rows[group]
		slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(a.turns, b.turns) })
		for _, c := range list[:min(len(list), s.plan.Experiment.Failures.Minimize)] {
			chosen = append(chosen, c.run)
		}
	}
	return chosen, nil
}

// fileName names the files of a point: the program, the varied parameters, and the seed.
func (x *Experiment) fileName(p Point) string {
	parts := []string{p.Program}
	for _, a := range p.Arguments {
		parts = append(parts, a.Value)
	}
	for _, a := range x.gridAxes() {
		if a.varied {
			parts = append(parts, a.value(&row{point: p}))
		}
	}
	parts = append(parts, "seed"+strconv.FormatUint(p.Seed, 10))
	return strings.ReplaceAll(strings.Join(parts, "-"), "/", "_")
}

// keepShortest stores the shortest schedule and reports it.
func (s *sweep) keepShortest(o outcome) error {
	at := o.task.run.Point
	if o.failure != "" {
		s.summary.Failed++
		if s.summary.FirstFailure == "" {
			s.summary.FirstFailure = at.String() + ": " + o.failure
		}
		s.progress.Done(fmt.Sprintf("%v, made shorter: FAILED: %s", at, o.failure), true)
		return nil
	}
	p := o.shortest
	s.progress.Done(fmt.Sprintf("%v, made shorter: %d context switches (from %d), %d delayed stores (from %d), %d schedules tried, %.1f s",
		at, p.After.Switches, p.Before.Switches, p.After.Delays, p.Before.Delays, p.Runs, o.seconds), false)
	return s.store.PutShortest(o.task.run.Key, p)
}
