// Futex time-outs: relative for WAIT, absolute on either clock for WAIT_BITSET; woken before the time.
#include "futex.h"

static atomic_uint word;

static void *patient(void *arg)
{
	int how = (intptr_t)arg;
	struct timespec t = {100, 0};
	long r = -1;
	if (how == 0)
		r = futex(&word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
	t = after(CLOCK_MONOTONIC, 100 * SEC);
	if (how == 1)
		r = futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &t, NULL, 1);
	t = after(CLOCK_REALTIME, 100 * SEC);
	if (how == 2)
		r = futex(&word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &t, NULL, 1);
	return (void *)r;
}

int main(void)
{
	struct timespec t = {0, 2 * MSEC};
	int64_t begin = now(CLOCK_MONOTONIC);
	SHOW(futex(&word, FUTEX_WAIT, 0, &t, NULL, 0));
	CHECK(now(CLOCK_MONOTONIC) - begin >= 2 * MSEC);
	t = after(CLOCK_MONOTONIC, 2 * MSEC);
	SHOW(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &t, NULL, FUTEX_BITSET_MATCH_ANY));
	CHECK(now(CLOCK_MONOTONIC) >= to_ns(t));
	// The same time again is in the past by now.
	SHOW(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &t, NULL, FUTEX_BITSET_MATCH_ANY));
	t = after(CLOCK_REALTIME, 2 * MSEC);
	SHOW(futex(&word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &t, NULL, 1));
	CHECK(now(CLOCK_REALTIME) >= to_ns(t));
	t = (struct timespec){0, 0};
	SHOW(futex(&word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &t, NULL, 1));
	// The value is compared before the time is checked.
	SHOW(futex(&word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 1, &t, NULL, 1));

	for (intptr_t how = 0; how < 3; how++) {
		pthread_t p = start(patient, (void *)how);
		while (futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0)
			sched_yield();
		printf("woken in time: %ld\n", (long)finish(p));
	}
	return 0;
}
