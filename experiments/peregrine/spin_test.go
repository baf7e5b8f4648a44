package peregrine_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// spinning are programs whose threads wait for each other in loops, with the lines of the loops and of the
// stores that end them.
var spinning = []struct{ name, source, loops string }{
	{"barrier", `
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
static atomic_int count = 3, sense;
static long data[3];
static void barrier(int *mine)
{
	*mine = !*mine;
	if (atomic_fetch_sub(&count, 1) == 1) {
		atomic_store(&count, 3);
		atomic_store_explicit(&sense, *mine, memory_order_release); // stored
		return;
	}
	while (atomic_load_explicit(&sense, memory_order_acquire) != *mine) ; // waits
}
static void *work(void *u)
{
	long id = (long)u;
	int mine = 0;
	for (int r = 0; r < 20; r++) {
		data[id] += data[(id + 1) % 3] + r;
		barrier(&mine);
		data[id] ^= id;
		barrier(&mine);
	}
	return 0;
}
int main(void)
{
	pthread_t t[3];
	for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, work, (void *)i);
	for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
	printf("%ld %ld %ld\n", data[0], data[1], data[2]);
}`, `p\.c:15 waits for p\.c:12`},
	{"turns", `
#include <pthread.h>
#include <stdio.h>
static volatile int turn;
static volatile long value;
static long sum;
static void *produce(void *u)
{
	for (int i = 0; i < 60; i++) {
		while (turn != 0) ; // waits
		value = i * 7;
		turn = 1;
	}
	return u;
}
static void *consume(void *u)
{
	for (int i = 0; i < 60; i++) {
		while (turn != 1) ;
		sum = sum * 5 + value;
		turn = 0;
	}
	return u;
}
int main(void)
{
	pthread_t p, c;
	pthread_create(&p, 0, produce, 0);
	pthread_create(&c, 0, consume, 0);
	pthread_join(p, 0);
	pthread_join(c, 0);
	printf("%ld\n", sum);
}`, `p\.c:(10 waits for p\.c:21|19 waits for p\.c:12)`},
	{"test-and-set", `
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
static atomic_flag held = ATOMIC_FLAG_INIT;
static long n;
static void *work(void *u)
{
	for (int i = 0; i < 100; i++) {
		while (atomic_flag_test_and_set(&held)) ;
		n = n * 3 + (long)u;
		for (volatile int k = 0; k < 100; k++) ;
		atomic_flag_clear(&held);
		for (volatile int k = 0; k < 200; k++) ;
	}
	return 0;
}
int main(void)
{
	pthread_t t[3];
	for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, work, (void *)i);
	for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
	printf("%ld\n", n);
}`, `p\.c:10 waits for p\.c:(10|13)`},
}

// TestSpinLoops: loops in which threads wait are found where they are in the source, and a run that follows the
// schedule takes at most 5 times as long as a plain one.
func TestSpinLoops(t *testing.T) {
	for _, p := range testsize.Sample(spinning, testsize.Pick(1, len(spinning), len(spinning)), 0) {
		t.Run(p.name, func(t *testing.T) {
			c := config(gcctest.C(t, p.source, "-g", "-pthread"))
			plain, err := machine.Run(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			f, err := peregrine.ComputeFile(t.Context(), record(t, c, true), peregrine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := f.WriteSummary(&out); err != nil {
				t.Fatal(err)
			}
			if !regexp.MustCompile(`(?m)^spin loop: ` + p.loops + `, [0-9]+ times, [0-9]+ iterations$`).MatchString(out.String()) {
				t.Errorf("no spin loop where %s is expected:\n%s", p.loops, out.String())
			}
			m := &peregrine.Schedule{Schedule: f.Schedule}
			if found := states(t, c, m, testsize.Runs(3, 8, 50), enforce.Options{Runs: true}); len(found) != 1 {
				t.Errorf("states: %v", found)
			}
			r, _ := enforced(t, c, m, enforce.Options{Runs: true})
			if r.Cycles > 5*plain.Cycles {
				t.Errorf("%d cycles, and %d without a schedule", r.Cycles, plain.Cycles)
			}
		})
	}
}
