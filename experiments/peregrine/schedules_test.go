package peregrine_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// record records a run for a schedule, and returns the trace.
func record(t *testing.T, c machine.Config, memory bool) string {
	t.Helper()
	c.Control = peregrine.ControlConfig()
	return controlled(t, c, memory)
}

// controlled records a run under the configuration's control.
func controlled(t *testing.T, c machine.Config, memory bool) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c.Record = peregrine.RecordConfig(file)
	if !memory {
		c.Record.Memory = nil
	}
	if r, err := machine.Run(context.Background(), c); err != nil || r.Outcome == "stopped" {
		t.Fatalf("%v: %+v", err, r)
	}
	return file.Name()
}

func config(args ...string) machine.Config {
	c := machine.DefaultConfig()
	c.Args, c.Dir = args, "/usr/share/misc"
	return c
}

// varied are configurations that differ in everything but the input.
func varied(c machine.Config, n int) []machine.Config {
	var list []machine.Config
	for i := range n {
		v := c
		v.Seed, v.Cores = uint64(100+i), 2+i*7%15
		v.Sched.DelayRate = []float64{0, 0.1, 0.5}[i%3]
		switch i % 8 {
		case 3, 7:
			v.Sched = sched.Options{Policy: sched.Random}
		case 5: // threads are held back for long
			v.Sched = sched.Options{Policy: sched.PCT, Depth: 4, Length: 1_000_000}
		}
		list = append(list, v)
	}
	return list
}

// enforced runs a configuration under a schedule.
func enforced(t *testing.T, c machine.Config, m *peregrine.Schedule, o enforce.Options) (*machine.Result, string) {
	t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	c.Enforce = &machine.Enforce{Schedule: m.Schedule, Options: o, Seed: 1, Cores: 4}
	r, err := machine.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r, out.String()
}

