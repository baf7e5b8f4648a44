package explore_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/explore"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/memmodel"
)

// TestPublishedCounts: the numbers of executions are those of table 1 of Abdulla, Aronis, Jonsson and
// Sagonas, Optimal dynamic partial order reduction (POPL 2014), for the optimal algorithm: 2^N for readers,
// (N+3)2^(N-2) for lastzero, 8^(N-11) for indexer; and for fib the one that Aronis, Jonsson, Lång and
// Sagonas, Optimal dynamic partial order reduction with observers (TACAS 2018), have for fib_bench(4).
func TestPublishedCounts(t *testing.T) {
	for _, x := range []struct {
		program string
		n, want int
		long    bool
	}{
		{"readers", 2, 4, false},
		{"readers", 8, 256, false},
		{"lastzero", 5, 64, false},
		{"lastzero", 10, 3328, true},
		{"indexer", 12, 8, false},
		{"indexer", 13, 64, false},
		{"indexer", 14, 512, true},
		{"fib", 4, 19605, true},
	} {
		t.Run(fmt.Sprint(x.program, x.n), func(t *testing.T) {
			if x.long && !testsize.Long() {
				t.Skip("left to HEDDLE_LONG")
			}
			r := exploreProgram(t, freestanding(t, x.program+".c", fmt.Sprint("-DN=", x.n)), explore.Options{})
			if !r.Complete || r.Executions != x.want || r.Redundant+r.Outlasted > 0 {
				t.Errorf("%d executions, want %d: %+v", r.Executions, x.want, *r)
			}
		})
	}
}

// TestWorkers: the report does not depend on the number of workers, neither where a program is verified nor where it
// fails, and executions that helpers have guessed are used.
func TestWorkers(t *testing.T) {
	programs := map[string]string{
		"lastzero":  freestanding(t, "lastzero.c", "-DN=7"),
		"fib":       freestanding(t, "fib.c", "-DN=3"),
		"spins":     freestanding(t, spins),
		"buffering": gcctest.File(t, filepath.Join("..", "find", "testdata", "buffering.c")),
	}
	for name, program := range programs {
		for _, model := range memmodel.Models() {
			t.Run(fmt.Sprint(name, model), func(t *testing.T) {
				o := explore.Options{Model: model, Executions: 700}
				want := exploreProgram(t, program, o)
				for _, o.Workers = range []int{2, 5} {
					if got := exploreProgram(t, program, o); !reflect.DeepEqual(got, want) {
						t.Errorf("%d workers: %+v\none: %+v", o.Workers, *got, *want)
					}
				}
			})
		}
	}
}

// TestBounds: executions are explored up to a number of preemptions or delays. A lost update of two threads takes one of
// each; without a bound on them no other execution is left out.
func TestBounds(t *testing.T) {
	program := gcctest.File(t, filepath.Join("..", "find", "testdata", "increment.c"))
	for _, delays := range []bool{false, true} {
		r := exploreProgram(t, program, explore.Options{Bound: &explore.Bound{Delays: delays}})
		if r.Found || !r.Complete || !r.Cut || r.Explored != 0 {
			t.Errorf("delays %v, none: %+v", delays, *r)
		}
		r = exploreProgram(t, program, explore.Options{Bound: &explore.Bound{Delays: delays, Most: 1}})
		if !r.Found || r.Failure.Class != machine.FailureAssertion {
			t.Errorf("delays %v, one: %+v", delays, *r)
		}
	}
	r := exploreProgram(t, freestanding(t, spins), explore.Options{Bound: &explore.Bound{Most: 100}})
	if r.Found || !r.Complete || r.Cut || r.Outlasted > 0 {
		t.Errorf("spinning: %+v", *r)
	}
}

// TestLong: executions with too many events for all to be explored are explored by their preemptions.
func TestLong(t *testing.T) {
	program := gcctest.File(t, filepath.Join("..", "find", "testdata", "increment.c"), "-DROUNDS=12000", "-DPRINT")
	if r := exploreProgram(t, program, explore.Options{Executions: 6}); r.Found || r.Complete || !r.Long || r.Executions != 6 {
		t.Errorf("%+v", *r)
	}
}

// TestFindsWhatFindFinds: exploration finds the failures of programs in which a search finds one, and
// verifies the correct one, in which a search finds none.
func TestFindsWhatFindFinds(t *testing.T) {
	for _, x := range []struct {
		file, class string
		model       memmodel.Model
	}{
		{"deadlock.c", machine.FailureDeadlock, memmodel.SC},
		{"atomicity.c", machine.FailureAssertion, memmodel.SC},
		{"increment.c", machine.FailureAssertion, memmodel.SC},
		{"buffering.c", machine.FailureAssertion, memmodel.TSO},
	} {
		t.Run(x.file, func(t *testing.T) {
			o := explore.Options{Model: x.model, Executions: 5000}
			r := exploreProgram(t, gcctest.File(t, filepath.Join("..", "find", "testdata", x.file)), o)
			if !r.Found || r.Failure.Class != x.class {
				t.Errorf("%+v", *r)
			}
		})
	}
}

