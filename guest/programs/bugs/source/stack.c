// One thread pushes N values onto a stack, another pops as many; both read the stack's height
// before they take the lock. (stack of SCTBench.)
#include "bugs.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int rounds, top;
static volatile bool filled;
static int item[MOST_THREADS];

static void *producer(void *unused)
{
	for (int i = 0; i < rounds; i++) {
		LOCK(lock);
		CHECK(top < rounds);
		item[top++] = i;
		filled = true;
		UNLOCK(lock);
	}
	return unused;
}

static void *consumer(void *unused)
{
	for (int i = 0; i < rounds; i++) {
#ifdef BUGGY
		bool look = filled; // once true it stays true, although the stack may be empty
		LOCK(lock);
		if (look) {
			CHECK(top > 0);
			top--;
		}
#else
		LOCK(lock);
		if (top > 0)
			top--;
#endif
		UNLOCK(lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	rounds = number(argc, argv, 5, 1, 200);
	start(producer, NULL);
	start(consumer, NULL);
	join_all();
	return 0;
}
