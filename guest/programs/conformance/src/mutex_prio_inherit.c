// Priority-inheritance mutex: mutual exclusion, trylock, time-outs.
#include "conformance.h"

static pthread_mutex_t mu;
static int counter;

static void *work(void *arg)
{
	(void)arg;
	for (int i = 0; i < 200; i++) {
		OK(pthread_mutex_lock(&mu));
		int c = counter;
		if (i % 50 == 0)
			sched_yield();
		counter = c + 1;
		OK(pthread_mutex_unlock(&mu));
	}
	return NULL;
}

static void *try(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)pthread_mutex_trylock(&mu);
}

static void *timed(void *arg)
{
	(void)arg;
	struct timespec t = after(CLOCK_REALTIME, 2 * MSEC);
	return (void *)(intptr_t)pthread_mutex_timedlock(&mu, &t);
}

int main(void)
{
	pthread_mutexattr_t a;
	OK(pthread_mutexattr_init(&a));
	OK(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT));
	OK(pthread_mutex_init(&mu, &a));

	pthread_t t[4];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(work, NULL);
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	printf("counter %d\n", counter);

	OK(pthread_mutex_lock(&mu));
	printf("trylock of a held one: %s\n", errname((intptr_t)finish(start(try, NULL))));
	printf("timedlock of a held one: %s\n", errname((intptr_t)finish(start(timed, NULL))));
	SHOWE(pthread_mutex_unlock(&mu));
	SHOWE(pthread_mutex_destroy(&mu));
	return 0;
}
