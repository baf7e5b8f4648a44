// mysql-12848: a cache that is resized while another thread looks things up.
//
// In the buggy form the first half of resizing, which removes the old table
// and notes the new size, is done without the lock. A look-up that gets the lock
// before the second half finds a size and no table.
#include "suite.h"

static long rounds = 30;
static volatile long size = 16;
static long *volatile table;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long found;

// take_away removes and returns the old table.
static long *take_away(long new_size)
{
	long *old = table;
	table = NULL; // race: table
	size = new_size; // race: size
	return old;
}

static void resize(long new_size)
{
#ifdef BUGGY
	long *old = take_away(new_size);
	DELAY(2);
	pthread_mutex_lock(&mutex);
#else
	pthread_mutex_lock(&mutex);
	long *old = take_away(new_size);
#endif
	free(old);
	table = allocate(new_size, sizeof *table);
	pthread_mutex_unlock(&mutex);
}

static void look_up(long key)
{
	pthread_mutex_lock(&mutex);
	long slot = key % size; // race: size
	long *entry = &table[slot]; // race: table
	if (*entry == key)
		found++;
	*entry = key;
	pthread_mutex_unlock(&mutex);
}

static void body(long id)
{
	for (long i = 0; i < rounds; i++) {
		if (id == 0 && i % 8 == 3)
			resize(16 + i % 16);
		else if (id == 1)
			look_up(i / 2);
		DELAY(1);
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('r', "ROUNDS", &rounds, 1, 10000000),
		{0},
	});
	table = allocate(size, sizeof *table);

	run_threads(2, body);

	if (found > rounds)
		wrong("%ld keys of %ld were found", found, rounds);
	printf("mysql-12848: %ld rounds, correct\n", rounds);
	free(table);
	return 0;
}
