// pthread_mutex_timedlock and clocklock: time-outs on both clocks, late success, refused arguments.
#include "conformance.h"

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static atomic_int started;

static void *time_out(void *arg)
{
	clockid_t c = (intptr_t)arg;
	struct timespec t = after(c, 3 * MSEC);
	int r = c == CLOCK_REALTIME ? pthread_mutex_timedlock(&mu, &t) : pthread_mutex_clocklock(&mu, c, &t);
	CHECK(now(c) >= to_ns(t));
	return (void *)(intptr_t)r;
}

static void *succeed(void *arg)
{
	clockid_t c = (intptr_t)arg;
	struct timespec t = after(c, 60 * SEC);
	started++;
	int r = pthread_mutex_clocklock(&mu, c, &t);
	if (r == 0)
		OK(pthread_mutex_unlock(&mu));
	return (void *)(intptr_t)r;
}

static void *bad(void *arg)
{
	(void)arg;
	struct timespec past = {1, 0}, wrong = {1, SEC}, negative = {-1, 0};
	SHOWE(pthread_mutex_timedlock(&mu, &past));
	SHOWE(pthread_mutex_timedlock(&mu, &wrong));
	SHOWE(pthread_mutex_timedlock(&mu, &negative));
	SHOWE(pthread_mutex_clocklock(&mu, CLOCK_PROCESS_CPUTIME_ID, &past));
	SHOWE(pthread_mutex_clocklock(&mu, CLOCK_MONOTONIC, &past));
	return NULL;
}

int main(void)
{
	struct timespec wrong = {1, -1};
	SHOWE(pthread_mutex_timedlock(&mu, &wrong)); // free: the time is not checked
	printf("realtime: %s\n", errname((intptr_t)finish(start(time_out, (void *)CLOCK_REALTIME))));
	printf("monotonic: %s\n", errname((intptr_t)finish(start(time_out, (void *)CLOCK_MONOTONIC))));
	finish(start(bad, NULL));

	pthread_t a = start(succeed, (void *)CLOCK_REALTIME), b = start(succeed, (void *)CLOCK_MONOTONIC);
	while (started < 2)
		nap();
	nap();
	OK(pthread_mutex_unlock(&mu));
	printf("late realtime: %s\n", errname((intptr_t)finish(a)));
	printf("late monotonic: %s\n", errname((intptr_t)finish(b)));
	return 0;
}
