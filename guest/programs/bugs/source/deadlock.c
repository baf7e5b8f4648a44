// N threads take two locks each, each thread its own and its neighbour's: a ring of waiting threads
// if all have taken their first. (deadlock01 of SCTBench; Dijkstra's philosophers.) In the fixed form
// all take the lower one first.
#include "bugs.h"

static pthread_mutex_t locks[MOST_THREADS];
static int count, meals;

static void *philosopher(void *argument)
{
	int left = (int)(long)argument, right = (left + 1) % count;
#ifndef BUGGY
	if (right < left) {
		int t = left;
		left = right;
		right = t;
	}
#endif
	LOCK(locks[left]);
	LOCK(locks[right]);
	__atomic_add_fetch(&meals, 1, __ATOMIC_RELAXED);
	UNLOCK(locks[right]);
	UNLOCK(locks[left]);
	return NULL;
}

int main(int argc, char **argv)
{
	count = number(argc, argv, 2, 2, 200);
	for (int i = 0; i < count; i++)
		pthread_mutex_init(&locks[i], NULL);
	for (int i = 0; i < count; i++)
		start(philosopher, (void *)(long)i);
	join_all();
	CHECK(meals == count);
	return 0;
}
