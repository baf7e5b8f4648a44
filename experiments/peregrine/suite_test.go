package peregrine_test

import (
	"context"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// racyPrograms are the suite's, or some of them in the smallest test size.
func racyPrograms(t *testing.T) (list []suite.Program) {
	t.Helper()
	all, err := suite.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Has(suite.Buggy) && p.Kind != suite.Memory {
			list = append(list, p)
		}
	}
	return testsize.Sample(list, testsize.Pick(4, len(list), len(list)), 0)
}

// suiteConfig is a racy program of the suite, ready to be run.
func suiteConfig(t *testing.T, name string) machine.Config {
	t.Helper()
	p, err := suite.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	bin, err := p.Build(suite.Variant{Form: suite.Buggy, Optimize: 2, Debug: true})
	if err != nil {
		t.Fatal(err)
	}
	c := config(append([]string{bin}, p.CommandLine(p.Trigger(), 4)...)...)
	c.MaxInstructions = 200_000_000
	return c
}

// made records a program and makes its schedule.
func made(t *testing.T, c machine.Config, o peregrine.Options) *peregrine.Schedule {
	t.Helper()
	m, err := peregrine.Make(context.Background(), record(t, c, !o.SyncOnly), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// states are the state digests of runs under a schedule, with how often each came.
// Each of them has to follow it.
func states(t *testing.T, c machine.Config, m *peregrine.Schedule, n int, o enforce.Options) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, v := range varied(c, n) {
		r, _ := enforced(t, v, m, o)
		if !r.Schedule.Followed {
			t.Errorf("seed %d on %d cores leaves the schedule: %s", v.Seed, v.Cores, r.Schedule.Reason)
		}
		found[r.StateDigest]++
	}
	return found
}

// Every racy program of the suite has one state under its hybrid schedule.
func TestSuiteIsDeterministic(t *testing.T) {
	for _, p := range racyPrograms(t) {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			c := suiteConfig(t, p.Name)
			m := made(t, c, peregrine.Options{})
			t.Logf("%d operations, %+v", len(m.Schedule.Operations), m.Counts)
			if found := states(t, c, m, testsize.Runs(2, 10, 50), enforce.Options{}); len(found) != 1 {
				t.Errorf("states: %v", found)
			}
		})
	}
}
