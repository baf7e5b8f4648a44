package schedules_test

import (
	"context"
	"testing"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched"
)

// racyPrograms are the suite's, or some of them in the smallest test size.
func racyPrograms(t *testing.T) (list []programs.Program) {
	t.Helper()
	all, err := programs.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Has(programs.Buggy) && p.Kind != programs.Memory {
			list = append(list, p)
		}
	}
	return testsize.Sample(list, testsize.Pick(4, len(list), len(list)), 0)
}

// suite is a racy program of the suite, ready to be run.
func suite(t *testing.T, name string) heddle.Config {
	t.Helper()
	p, err := programs.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	bin, err := p.Build(programs.Variant{Form: programs.Buggy, Optimize: 2, Debug: true})
	if err != nil {
		t.Fatal(err)
	}
	c := config(append([]string{bin}, p.CommandLine(p.Trigger(), 4)...)...)
	c.MaxInstructions = 200_000_000
	return c
}

// made records a program and makes its schedule.
func made(t *testing.T, c heddle.Config, o schedules.Options) *schedules.Made {
	t.Helper()
	m, err := schedules.Make(context.Background(), record(t, c, !o.SyncOnly), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// states are the state digests of runs under a schedule, with how often each came.
// Each of them has to follow it.
func states(t *testing.T, c heddle.Config, m *schedules.Made, n int, o sched.EnforceOptions) map[string]int {
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
			c := suite(t, p.Name)
			m := made(t, c, schedules.Options{})
			t.Logf("%d operations, %+v", len(m.Schedule.Operations), m.Counts)
			if found := states(t, c, m, testsize.Runs(2, 10, 50), sched.EnforceOptions{}); len(found) != 1 {
				t.Errorf("states: %v", found)
			}
		})
	}
}
