// One thread puts N values into a queue, another takes them. The buggy form stores a value in one
// critical section and counts it in the next; the reader expects that both agree. (queue of
// SCTBench.)
#include "bugs.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int rounds, head, tail;
static int item[MOST_THREADS];

static void *producer(void *unused)
{
	for (int i = 0; i < rounds; i++) {
		LOCK(lock);
		item[tail] = i + 1;
#ifdef BUGGY
		UNLOCK(lock);
		LOCK(lock);
#endif
		tail++;
		UNLOCK(lock);
	}
	return unused;
}

static void *consumer(void *unused)
{
	for (int i = 0; i < rounds; i++) {
		LOCK(lock);
		bool stored = item[head] != 0, counted = tail > head;
		CHECK(stored == counted);
		if (counted) {
			CHECK(item[head] == head + 1);
			head++;
		}
		UNLOCK(lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	rounds = number(argc, argv, 3, 1, 200);
	start(producer, NULL);
	start(consumer, NULL);
	join_all();
	return 0;
}
