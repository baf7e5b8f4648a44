// N threads pass a token on: each copies its neighbour's value once, the first one adds one. In the
// order of the ring all have the same value afterwards. (token_ring of SCTBench.) The fixed form
// waits for the neighbour.
#include "bugs.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;
static int count, done;
static int value[MOST_THREADS];

static void *station(void *argument)
{
	int i = (int)(long)argument;
	LOCK(lock);
#ifndef BUGGY
	while (done != i)
		pthread_cond_wait(&passed, &lock);
#endif
	value[i] = i == 0 ? value[count - 1] + 1 : value[i - 1];
	done++;
	pthread_cond_broadcast(&passed);
	UNLOCK(lock);
	return NULL;
}

int main(int argc, char **argv)
{
	count = number(argc, argv, 4, 2, 200);
	for (int i = 0; i < count; i++)
		start(station, (void *)(long)i);
	join_all();
	for (int i = 0; i < count; i++)
		CHECK(value[i] == 1);
	return 0;
}
