// Two producers and two consumers of a buffer with one slot, N values each, who all wait for one condition
// variable. The buggy form wakes one of them: if a producer wakes the other producer, all may wait. (After the
// bounded buffer of J. Magee and J. Kramer, Concurrency: State Models and Java Programs, 1999.) The fixed form
// wakes all.
#include "bugs.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int rounds, used, put, taken;

static void wake(void)
{
#ifdef BUGGY
	pthread_cond_signal(&changed);
#else
	pthread_cond_broadcast(&changed);
#endif
}

static void *producer(void *unused)
{
	for (int i = 0; i < rounds; i++) {
		LOCK(lock);
		while (used == 1)
			pthread_cond_wait(&changed, &lock);
		used++;
		put++;
		wake();
		UNLOCK(lock);
	}
	return unused;
}

static void *consumer(void *unused)
{
	for (int i = 0; i < rounds; i++) {
		LOCK(lock);
		while (used == 0)
			pthread_cond_wait(&changed, &lock);
		used--;
		taken++;
		wake();
		UNLOCK(lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	rounds = number(argc, argv, 3, 1, 200);
	for (int i = 0; i < 2; i++) {
		start(producer, NULL);
		start(consumer, NULL);
	}
	join_all();
	CHECK(put == 2 * rounds && taken == put);
	return 0;
}
