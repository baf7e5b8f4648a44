// N writers set one datum under one lock and then another under a second lock; N readers expect
// a thread that sees the first to see the second. (twostage_N of SCTBench; two-stage locking after
// Artho, Havelund and Biere, High-level data races, 2003.) The fixed form holds the first lock
// until both are written, and until both are read.
#include "bugs.h"

static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER, second_lock = PTHREAD_MUTEX_INITIALIZER;
static int first, second;

static void *writer(void *unused)
{
	LOCK(first_lock);
	first = 1;
#ifdef BUGGY
	UNLOCK(first_lock);
#endif
	LOCK(second_lock);
	second = 2;
	UNLOCK(second_lock);
#ifndef BUGGY
	UNLOCK(first_lock);
#endif
	return unused;
}

static void *reader(void *unused)
{
	LOCK(first_lock);
	int seen = first;
#ifdef BUGGY
	UNLOCK(first_lock);
	if (seen == 0)
		return unused;
#endif
	LOCK(second_lock);
	int other = second;
	UNLOCK(second_lock);
#ifndef BUGGY
	UNLOCK(first_lock);
#endif
	CHECK(seen == 0 || other == seen + 1);
	return unused;
}

int main(int argc, char **argv)
{
	int n = number(argc, argv, 1, 1, 120);
	for (int i = 0; i < n; i++)
		start(writer, NULL);
	for (int i = 0; i < (n + 1) / 2; i++)
		start(reader, NULL);
	join_all();
	return 0;
}
