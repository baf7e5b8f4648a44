// benign-double-check: a table that is made when it is first needed, which each
// thread checks without a lock and, if it finds it missing, again with it.
//
// Whatever the first check finds, the table is made once and complete before it
// is seen: x86 does not reorder the stores. The fixed form always takes the
// lock.
#include "suite.h"

enum { SIZE = 16 };

static long threads = 2, rounds = 20;
static volatile long made;
static volatile long table[SIZE], times_made;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void make_table(void)
{
	for (long i = 0; i < SIZE; i++)
		table[i] = i * i; // race: table
	times_made = times_made + 1;
	DELAY(1);
	made = 1; // race: made
}

static long look_up(long i)
{
#ifdef BUGGY
	if (made == 0) { // race: made
#endif
		pthread_mutex_lock(&mutex);
		if (made == 0)
			make_table();
		pthread_mutex_unlock(&mutex);
#ifdef BUGGY
	}
#endif
	return table[i]; // race: table
}

static void body(long id)
{
	for (long i = 0; i < rounds; i++) {
		long slot = (i + id) % SIZE;
		if (look_up(slot) != slot * slot)
			wrong("entry %ld is wrong", slot);
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('p', "THREADS", &threads, 2, MAX_THREADS),
		NUMBER('r', "ROUNDS", &rounds, 1, 10000000),
		{0},
	});

	run_threads(threads, body);

	if (times_made != 1)
		wrong("the table was made %ld times", times_made);
	printf("benign-double-check: %ld rounds, correct\n", rounds);
	return 0;
}
