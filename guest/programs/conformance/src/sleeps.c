// Sleeping: each call and clock, absolute and relative, never too short; times in the past; thirty sleepers at once.
#include "conformance.h"

#include <threads.h>

static void *sleeper(void *arg)
{
	int i = (intptr_t)arg;
	struct timespec until = after(CLOCK_MONOTONIC, (i % 10 + 1) * MSEC / 2);
	OK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL));
	CHECK(now(CLOCK_MONOTONIC) >= to_ns(until));
	return NULL;
}

int main(void)
{
	static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME};
	struct timespec ms = {0, MSEC}, t;
	for (int i = 0; i < LEN(clocks); i++) {
		int64_t begin = now(clocks[i]);
		OK(clock_nanosleep(clocks[i], 0, &ms, NULL));
		CHECK(now(clocks[i]) - begin >= MSEC);
		t = after(clocks[i], MSEC);
		OK(clock_nanosleep(clocks[i], TIMER_ABSTIME, &t, NULL));
		CHECK(now(clocks[i]) >= to_ns(t));
		t = (struct timespec){1, 0};
		SHOWE(clock_nanosleep(clocks[i], TIMER_ABSTIME, &t, NULL));
		t = (struct timespec){0, 0};
		SHOWE(clock_nanosleep(clocks[i], 0, &t, NULL));
	}
	int64_t begin = now(CLOCK_MONOTONIC);
	SHOW(nanosleep(&ms, NULL));
	SHOW(usleep(1000));
	SHOW(thrd_sleep(&ms, NULL));
	CHECK(now(CLOCK_MONOTONIC) - begin >= 3 * MSEC);
	SHOW(nanosleep(&(struct timespec){0, 1}, NULL));
	SHOW(sleep(0));
	SHOW(nanosleep(&(struct timespec){0, SEC}, NULL));
	SHOW(nanosleep(&(struct timespec){-1, 0}, NULL));
	SHOW(nanosleep(&(struct timespec){0, -1}, NULL));
	t = (struct timespec){0, SEC};
	SHOWE(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL));
	SHOWE(clock_nanosleep(77, 0, &ms, NULL));
	SHOWE(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &ms, NULL));

	pthread_t s[30];
	for (int i = 0; i < LEN(s); i++)
		s[i] = start(sleeper, (void *)(intptr_t)i);
	for (int i = 0; i < LEN(s); i++)
		finish(s[i]);
	printf("thirty sleepers, none too early\n");
	return 0;
}
