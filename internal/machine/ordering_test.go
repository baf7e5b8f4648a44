package machine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dmt"
)

// dmtPolicies are the algorithms of systems for deterministic multithreading.
var dmtPolicies = []string{sched.RRSync, sched.FCFSSync, sched.Kendo, sched.CoreDet, sched.Parrot, sched.DThreads, sched.Consequence}

// TestOrderingEveryOperation: a program that uses every kind of operation, in which
// everything depends on everything, ends as it must under every algorithm, and
// does its operations in one order where that is promised.
func TestOrderingEveryOperation(t *testing.T) {
	bin := machinetest.Compile(t, strings.Replace(controlled, "usleep(10);", "", 1))
	for _, policy := range dmtPolicies {
		t.Run(policy, func(t *testing.T) {
			orders := map[string]bool{}
			for i, cores := range []int{1, 2, 4, 7} {
				c, out := machinetest.Config(t, bin)
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

// napping has threads that spin while others sleep, with REST in the loops of the former.
const napping = `
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static atomic_int stop;
static void *spin(void *arg) {
	while (!stop) {
		for (volatile int i = 0; i < 100; i++);
		REST;
	}
	return 0;
}
static void *nap(void *arg) {
	unsigned long times = 0;
	for (int i = 0; i < 5; i++) {
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		times = times * 31 + now.tv_nsec;
		usleep(7 + 3 * (long)arg);
	}
	return (void *)times;
}
int main(void) {
	pthread_t spins[3], naps[3];
	unsigned long times = 0;
	for (long i = 0; i < 3; i++) {
		pthread_create(&spins[i], 0, spin, 0);
		pthread_create(&naps[i], 0, nap, (void *)i);
	}
	for (int i = 0; i < 3; i++) {
		void *r;
		pthread_join(naps[i], &r);
		times = times * 31 + (unsigned long)r;
	}
	stop = 1;
	for (int i = 0; i < 3; i++) pthread_join(spins[i], 0);
	printf("%lu\n", times);
	return 0;
}`

// TestOrderingReplaysYields: threads that sleep wake at the recorded times although others
// give up their cores meanwhile, to threads that may start there only later.
func TestOrderingReplaysYields(t *testing.T) {
	rests := map[string]string{"pause": "__builtin_ia32_pause()", "sched_yield": "sched_yield()"}
	for name, rest := range rests {
		bin := machinetest.Compile(t, strings.ReplaceAll(napping, "REST", rest))
		for _, policy := range dmtPolicies {
			for _, cores := range []int{1, 2, 4} {
				t.Run(fmt.Sprintf("%s/%s/%d cores", policy, name, cores), func(t *testing.T) {
					c, out := machinetest.Config(t, bin)
					c.Cores, c.Seed, c.Sched.Policy = cores, uint64(cores), policy
					c.Sched.Fairness = 10_000 // so that under rr-sync a thread that spins soon passes its turn on
					repeats(t, c, out, syncs)
				})
			}
		}
	}
}

// TestOrderingReturnsToSnapshots: a machine that returns to a snapshot while
// threads wait for turns continues as it did.
func TestOrderingReturnsToSnapshots(t *testing.T) {
	bin := machinetest.Compile(t, controlled)
	for _, policy := range dmtPolicies {
		t.Run(policy, func(t *testing.T) {
			c, _ := machinetest.Config(t, bin)
			c.Cores, c.Sched.Policy = 3, policy
			want := machinetest.Run(t, c).Digest
			m, err := machine.New(c)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			var snapshots []*machine.Snapshot
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
	c, _ := machinetest.Config(t, "/bin/true")
	c.Sched.Policy, c.Control.Policy = sched.Kendo, dmt.FCFS
	if _, err := machine.New(c); err == nil || !strings.Contains(err.Error(), "the policy kendo orders synchronization operations, and so does") {
		t.Errorf("got %v", err)
	}
}
