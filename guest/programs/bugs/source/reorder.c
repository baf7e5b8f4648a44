// N setters write a and then b, one checker reads a and then b. The checker fails if it sees a
// pair that no setter leaves: only one schedule in many separates the two writes of the first
// setter, the more setters there are. (reorder_N of the SCTBench collection.) The fixed form has
// both writes, and both reads, in one critical section.
#include "bugs.h"

#ifndef BUGGY
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#endif
static volatile int a, b;

static void *setter(void *unused)
{
#ifndef BUGGY
	LOCK(lock);
#endif
	a = 1;
	b = -1;
#ifndef BUGGY
	UNLOCK(lock);
#endif
	return unused;
}

static void *checker(void *unused)
{
#ifndef BUGGY
	LOCK(lock);
#endif
	int seen_a = a, seen_b = b;
#ifndef BUGGY
	UNLOCK(lock);
#endif
	CHECK((seen_a == 0 && seen_b == 0) || (seen_a == 1 && seen_b == -1));
	return unused;
}

int main(int argc, char **argv)
{
	int n = number(argc, argv, 3, 1, 200);
	for (int i = 0; i < n; i++)
		start(setter, NULL);
	start(checker, NULL);
	join_all();
	return 0;
}
