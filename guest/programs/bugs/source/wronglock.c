// One thread changes a datum under its lock and expects no other change in between; N others
// change it under another lock. (wronglock_N of SCTBench.)
#include "bugs.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#ifdef BUGGY
static pthread_mutex_t other_lock = PTHREAD_MUTEX_INITIALIZER;
#else
#define other_lock lock
#endif
static volatile int datum;

static void *careful(void *unused)
{
	LOCK(lock);
	int before = datum;
	datum = before + 1;
	CHECK(datum == before + 1);
	UNLOCK(lock);
	return unused;
}

static void *careless(void *unused)
{
	LOCK(other_lock);
	datum = datum + 1;
	UNLOCK(other_lock);
	return unused;
}

int main(int argc, char **argv)
{
	int n = number(argc, argv, 3, 1, 200);
	start(careful, NULL);
	for (int i = 0; i < n; i++)
		start(careless, NULL);
	join_all();
	return 0;
}
