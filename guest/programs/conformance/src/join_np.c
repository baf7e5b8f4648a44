// Joins with a time limit or without waiting: tryjoin_np, timedjoin_np, clockjoin_np; joining oneself and a running thread.
#include "conformance.h"

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

static void *held_up(void *arg)
{
	OK(pthread_mutex_lock(&mu));
	OK(pthread_mutex_unlock(&mu));
	return arg;
}

static void *quick(void *arg)
{
	return arg;
}

static pthread_t main_thread;

static void *join_main(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)pthread_tryjoin_np(main_thread, NULL);
}

int main(void)
{
	void *r = NULL;
	OK(pthread_mutex_lock(&mu));
	pthread_t t = start(held_up, (void *)42);
	SHOWE(pthread_tryjoin_np(t, &r));
	struct timespec ts = after(CLOCK_REALTIME, 2 * MSEC);
	SHOWE(pthread_timedjoin_np(t, &r, &ts));
	CHECK(now(CLOCK_REALTIME) >= to_ns(ts));
	ts = after(CLOCK_MONOTONIC, 2 * MSEC);
	SHOWE(pthread_clockjoin_np(t, &r, CLOCK_MONOTONIC, &ts));
	CHECK(now(CLOCK_MONOTONIC) >= to_ns(ts));
	SHOWE(pthread_clockjoin_np(t, &r, CLOCK_PROCESS_CPUTIME_ID, &ts));
	OK(pthread_mutex_unlock(&mu));
	ts = after(CLOCK_MONOTONIC, 100 * SEC);
	SHOWE(pthread_clockjoin_np(t, &r, CLOCK_MONOTONIC, &ts));
	printf("value %ld\n", (long)r);

	t = start(quick, (void *)43);
	int e;
	while ((e = pthread_tryjoin_np(t, &r)) == EBUSY)
		sched_yield();
	printf("tryjoin: %s, value %ld\n", errname(e), (long)r);

	t = start(quick, (void *)44);
	ts = after(CLOCK_REALTIME, 100 * SEC);
	SHOWE(pthread_timedjoin_np(t, &r, &ts));
	printf("value %ld\n", (long)r);

	SHOWE(pthread_join(pthread_self(), NULL));
	main_thread = pthread_self();
	t = start(join_main, NULL);
	printf("tryjoin of the running main thread: %s\n", errname((intptr_t)finish(t)));
	return 0;
}
