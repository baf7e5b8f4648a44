package h3

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/guided"
)

// handed fails with one of the pointers alone that main can be handed.
const handed = `
#include <assert.h>
#include <pthread.h>
static _Alignas(64) volatile long y = 1;
static _Alignas(64) volatile long z;
static volatile long *volatile pointer = &y;
static void *body(void *arg)
{
	pointer = &z;
	for (volatile int i = 0; i < 40; i++) ;
	y = 2; y = 3; z = 1; z = 2;
	pointer = &y;
	return arg;
}
int main(void)
{
	pthread_t other;
	pthread_create(&other, 0, body, 0);
	for (volatile int i = 0; i < 40; i++) ;
	long v = *pointer;
	pthread_join(other, 0);
	assert(v);
	return 0;
}`

// buffered fails under TSO alone, whichever of two variables main reads: under SC both
// have to be ruled out.
const buffered = `
#include <assert.h>
#include <pthread.h>
static _Alignas(64) volatile long x;
static _Alignas(64) volatile long y;
static _Alignas(64) volatile long z;
static volatile long *volatile pointer = &y;
static volatile long seen;
static void *body(void *arg) { z = 1; y = 1; seen = x; pointer = &z; return arg; }
int main(void)
{
	pthread_t other;
	pthread_create(&other, 0, body, 0);
	for (volatile int i = 0; i < 40; i++) ;
	x = 1;
	long v = *pointer;
	pthread_join(other, 0);
	assert(v || seen);
	return 0;
}`

// failing records the first run of a program that fails by an assertion.
func failing(t *testing.T, source, model string) *Recording {
	t.Helper()
	bin := gcctest.C(t, source, "-O1", "-static", "-pthread")
	b := &bug{class: machine.FailureAssertion, model: model, sched: sched.Options{Policy: sched.Random, Granularity: sched.Instruction, Quantum: 10}}
	for seed := range uint64(100) {
		if path, _, failed := record(t, b, bin, seed, nil); failed {
			r, err := Open(t.Context(), stripped(t, path, 0))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(r.Close)
			return r
		}
	}
	t.Fatal("no seed of 100 fails")
	return nil
}

// Where a pointer could be another one than was chosen the others are tried, and that
// there is no schedule is said when all were.
func TestOtherValuesAreTried(t *testing.T) {
	out, err := failing(t, handed, "sc").Reproduce(t.Context(), Options{Now: time.Now, Symbolic: true})
	if err != nil || !out.Verified || out.OtherAttempts == 0 {
		t.Errorf("a pointer that was handed over: %+v, %v", out, err)
	}
	r := failing(t, buffered, "tso")
	if out, err = r.Reproduce(t.Context(), Options{Now: time.Now}); err != nil || !out.Verified {
		t.Errorf("a write in its buffer: %+v, %v", out, err)
	}
	if out, err = r.Reproduce(t.Context(), Options{Now: time.Now, Model: "sc"}); err != nil || out.Answer != smt.Unsatisfiable || out.OtherAttempts == 0 {
		t.Errorf("without buffers: %+v, %v", out, err)
	}
	// Z3 gets one value alone, so its answer holds for that one.
	out, err = r.Reproduce(t.Context(), Options{Now: time.Now, Model: "sc", Encoding: "clap"})
	if err != nil || out.Answer != smt.Unknown || out.Limit != LimitChosen {
		t.Fatalf("by the solver alone: %+v, %v", out, err)
	}
	if why := out.Undecided(); why == nil || !strings.Contains(why.Error(), "with the values that were tried for 1 addresses") {
		t.Errorf("by the solver alone: %v", why)
	}
}

// late fails only if main's store to x reaches memory after body's, and before body reads x.
const late = `
#include <assert.h>
#include <pthread.h>
static _Alignas(64) volatile long x;
static _Alignas(64) volatile long y;
static _Alignas(64) volatile long ready;
static volatile long seen, read;
static void *body(void *arg)
{
	ready = 1;
	y = 1;
	x = 2;
	for (volatile int i = 0; i < 10; i++) ;
	read = x;
	return arg;
}
int main(void)
{
	pthread_t other;
	pthread_create(&other, 0, body, 0);
	while (!ready) ;
	x = 1;
	seen = y;
	pthread_join(other, 0);
	assert(seen || read == 2);
	return 0;
}`

// The order in which stores of several threads to one address reach memory is that of the schedule.
func TestOrderOfCommits(t *testing.T) {
	r := failing(t, late, "tso")
	out, err := r.Reproduce(t.Context(), Options{Now: time.Now, Symbolic: true})
	if err != nil || !out.Verified {
		t.Errorf("%+v, %v", out, err)
	}
	isOrdered := func(s guided.Step) bool { return len(s.First) > 1 }
	if out.Plan == nil || !slices.ContainsFunc(out.Plan.Steps, isOrdered) {
		t.Error("no step has an order of commits")
	}
}

// published fails only if the pointer reaches memory before the data that it points to, which are in allocated memory.
const published = `
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
struct box { long first; _Alignas(64) long second; };
static struct box *volatile pointer;
static void *body(void *arg)
{
	volatile struct box *b = malloc(sizeof *b);
	b->first = 1;
	b->second = 2;
	pointer = (struct box *)b;
	return arg;
}
int main(void)
{
	pthread_t other;
	pthread_create(&other, 0, body, 0);
	while (!pointer) ;
	volatile struct box *b = pointer;
	long first = b->first, second = b->second;
	pthread_join(other, 0);
	assert(first == 1 && second == 2);
	return 0;
}`

// Stores to memory that the program allocates wait as the schedule says, though it has another address in the run.
func TestStoresToAllocatedMemory(t *testing.T) {
	out, err := failing(t, published, "pso").Reproduce(t.Context(), Options{Now: time.Now, Symbolic: true})
	if err != nil || !out.Verified {
		t.Errorf("%+v, %v", out, err)
	}
}
