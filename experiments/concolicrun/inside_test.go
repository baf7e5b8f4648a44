package concolicrun_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched"
)

// storesInTwoLines stores words that lie in two cache lines, each after a branch.
const storesInTwoLines = `
#include <emmintrin.h>
#include <pthread.h>
static _Alignas(64) char a[8 * 64], b[8 * 64];
static void *work(void *at)
{
	for (int i = 0; i < 500; i++) {
		char *p = (char *)at + i % 7 * 64;
		if (i % 3) p[1]++;
		_mm_storeu_si128((__m128i *)(p + 56), _mm_set1_epi8(i));
		_mm_storeu_si128((__m128i *)(p + 60), _mm_add_epi8(_mm_loadu_si128((__m128i *)(p + 58)), _mm_set1_epi8(1)));
		__asm__ volatile("addl $1, %0" : "+m"(*(int *)(p + 62)));
	}
	return 0;
}
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, work, a);
	work(b);
	pthread_join(t, 0);
	return 0;
}`

// TestInsideInstructions: threads whose turns end inside instructions, after a store or a load, also twice in a row, are
// followed with the accesses of whole instructions.
func TestInsideInstructions(t *testing.T) {
	bin := gcctest.C(t, storesInTwoLines, "-O1", "-pthread")
	for _, o := range []sched.Options{
		{Policy: sched.Random, Quantum: 20}, {Policy: sched.Timed, Quantum: 30}, {Policy: sched.Timed, Quantum: 7},
	} {
		for seed := range uint64(testsize.Runs(1, 4, 40)) {
			f := run(t, arguments, func(c *machine.Config) { c.Seed, c.Sched = seed, o }, bin)
			if f.result.ExitCode != 0 || f.Executor.Stats.Instructions < 10_000 {
				t.Errorf("%v, seed %d: %v, %+v", o.Policy, seed, f.result.Outcome, f.Executor.Stats)
			}
		}
	}
}
