// RDTSC and RDTSCP: monotonic on one thread, always enabled, in step with the clock, usable for waiting.
#include "conformance.h"

#include <cpuid.h>
#include <x86intrin.h>

static void *watch(void *arg)
{
	uint64_t last = __rdtsc();
	for (int i = 0; i < 5000; i++) {
		uint64_t t = __rdtsc();
		CHECK(t >= last);
		last = t;
	}
	return arg;
}

int main(void)
{
	uint64_t begin = __rdtsc();
	int64_t clock0 = now(CLOCK_MONOTONIC);
	watch(NULL);
	pthread_t t[4];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(watch, NULL);
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	CHECK(__rdtsc() > begin);
	printf("never back\n");
	unsigned a, b, c, d, aux;
	if (__get_cpuid(0x80000001, &a, &b, &c, &d) && d >> 27 & 1) {
		uint64_t p = __rdtscp(&aux), q = __rdtscp(&aux);
		CHECK(q >= p && p >= begin);
		CHECK((aux & 0xfff) < 4096);
	}
	// A loop that waits for the counter ends.
	uint64_t until = __rdtsc() + 100000;
	unsigned long spins = 0;
	while (__rdtsc() < until) {
		_mm_pause();
		spins++;
	}
	CHECK(spins > 0);
	printf("waited\n");
	// Time that is slept through is counted.
	uint64_t before = __rdtsc();
	struct timespec ts = {0, 2 * MSEC};
	CHECK(nanosleep(&ts, NULL) == 0);
	uint64_t slept = __rdtsc() - before;
	CHECK(slept > 10000);
	CHECK(now(CLOCK_MONOTONIC) > clock0);
	printf("sleep is counted\n");
	return 0;
}
