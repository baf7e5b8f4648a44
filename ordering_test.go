package heddle_test

import (
	"context"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/sched"
)

// dmtPolicies are the algorithms of systems for deterministic multithreading.
var dmtPolicies = []string{sched.RRSync, sched.FCFSSync, sched.Kendo, sched.CoreDet}

// TestOrderingEveryOperation: a program that uses every kind of operation, in which
// everything depends on everything, ends as it must under every algorithm, and
// does its operations in one order where that is promised.
func TestOrderingEveryOperation(t *testing.T) {
	bin := compile(t, strings.Replace(controlled, "usleep(10);", "", 1))
	for _, policy := range dmtPolicies {
		t.Run(policy, func(t *testing.T) {
			orders := map[string]bool{}
			for i, cores := range []int{1, 2, 4, 7} {
				c, out := config(t, bin)
				c.Cores, c.Seed = cores, uint64(i)
				c.Sched = sched.Options{Policy: policy, DelayRate: 0.1 * float64(i)}
				r, path := record(t, c, syncs)
				if r.Outcome != "exit" || out.String() != "210 1\n" {
					t.Fatalf("%d cores: %s: %s%s", cores, r.Outcome, r.Message, out)
				}
				orders[operationOrder(t, path)] = true
			}
			if fixed := policy != sched.FCFSSync; fixed == (len(orders) > 1) {
				t.Errorf("%d orders: %v", len(orders), orders)
			}
		})
	}
}

// TestOrderingReturnsToSnapshots: a machine that returns to a snapshot while
// threads wait for turns goes on as it did.
func TestOrderingReturnsToSnapshots(t *testing.T) {
	bin := compile(t, controlled)
	for _, policy := range dmtPolicies {
		t.Run(policy, func(t *testing.T) {
			c, _ := config(t, bin)
			c.Cores, c.Sched.Policy = 3, policy
			want := run(t, c).Digest
			m, err := heddle.New(c)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			var snapshots []*heddle.Snapshot
			for n := range 400 {
				if n%100 == 50 {
					s := m.Snapshot()
					defer s.Release()
					snapshots = append(snapshots, s)
				}
				m.Step()
			}
			for i, s := range snapshots {
				m.Restore(s)
				r, err := m.Run(context.Background())
				if err != nil || r.Digest != want {
					t.Errorf("from snapshot %d: %s, %v; want %s", i, r.Digest, err, want)
				}
			}
		})
	}
}

// TestOrderingIsDecidedOnce: two who would decide the order of operations are one
// too many.
func TestOrderingIsDecidedOnce(t *testing.T) {
	c, _ := config(t, "/bin/true")
	c.Sched.Policy, c.Control.Policy = sched.Kendo, sched.FCFS
	if _, err := heddle.New(c); err == nil || !strings.Contains(err.Error(), `policy is "kendo"`) {
		t.Errorf("got %v", err)
	}
}
