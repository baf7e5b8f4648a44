package syncops_test

import (
	"fmt"
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

const threads, times = 3, 50 // of testdata/atomics.c

// placed counts the program's own operations of a kind on each of its variables.
func (r *recording) placed(t *testing.T, bin string, op event.SyncOp) map[string]int {
	t.Helper()
	names := map[string]string{}
	for _, s := range gcctest.Symbols(t, bin) {
		names[fmt.Sprintf("1:atomics+%#x", s.Value)] = s.Name
	}
	counts := map[string]int{}
	for _, e := range r.syncs {
		if e.Op == op && e.Phase != event.Return && e.Effects&event.Inner == 0 {
			counts[names[r.objects[e.Object].Name]]++
		}
	}
	return counts
}

// TestAtomicInstructions: those of the program are recorded, those of mutex
// operations are not.
func TestAtomicInstructions(t *testing.T) {
	bin := build(t, "atomics.c")
	for seed := uint64(1); seed <= 2; seed++ {
		c := config(bin)
		c.Seed = seed
		r := record(t, c, machine.SyncRecord{Atomics: true})
		atomics := r.placed(t, bin, event.OpAtomic)
		for _, name := range []string{"added", "exchanged", "compared", "byte"} {
			if atomics[name] != threads*times {
				t.Errorf("%d atomic operations on %s, want %d", atomics[name], name, threads*times)
			}
		}
		if atomics["mutex"] != 0 {
			t.Errorf("%d atomic operations on the mutex", atomics["mutex"])
		}
		if n := r.placed(t, bin, event.OpMutexLock)["mutex"]; n != threads*times {
			t.Errorf("%d locks, want %d", n, threads*times)
		}
		if n := r.placed(t, bin, event.OpFence)[""]; n != threads*times {
			t.Errorf("%d fences, want %d", n, threads*times)
		}
		if r.result.SyncRecognition != "symbols" {
			t.Errorf("recognition by %q", r.result.SyncRecognition)
		}
	}
}

// TestStrippedStaticProgram: without symbols there are atomic instructions,
// futexes and threads.
func TestStrippedStaticProgram(t *testing.T) {
	bin := build(t, "atomics.c", "-static")
	stripped := bin + ".stripped/atomics"
	tool(t, "mkdir", bin+".stripped")
	tool(t, "strip", "-s", "-o", stripped, bin)
	c := config(stripped)
	r := record(t, c, machine.SyncRecord{Atomics: true})
	if r.result.SyncRecognition != "futex" {
		t.Errorf("recognition by %q", r.result.SyncRecognition)
	}
	atomics := r.placed(t, bin, event.OpAtomic)
	for _, name := range []string{"added", "exchanged", "compared", "byte"} {
		if atomics[name] != threads*times {
			t.Errorf("%d atomic operations on %s, want %d", atomics[name], name, threads*times)
		}
	}
	if n := atomics["mutex"]; n < 2*threads*times {
		t.Errorf("%d atomic operations on the mutex, want a lock's and an unlock's for each of %d", n, threads*times)
	}
	count := map[event.SyncOp]int{}
	for _, e := range r.syncs {
		if e.Phase != event.Return {
			count[e.Op]++
		}
	}
	if count[event.OpCreate] != threads || count[event.OpThreadStart] != threads || count[event.OpThreadExit] != threads+1 {
		t.Errorf("counts %v", count)
	}
	if count[event.OpFutexWake] < threads {
		t.Errorf("%d wakes, want one for each thread's end at least", count[event.OpFutexWake])
	}
	r.nested(t)
}

// TestRecordingChangesNothing: runs with and without recording are compared by
// record, here for schedules that stop at every kind of instruction.
func TestRecordingChangesNothing(t *testing.T) {
	bin := build(t, "atomics.c")
	for _, o := range []sched.Options{
		{Policy: sched.Random, Granularity: sched.Instruction},
		{Policy: sched.RR, Granularity: sched.Sync},
		{Policy: sched.Random, Granularity: sched.Sync},
		{Policy: sched.Timed, DelayRate: 0.2},
	} {
		c := config(bin)
		c.Cores, c.Seed, c.Sched = 3, 4, o
		r := record(t, c, machine.SyncRecord{Atomics: true})
		if n := r.placed(t, bin, event.OpAtomic)["added"]; n != threads*times {
			t.Errorf("%+v: %d atomic operations, want %d", o, n, threads*times)
		}
		r.nested(t)
	}
	c := config(bin)
	c.MaxInstructions = 100_000
	record(t, c, machine.SyncRecord{Atomics: true})
}

// TestRoundsOfASpinLock: glibc's pthread_spin_lock returns to its first instruction to try again; that is no
// further call.
func TestRoundsOfASpinLock(t *testing.T) {
	for _, c := range []sched.Options{{}, {Policy: sched.Random, Quantum: 20}} {
		config := config(build(t, "spins.c"))
		config.Sched = c
		r := record(t, config, machine.SyncRecord{})
		r.nested(t)
		phases := map[event.Phase]int{}
		for _, e := range r.syncs {
			if e.Op == event.OpSpinLock && e.Phase != event.Return {
				phases[e.Phase]++
			}
		}
		if calls := threads*times + 1; phases[event.Enter]+phases[event.Whole] != calls || phases[event.Unwound] != 0 {
			t.Errorf("%d calls of pthread_spin_lock are recorded as %v", calls, phases)
		}
	}
}
