// benign-redundant-write: threads that search together and all write the same
// value into one variable when they succeed.
//
// The order of the writes does not matter, as they write the same. The fixed
// form has a lock.
#include "suite.h"

static long threads = 2, n = 2000;
static volatile long found; // set to 1 by a thread that finds a multiple of 97

#ifndef BUGGY
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
#endif

static void set_found(void)
{
#ifndef BUGGY
	pthread_mutex_lock(&mutex);
#endif
	found = 1; // race: found
#ifndef BUGGY
	pthread_mutex_unlock(&mutex);
#endif
}

static void body(long id)
{
	for (long i = share_start(n, threads, id); i < share_start(n, threads, id + 1); i++)
		if (random_at(1, i) % 97 == 0)
			set_found();
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('p', "THREADS", &threads, 2, MAX_THREADS),
		NUMBER('n', "NUMBERS", &n, 1, 100000000),
		{0},
	});

	run_threads(threads, body);

	long expected = 0;
	for (long i = 0; i < n; i++)
		if (random_at(1, i) % 97 == 0)
			expected = 1;
	if (found != expected)
		wrong("found is %ld, not %ld", found, expected);
	printf("benign-redundant-write: %ld numbers, correct\n", n);
	return 0;
}