const spins = `
#include "threads.h"
static int ready, value;
static void thread(long number) {
  if (number == 0) {
    STORE(value, 1);
    STORE(ready, 1);
  } else {
    while (!LOAD(ready));
    if (LOAD(value) != 1) fail();
  }
}
static void run(void) { create(0); create(1); }
`

// TestSpinning: rounds of a loop that only loads are not explored, however many there could be. Under PSO
// the stores may be committed in the other order.
func TestSpinning(t *testing.T) {
	program := freestanding(t, spins)
	for model, fails := range map[memmodel.Model]bool{memmodel.SC: false, memmodel.TSO: false, memmodel.PSO: true} {
		r := exploreProgram(t, program, explore.Options{Model: model})
		if r.Found != fails || r.Complete == fails || r.Executions > 10 {
			t.Errorf("%v: %+v", model, *r)
		}
	}
}

const spinsForever = `
#include "threads.h"
static int late, ready;
static void thread(long number) {
  if (number == 1) {
    STORE(late, 1);
    while (!LOAD(ready));
  } else if (!LOAD(late)) {
    STORE(ready, 1);
  }
}
static void run(void) {
  create(0);
  for (int i = 0; i < 100000; i++) __asm__ volatile("");
  create(1);
}
`

// TestSpinningForEver: a thread that spins when no other can store is a hang.
func TestSpinningForEver(t *testing.T) {
	r := exploreProgram(t, freestanding(t, spinsForever), explore.Options{})
	if !r.Found || r.Undisturbed || r.Failure.Class != machine.FailureHang {
		t.Errorf("%+v", *r)
	}
}

const peterson = `
#include "threads.h"
static int flag[2], turn, inside;
static void thread(long number) {
  STORE(flag[number], 1);
  STORE(turn, 1 - number);
  FENCE;
  while (LOAD(flag[1 - number]) && LOAD(turn) == 1 - number);
  if (__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST)) fail();
  __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
  STORE(flag[number], 0);
}
static void run(void) { create(0); create(1); }
`

const dekker = `
#include "threads.h"
static int flag[2], turn, inside;
static void thread(long number) {
  STORE(flag[number], 1);
  FENCE;
  while (LOAD(flag[1 - number]))
    if (LOAD(turn) != number) {
      STORE(flag[number], 0);
      while (LOAD(turn) != number);
      STORE(flag[number], 1);
      FENCE;
    }
  if (__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST)) fail();
  __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
  STORE(turn, 1 - number);
  STORE(flag[number], 0);
}
static void run(void) { create(0); create(1); }
`

// TestMutualExclusion: the algorithms of Peterson and Dekker are right under SC, fail under TSO, and are
// right there with fences; Adve and Gharachorloo, Shared memory consistency models: a tutorial (1996).
func TestMutualExclusion(t *testing.T) {
	for name, source := range map[string]string{"Peterson": peterson, "Dekker": dekker} {
		plain := freestanding(t, source, "-DFENCE=")
		fenced := freestanding(t, source, `-DFENCE=__asm__ volatile("mfence" ::: "memory")`)
		for _, x := range []struct {
			program string
			model   memmodel.Model
			fails   bool
		}{{plain, memmodel.SC, false}, {plain, memmodel.TSO, true}, {fenced, memmodel.TSO, false}} {
			r := exploreProgram(t, x.program, explore.Options{Model: x.model})
			if r.Found != x.fails || r.Complete == x.fails {
				t.Errorf("%s under %v: %+v", name, x.model, *r)
			}
		}
	}
}

// TestState: an exploration that is interrupted again and again has the report of one that is not.
func TestState(t *testing.T) {
	program := freestanding(t, programText(classics["IRIW"]))
	o := explore.Options{Model: memmodel.TSO, State: filepath.Join(t.TempDir(), "state")}
	want := exploreProgram(t, program, explore.Options{Model: o.Model})
	var got *explore.Report
	for got == nil || !got.Complete {
		before := o.Executions
		o.Executions += 97
		if got = exploreProgram(t, program, o); !got.Complete && got.Executions != o.Executions {
			t.Fatalf("%d executions after %d: %+v", got.Executions, before, *got)
		}
	}
	got.Restarts = want.Restarts
	if !reflect.DeepEqual(got, want) {
		t.Errorf("interrupted: %+v\nwant: %+v", *got, *want)
	}
	again := exploreProgram(t, program, o)
	again.Restarts = want.Restarts
	if !reflect.DeepEqual(again, want) {
		t.Errorf("read again: %+v\nwant: %+v", *again, *want)
	}
	if _, err := exploreRun(t, o, program, "argument"); err == nil || !strings.Contains(err.Error(), "cannot continue") {
		t.Errorf("the state of another run: %v", err)
	}
}