func TestSyncOnly(t *testing.T) {
	bin := gcctest.File(t, "testdata/sync.c", "-g")
	m, err := peregrine.Make(context.Background(), record(t, config(bin), false), peregrine.Options{SyncOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	first := ""
	for _, c := range varied(config(bin), 12) {
		for _, skip := range []bool{false, true} {
			r, out := enforced(t, c, m, enforce.Options{SkipWait: skip})
			if !r.Schedule.Followed {
				t.Fatalf("cores %d seed %d: %s", c.Cores, c.Seed, r.Message)
			}
			if first == "" {
				first = r.StateDigest
			}
			if out != "210 1\n" || r.StateDigest != first && !skip {
				t.Errorf("cores %d seed %d: %s %s, not %s", c.Cores, c.Seed, out, r.StateDigest, first)
			}
		}
	}
}

// TestUntouchedMemory: a load of memory that no thread has stored to keeps its order with a later store.
func TestUntouchedMemory(t *testing.T) {
	bin := gcctest.C(t, `
#include <pthread.h>
#include <stdio.h>
static int untouched[1 << 20];
static void *load(void *arg) { return (void *)(long)*(volatile int *)&untouched[500000]; }
static void *store(void *arg) { *(volatile int *)&untouched[500000] = 1; return arg; }
int main(void) {
	pthread_t a, b;
	void *loaded;
	pthread_create(&a, 0, load, 0);
	pthread_create(&b, 0, store, 0);
	pthread_join(a, &loaded);
	pthread_join(b, 0);
	printf("%ld\n", (long)loaded);
	return 0;
}`, "-O1")
	outputs := map[string]bool{}
	for seed := range uint64(4) {
		c := config(bin)
		c.Seed = seed
		m, err := peregrine.Make(t.Context(), record(t, c, true), peregrine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		first := ""
		for _, c := range varied(config(bin), 6) {
			r, out := enforced(t, c, m, enforce.Options{})
			if first == "" {
				first = out
			}
			if !r.Schedule.Followed || out != first {
				t.Errorf("seed %d, cores %d: %q, not %q; %s", c.Seed, c.Cores, out, first, r.Message)
			}
		}
		outputs[first] = true
	}
	if len(outputs) != 2 {
		t.Errorf("the load was always on the same side of the store: %v", outputs)
	}
}

// TestNoOperations: a run that ends before its first operation was recorded with operations.
func TestNoOperations(t *testing.T) {
	c := config("/bin/true")
	c.MaxInstructions = 500
	o, err := peregrine.OpenOrdered(record(t, c, true))
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if len(o.Marks) > 0 {
		t.Errorf("%d operations", len(o.Marks))
	}
}

// TestProcesses: schedules order processes, too. Memory that was copied by a fork is not shared:
// constraints are only on memory that the children share.
func TestProcesses(t *testing.T) {
	testsize.SkipQuick(t)
	bin := gcctest.File(t, "testdata/processes.c", "-no-pie")
	add := gcctest.Symbols(t, bin)["add"]
	m, err := peregrine.Make(context.Background(), record(t, config(bin), true), peregrine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Schedule.Constraints) == 0 {
		t.Error("no constraint on shared memory")
	}
	for _, c := range m.Schedule.Constraints {
		for _, p := range []event.Point{c.First, c.Second} {
			if at := uint64(p.PC) - add.Value; at >= add.Size {
				t.Errorf("a constraint on the instruction at %#x of thread %d", uint64(p.PC), p.Thread)
			}
		}
	}
	first := ""
	for _, c := range varied(config(bin), testsize.Runs(12, 12, 20)) {
		r, out := enforced(t, c, m, enforce.Options{})
		if !r.Schedule.Followed {
			t.Fatalf("cores %d seed %d: %s", c.Cores, c.Seed, r.Message)
		}
		if got := fmt.Sprint(r.ExitCode, r.StateDigest, out); first == "" {
			first = got
		} else if got != first {
			t.Errorf("cores %d seed %d: %s, not %s", c.Cores, c.Seed, got, first)
		}
	}
}

// The reads of the kernel for a system call race with the writes of another thread: with
// constraints on them there is one output, and without them several.
func TestKernelReads(t *testing.T) {
	testsize.SkipQuick(t)
	c := config(gcctest.File(t, "testdata/write.c", "-g"))
	c.Seed, c.Sched = 3, sched.Options{Quantum: 300}
	m := made(t, c, peregrine.Options{})
	outputs := [2]map[string]bool{{}, {}}
	for _, v := range varied(c, 10) {
		for i := range outputs {
			r, out := enforced(t, v, m, enforce.Options{SyncOnly: i == 1})
			if !r.Schedule.Followed {
				t.Error(r.Schedule.Reason)
			}
			outputs[i][out] = true
		}
	}
	if len(outputs[0]) != 1 || len(outputs[1]) < 2 {
		t.Errorf("%d outputs, and %d without the %d constraints", len(outputs[0]), len(outputs[1]), len(m.Schedule.Constraints))
	}
}

// Where the linker's work is done at the start fft has no race that its operations leave
// unordered, if its threads come in the order in which they were made. The schedule is
// enforced on a run whose environment does not say so.
func TestBindNow(t *testing.T) {
	c := suiteConfig(t, "fft")
	with := c
	peregrine.BindNow(&with)
	peregrine.BindNow(&with)
	if len(with.Env) != len(c.Env)+1 {
		t.Fatalf("environment %q", with.Env)
	}
	f, err := peregrine.ComputeFile(t.Context(), record(t, with, true), peregrine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range f.Schedule.Constraints {
		t.Errorf("a constraint: %+v", o)
	}
	if err := peregrine.Enforce(&c, f, "FILE", enforce.Options{}); err != nil {
		t.Fatal(err)
	}
	if r, err := machine.Run(t.Context(), c); err != nil || !r.Schedule.Followed {
		t.Errorf("%v: %+v", err, r)
	}
}
