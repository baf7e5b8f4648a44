// C11 threads: thrd_create, join, detach, exit, equal, yield, sleep, results.
#include "conformance.h"

#include <threads.h>

static atomic_int done;
static thrd_t main_thread;

static int add(void *arg)
{
	CHECK(!thrd_equal(thrd_current(), main_thread));
	thrd_yield();
	return (int)(intptr_t)arg * 2;
}

static int leave(void *arg)
{
	(void)arg;
	done++;
	thrd_exit(-5);
}

static int detached(void *arg)
{
	(void)arg;
	done++;
	return 0;
}

int main(void)
{
	main_thread = thrd_current();
	thrd_t t[6];
	int r;
	for (int i = 0; i < LEN(t); i++)
		CHECK(thrd_create(&t[i], add, (void *)(intptr_t)(i - 2)) == thrd_success);
	for (int i = 0; i < LEN(t); i++) {
		CHECK(thrd_join(t[i], &r) == thrd_success);
		printf("thread %d: %d\n", i, r);
	}
	CHECK(thrd_create(&t[0], leave, NULL) == thrd_success);
	CHECK(thrd_join(t[0], &r) == thrd_success);
	printf("thrd_exit: %d\n", r);
	CHECK(thrd_create(&t[0], detached, NULL) == thrd_success);
	CHECK(thrd_detach(t[0]) == thrd_success);
	while (done < 2)
		thrd_yield();
	struct timespec ts = {0, MSEC}, left = {7, 7};
	int64_t before = now(CLOCK_MONOTONIC);
	printf("thrd_sleep: %d\n", thrd_sleep(&ts, &left));
	CHECK(now(CLOCK_MONOTONIC) - before >= MSEC);
	ts.tv_nsec = SEC;
	printf("thrd_sleep, bad time: negative %d\n", thrd_sleep(&ts, &left) < -1);
	printf("equal: %d\n", thrd_equal(main_thread, thrd_current()) != 0);
	return 0;
}
