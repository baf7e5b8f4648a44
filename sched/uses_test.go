package sched_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/sched"
	. "github.com/heddle-dmt/heddle/sched/schedtest"
)

// Every option has an entry, and each policy is that of some entry.
func TestEveryOptionSaysWhichPoliciesUseIt(t *testing.T) {
	options := reflect.TypeFor[sched.Options]()
	for i := range options.NumField() {
		name := options.Field(i).Tag.Get("mapstructure")
		if name == "policy" {
			continue
		}
		users := sched.UsedBy(name)
		if len(users) == 0 {
			t.Errorf("option %s: no policy uses it", name)
		}
		for _, policy := range users {
			if !slices.Contains(sched.PolicyNames(), policy) {
				t.Errorf("option %s: %q is no policy", name, policy)
			}
		}
	}
}

// An option that a policy does not use changes no decision of it, and one that it uses has a
// value that does.
func TestUnusedOptionsChangeNothing(t *testing.T) {
	jitter := 0.9
	changes := map[string]func(*sched.Options){
		"quantum":      func(o *sched.Options) { o.Quantum = 77 },
		"jitter":       func(o *sched.Options) { o.Jitter = &jitter },
		"delay_rate":   func(o *sched.Options) { o.DelayRate = 0.9 },
		"delay_cycles": func(o *sched.Options) { o.DelayRate, o.DelayCycles = 0, 7 },
		"granularity":  func(o *sched.Options) { o.Granularity = sched.Instruction },
		"depth":        func(o *sched.Options) { o.Depth = 9 },
		"length":       func(o *sched.Options) { o.Length = 5000 },
		"fairness":     func(o *sched.Options) { o.Fairness = 300_000 },
	}
	for option, change := range changes {
		for _, policy := range sched.PolicyNames() {
			if slices.Contains(sched.UsedBy(option), policy) {
				continue
			}
			o := sched.Options{Policy: policy}
			change(&o)
			if got, want := scriptedDecisions(t, o), scriptedDecisions(t, sched.Options{Policy: policy}); !slices.Equal(got, want) {
				t.Errorf("%s changes decisions of %s, which does not use it", option, policy)
			}
		}
	}
}

// scriptedDecisions are the decisions of a run of two threads on one core that take turns,
// sleep and wait for each other.
func scriptedDecisions(t *testing.T, o sched.Options) []string {
	t.Helper()
	m := NewMachine(NewCluster(t, 1, 1, o),
		[]Op{Run(5000), Sleep(900), Run(30_000), Set(1), Run(8000)},
		[]Op{Run(9000), Locked(0), Run(9000), Await(1), Run(3000)})
	for m.Step(t) {
	}
	return m.History
}
