package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dmt"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// The systems that are not the policy of their name: PARROT with hints in the programs, and schedules of PEREGRINE.
const (
	systemHints     = "parrot-hints"
	systemPeregrine = "peregrine"
)

// systems lists the systems: timed, against which the others are measured, comes first.
func systems() []string {
	return []string{
		sched.Timed, sched.FCFSSync, sched.RRSync, sched.Kendo, sched.CoreDet, sched.Parrot,
		systemHints, sched.DThreads, sched.Consequence, systemPeregrine,
	}
}

// policyOf is a system's policy.
func policyOf(system string) string {
	if system == systemHints {
		return sched.Parrot
	}
	return system
}

// target is a program with arguments.
type target struct {
	name string
	// config is that of a run on data number i.
	config func(i int) machine.Config
	// subject is that of the suite, nil for others; data of such a program has a seed unless it is fixed.
	subject *study.Subject
}

// quantumCycles bounds the lead of a core where times are measured: as small as the cost of a wake-up.
const quantumCycles = 1000

// exactOptions are those with which times are measured: without noise.
func exactOptions(policy string) sched.Options {
	none := 0.0
	o := sched.Options{Policy: policy, Jitter: &none, Quantum: quantumCycles}
	if policy == sched.CoreDet {
		o.Quantum = 0 // part of the algorithm: the default
	}
	return o
}

// variedOptions are those of run number i under a policy, which is to differ from others.
func variedOptions(policy string, i int) sched.Options {
	jitter := []float64{0.1, 1, 0.5}[i%3]
	o := sched.Options{Policy: policy, Jitter: &jitter, Quantum: []uint64{300, 3000, 30_000, 100_000}[i%4]}
	if i%2 == 1 {
		o.DelayRate, o.DelayCycles = 0.1, 10_000<<(i%5)
	}
	if policy == sched.CoreDet {
		o.Quantum = 0
	}
	return o
}

// measureCycles returns the virtual time under a policy.
func measureCycles(ctx context.Context, t *target, options sched.Options) (float64, error) {
	c := t.config(0)
	c.Sched = options
	o, r, err := study.Run(ctx, c)
	switch {
	case err != nil:
		return 0, err
	case o.Outcome != machine.OutcomeExit || o.ExitCode != 0:
		return 0, study.Unmeasurable{Reason: fmt.Sprintf("%s under %s: %s, status %d: %.200s", t.name, options.Policy, o.Outcome, o.ExitCode, r.Message)}
	}
	return float64(r.Cycles), nil
}

