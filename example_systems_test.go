package heddle_test

import (
	"context"
	"fmt"
	"log"
	"path/filepath"
	"time"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/experiments/h3"
	"github.com/heddle-dmt/heddle/experiments/minimize"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// lostUpdates is a program whose threads add to one counter without a lock.
const lostUpdates = `
#include <pthread.h>
#include <stdio.h>
#ifndef ROUNDS
#define ROUNDS 100
#endif
static volatile int counter;
static __attribute__((noinline)) int successor(int n) { return n + 1; }
static void *add(void *arg) {
	for (int i = 0; i < ROUNDS; i++) counter = successor(counter);
	return arg;
}
int main(void) {
	pthread_t t[4];
	for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, add, 0);
	for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
	printf("%d of %d\n", counter, 4 * ROUNDS);
	return 0;
}`

// The data races of a recorded run are reported with source lines.
func Example_races() {
	dir, remove := temporaryFolder()
	defer remove()
	c := heddle.DefaultConfig()
	c.Args = []string{compile(dir, lostUpdates)}
	path := filepath.Join(dir, "trace")
	record(c, path, heddle.Record{Sync: &heddle.SyncRecord{Heap: true}, Memory: &recorder.MemoryConfig{}})
	t, err := trace.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	found, err := report.Make("trace", t, report.Options{Order: races.HappensBefore, Benign: report.Mark})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range found.Races {
		fmt.Println(r.At.Name, r.Second.Stack[0].Function)
	}
	// Output: counter add
}

// A hybrid schedule has the racy program give the same result with every seed: it orders the
// synchronization operations of the recorded run, and the accesses that race.
func Example_hybridSchedule() {
	dir, remove := temporaryFolder()
	defer remove()
	c := heddle.DefaultConfig()
	c.Args = []string{compile(dir, lostUpdates)}
	c.Control = peregrine.ControlConfig()
	peregrine.BindNow(&c)
	path := filepath.Join(dir, "trace")
	recorded := record(c, path, *peregrine.RecordConfig(nil))
	file, err := peregrine.ComputeFile(context.Background(), path, peregrine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for seed := range uint64(3) {
		c := heddle.DefaultConfig()
		c.Args, c.Seed = file.Args, seed
		if err := peregrine.Enforce(&c, file, "trace", enforce.Options{}); err != nil {
			log.Fatal(err)
		}
		r, err := heddle.Run(context.Background(), c)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Schedule.Followed, r.OutputDigest == recorded.OutputDigest)
	}
	// Output:
	// true true
	// true true
	// true true
}

// Frost executes each epoch as three replicas, and survives a data race when two of them agree.
func Example_frost() {
	dir, remove := temporaryFolder()
	defer remove()
	c := heddle.DefaultConfig()
	c.Args = []string{compile(dir, lostUpdates, "-DROUNDS=1000")}
	c.Sched.Policy, c.Sched.Quantum = "random", 20
	r, err := frost.Run(context.Background(), c, frost.DefaultOptions())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Verdict, r.Races)
	// Output: survived 1
}

// failingSeed is a seed with which overdraft fails under smallQuanta.
const failingSeed = 1

// A failure is reproduced from the branch traces of a run: they have no values, no accesses to
// memory and no order of synchronization.
func Example_reproduce() {
	dir, remove := temporaryFolder()
	defer remove()
	c := smallQuanta(compile(dir, overdraft))
	c.Seed = failingSeed
	path := filepath.Join(dir, "trace")
	record(c, path, heddle.Record{PT: &pt.Config{PSBPeriod: 4096, RetCompression: true, Timing: pt.Timing{TSC: true}}})
	r, err := h3.Open(context.Background(), path)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	found, err := r.Reproduce(context.Background(), h3.Options{Now: time.Now})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Answer, found.Verified)
	// Output: satisfiable true
}

// The shortest schedule under which a recorded run fails has few context switches: the trace of
// that run replays to the same failure.
func Example_minimize() {
	dir, remove := temporaryFolder()
	defer remove()
	c := smallQuanta(compile(dir, overdraft))
	c.Seed = failingSeed
	path := filepath.Join(dir, "trace")
	record(c, path, heddle.Record{})
	r, err := minimize.Minimize(context.Background(), path, filepath.Join(dir, "shortest"), minimize.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Failure, r.After.Switches < r.Before.Switches, r.After.Switches)
	// Output: assertion true 4
}
