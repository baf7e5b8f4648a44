package peregrine_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dmt"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// Calls of malloc and free that race, and the ends of threads, are operations: every constraint is
// then near an operation. Where such calls were not recorded one at a time, constraints on the C
// library's memory are as far from any operation as the program computes.
func TestAllocatorsAreOperations(t *testing.T) {
	const threads, computed = 4, 20_000 // the least number of instructions of the program
	c := config(gcctest.File(t, "testdata/allocate.c"))
	peregrine.BindNow(&c)
	c.Sched = sched.Options{Quantum: 500}
	m := made(t, c, peregrine.Options{})
	if n := farthest(m.Schedule); n >= computed {
		t.Errorf("a constraint is %d instructions after an operation", n)
	}
	count := map[event.SyncOp]int{}
	for i := range m.Schedule.Operations {
		count[m.Schedule.Operations[i].Op]++
	}
	if count[event.OpAllocate] == 0 || count[event.OpThreadReturn] != threads {
		t.Errorf("%d calls of allocators and %d returns of routines are operations", count[event.OpAllocate], count[event.OpThreadReturn])
	}
	if found := states(t, c, m, testsize.Runs(4, 20, 50), enforce.Options{}); len(found) != 1 {
		t.Errorf("states: %v", found)
	}
	t.Logf("%d operations, %v, %+v", len(m.Schedule.Operations), count[event.OpAllocate], m.Counts)

	c.Control = dmt.Control{Policy: dmt.FCFS}
	plain, err := peregrine.Make(t.Context(), controlled(t, c, true), peregrine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := farthest(plain.Schedule); n < computed {
		t.Errorf("otherwise the farthest constraint is %d instructions after an operation", n)
	}
}

// farthest is the greatest number of instructions between an operation and a constraint after it.
func farthest(s *event.Schedule) uint64 {
	most := uint64(0)
	for _, c := range s.Constraints {
		most = max(most, c.First.Instructions, c.Second.Instructions)
	}
	return most
}