// orderOf runs a configuration and returns a digest of the order of its operations, with their threads and
// objects.
func orderOf(ctx context.Context, c machine.Config, dir string) (string, error) {
	file, err := os.CreateTemp(dir, "*.trace")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	c.Record = &machine.Record{To: file, Sync: &machine.SyncRecord{}}
	if _, _, err := study.Run(ctx, c); err != nil {
		return "", err
	}
	tr, err := trace.Open(file.Name())
	if err != nil {
		return "", err
	}
	defer tr.Close()
	names := map[arch.ThreadID]string{}
	for e, err := range trace.Get[event.Start](tr, trace.Key{Kind: trace.Threads}, trace.Where{}) {
		if err != nil {
			return "", err
		}
		names[e.Thread] = e.Name
	}
	digest := sha256.New()
	inSection := map[arch.ThreadID]bool{} // of PARROT, in which timing decides
	for e, err := range trace.Get[event.Sync](tr, trace.Key{Kind: trace.Sync}, trace.Where{}) {
		switch {
		case err != nil:
			return "", err
		case e.Phase != event.Return || e.Effects&event.Inner != 0:
		case e.Op == event.OpSectionEnter || e.Op == event.OpSectionExit:
			inSection[e.Thread] = e.Op == event.OpSectionEnter
		case !inSection[e.Thread]:
			fmt.Fprintln(digest, names[e.Thread], e.Op, e.Object)
		}
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

// countOrders counts the orders of n runs.
func countOrders(ctx context.Context, dir string, n int, config func(i int) machine.Config) (int, error) {
	orders := make([]string, n)
	err := study.RunParallel(ctx, n, func(i int) error {
		var err error
		orders[i], err = orderOf(ctx, config(i), dir)
		return err
	})
	slices.Sort(orders)
	return len(slices.Compact(orders)), err
}

// countSchedules counts the orders of operations over seeds and machines with as many cores as there are
// threads or fewer, and over data under one seed.
func (s *settings) countSchedules(ctx context.Context, t *target, policy, dir string, data bool) (seeds, inputs string, err error) {
	n, err := countOrders(ctx, dir, s.Runs, func(i int) machine.Config {
		c := t.config(0)
		c.Sched, c.Seed, c.Cores = variedOptions(policy, i), s.Seed+uint64(i), 1+i*3%s.Cores
		return c
	})
	if err != nil || !data {
		return strconv.Itoa(n), "-", err
	}
	m, err := countOrders(ctx, dir, s.Inputs, func(i int) machine.Config {
		c := t.config(i)
		c.Sched = exactOptions(policy)
		return c
	})
	return strconv.Itoa(n), strconv.Itoa(m), err
}

// measurePeregrine records a run, makes its hybrid schedule, and measures runs under it: the time, and
// the schedules over seeds and data, where a run that leaves the schedule has another one.
func (s *settings) measurePeregrine(ctx context.Context, t *target, dir string, data bool) (cells []string, err error) {
	if t.subject == nil {
		return nil, study.Unmeasurable{Reason: "no schedules are made of programs without debug information here"}
	}
	t.subject.BindNow = true
	t.subject.Sched = exactOptions(sched.Timed)
	r, err := t.subject.Record(ctx, dir, s.Seed)
	if err != nil {
		return nil, err
	}
	m, err := r.Make(ctx, peregrine.Options{})
	if err != nil {
		return nil, err
	}
	free, err := measureCycles(ctx, t, exactOptions(sched.Timed))
	if err != nil {
		return nil, err
	}
	under := func(c machine.Config) (*machine.Result, error) {
		_, result, err := study.Run(ctx, r.ConfigUnder(c, m, enforce.Options{}))
		return result, err
	}
	c := r.Subject.Config(s.Seed)
	c.Sched = exactOptions(sched.Timed)
	first, err := under(c)
	if err != nil {
		return nil, err
	}
	if !first.Schedule.Followed {
		return nil, study.Unmeasurable{Reason: "the hybrid schedule cannot be followed: " + first.Schedule.Reason}
	}
	left := func(n int, config func(i int) machine.Config) (string, error) {
		followed := make([]bool, n)
		err := study.RunParallel(ctx, n, func(i int) error {
			result, err := under(config(i))
			followed[i] = err == nil && result.Schedule.Followed
			return err
		})
		count := 1
		for _, f := range followed {
			if !f {
				count++
			}
		}
		return strconv.Itoa(count), err
	}
	seeds, err := left(s.Runs, r.VariedConfig)
	if err != nil {
		return nil, err
	}
	inputs := "-"
	if data {
		if inputs, err = left(s.Inputs-1, func(i int) machine.Config {
			c := t.config(i + 1)
			c.Sched = exactOptions(sched.Timed)
			return c
		}); err != nil {
			return nil, err
		}
	}
	return []string{fmt.Sprintf("%.3f", float64(first.Cycles)/free), seeds, inputs, "-"}, nil
}

// lineOf names the source line of an access.
func lineOf(a *report.Access) string {
	for _, f := range a.Stack {
		if f.Line > 0 {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
	}
	return ""
}

// raceOrders runs a configuration and returns, for each pair of racy lines, which was first in the first
// instance, and how many instances there were.
func raceOrders(ctx context.Context, c machine.Config, dir string) (map[[2]string]string, error) {
	file, err := os.CreateTemp(dir, "*.trace")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	c.Record = &machine.Record{To: file, Sync: &machine.SyncRecord{Heap: true}, Memory: &recorder.MemoryConfig{}}
	if _, _, err := study.Run(ctx, c); err != nil {
		return nil, err
	}
	tr, err := trace.Open(file.Name())
	if err != nil {
		return nil, err
	}
	defer tr.Close()
	found, err := report.Make(file.Name(), tr, report.Options{Order: races.HappensBefore, Benign: report.Keep, Words: report.RaceWords})
	if err != nil {
		return nil, err
	}
	orders := map[[2]string]string{}
	for _, race := range found.Races {
		first, second := lineOf(&race.First), lineOf(&race.Second)
		if first == "" || second == "" {
			continue
		}
		pair := [2]string{min(first, second), max(first, second)}
		orders[pair] += fmt.Sprint(first, race.First.Thread, race.Second.Thread, race.Count, " ")
	}
	return orders, nil
}

// countRacyLines counts the lines of racy pairs whose order is not the same in all runs. With views of
// memory loads and stores are not recorded: there the whole results are compared.
func (s *settings) countRacyLines(ctx context.Context, t *target, policy, dir string) (string, error) {
	config := func(i int) machine.Config {
		c := t.config(0)
		c.Sched, c.Seed, c.MaxInstructions = variedOptions(policy, i), s.Seed+uint64(i), 20_000_000
		return c
	}
	if dmt.Isolates(policy) {
		results := make([]string, s.Races)
		err := study.RunParallel(ctx, s.Races, func(i int) error {
			o, r, err := study.Run(ctx, config(i))
			if err == nil {
				results[i] = fmt.Sprint(o, r.Instructions)
			}
			return err
		})
		if slices.Sort(results); len(slices.Compact(results)) > 1 {
			return "", fmt.Errorf("%s has several outcomes under %s, which orders races", t.name, policy)
		}
		return "0", err
	}
	runs := make([]map[[2]string]string, s.Races)
	err := study.RunParallel(ctx, s.Races, func(i int) error {
		var err error
		runs[i], err = raceOrders(ctx, config(i), dir)
		return err
	})
	lines := map[string]bool{}
	for _, run := range runs {
		for pair, order := range run {
			if slices.ContainsFunc(runs, func(other map[[2]string]string) bool { return other[pair] != order }) {
				lines[pair[0]], lines[pair[1]] = true, true
			}
		}
	}
	return strconv.Itoa(len(lines)), err
}
