package machine_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
)

// updates adds to counters without locks: in one cache line and across two, by instructions
// that each load and store.
const updates = `
#include <pthread.h>
#include <stdio.h>
static char room[256] __attribute__((aligned(64)));
#define ACROSS ((long *)(room + 60))
static int counter;
static void *work(void *a) {
	for (int i = 0; i < 2000; i++) {
		__asm__ volatile("addl $1, %0" : "+m"(counter));
		__asm__ volatile("addq $1, %0" : "+m"(*ACROSS));
		__asm__ volatile("movq %1, %0" : "=m"(*(long *)(room + 124)) : "r"(a));
		if (*(volatile long *)(room + 124) == 0) return a;
	}
	return 0;
}
int main(void) {
	pthread_t t[3];
	for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, work, (void *)((i + 1) * 0x0101010101010101));
	for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
	printf("%d %ld %lx\n", counter, *ACROSS, *(long *)(room + 124));
}
`

// TestUpdatesAreLost: an unlocked instruction that loads and stores is two accesses under
// every memory model, and policies let other cores act between them.
func TestUpdatesAreLost(t *testing.T) { onEngines(t, testUpdatesAreLost) }

func testUpdatesAreLost(t *testing.T, engine string) {
	program := machinetest.Compile(t, updates)
	for _, c := range []struct {
		name  string
		sched sched.Options
		seeds uint64
	}{
		{"random", sched.Options{Policy: sched.Random}, 10},
		{"random-instruction", sched.Options{Policy: sched.Random, Granularity: sched.Instruction}, 2},
		{"pct", sched.Options{Policy: sched.PCT, Length: 200_000}, 100},
		{"timed", sched.Options{Policy: sched.Timed, Quantum: 2000}, 60},
		{"rr-instruction", sched.Options{Policy: sched.RR, Granularity: sched.Instruction, Quantum: 100}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			lost := 0
			for seed := range c.seeds {
				conf, out := machinetest.Config(t, program)
				conf.Engine = engine
				conf.Seed, conf.Sched = seed, c.sched
				machinetest.Run(t, conf)
				var counter, across int
				if _, err := fmt.Sscan(out.String(), &counter, &across); err != nil {
					t.Fatalf("%q: %v", out.String(), err)
				}
				if counter < 6000 {
					lost++
				}
			}
			if lost == 0 {
				t.Errorf("no update was lost in %d runs", c.seeds)
			}
			t.Logf("updates were lost in %d of %d runs", lost, c.seeds)
		})
	}
}

// TestOneCoreLosesNothing: a thread that another one takes the core from is between two
// instructions.
func TestOneCoreLosesNothing(t *testing.T) { onEngines(t, testOneCoreLosesNothing) }

func testOneCoreLosesNothing(t *testing.T, engine string) {
	program := machinetest.Compile(t, updates)
	for _, policy := range []string{sched.Random, sched.Timed} {
		conf, out := machinetest.Config(t, program)
		conf.Engine = engine
		conf.Cores, conf.Sched = 1, sched.Options{Policy: policy, Granularity: sched.Instruction, TimeSlice: 500}
		machinetest.Run(t, conf)
		if !strings.HasPrefix(out.String(), "6000 6000 ") {
			t.Errorf("%s: %s", policy, out.String())
		}
	}
}

// TestInsideIsRecorded: a run in which threads are inside instructions while others run is
// repeated from its log, with the same accesses, which have the value of every load; and
// in the order of time.
func TestInsideIsRecorded(t *testing.T) {
	c, _ := machinetest.Config(t, machinetest.Compile(t, updates))
	c.Seed, c.Sched = 3, sched.Options{Policy: sched.Random, Granularity: sched.Instruction, Quantum: 40}
	r, path := recordMemory(t, c, nil)
	replayMemory(t, path, memtrace.Select{})
	parts := map[string]int{}
	reader, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for m, err := range memtrace.Read(reader, memtrace.Select{}) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Parts > 0 {
			parts[fmt.Sprintf("%v %d/%d", m.Kind, m.Part, m.Parts)]++
		}
	}
	for _, want := range []string{"load 0/2", "store 1/2", "load 0/4", "load 1/4", "store 2/4", "store 3/4", "store 0/2", "store 1/2"} {
		if parts[want] == 0 {
			t.Errorf("no %s among %v", want, parts)
		}
	}
	for _, all := range []bool{false, true} {
		o, err := machine.OpenReplay(path)
		if err != nil {
			t.Fatal(err)
		}
		again, err := o.Config()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		again.Stdout = &out
		if all {
			again.Record = &machine.Record{To: traceFile(t), Inputs: true}
		}
		replayed, err := machine.Run(context.Background(), again)
		if err != nil || replayed.Digest != r.Digest || replayed.Message != "" {
			t.Errorf("the replay has digest %v, the run %s: %v", replayed, r.Digest, err)
		}
		o.Close()
	}
}
