// mysql-644: a thread that copies a list while another makes it longer.
//
// In the buggy form the copying thread takes no lock. It allocates memory for
// the present number of entries and then copies up to the end of the list, which
// has moved: it writes beyond its memory.
#include "suite.h"

enum { GUARD = 0x5afe };

static long rounds = 40, limit;
static volatile long count;
static long *entries;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void grow(void)
{
	for (long i = 0; i < rounds; i++) {
		DELAY(1);
		pthread_mutex_lock(&mutex);
		entries[count] = count + 1; // race: entries, count
		count = count + 1; // race: count
		pthread_mutex_unlock(&mutex);
	}
}

// copy_entries copies the list and returns the sum of its entries, which are
// 1, 2, 3 and so on.
static void copy_entries(void)
{
	long size = count; // race: count
	// The guard stands for other data on the heap.
	long *copy = allocate(limit + 1, sizeof *copy);
	for (long i = size; i <= limit; i++)
		copy[i] = GUARD;
	DELAY(2);
	long copied = 0;
	for (; copied != count; copied++) // race: count
		copy[copied] = entries[copied]; // race: entries
	for (long i = 0; i < size; i++)
		if (copy[i] != i + 1)
			wrong("entry %ld is %ld", i, copy[i]);
	assert(copy[size] == GUARD);
	free(copy);
}

static void body(long id)
{
	if (id == 0) {
		grow();
		return;
	}
	for (long i = 0; i < rounds; i++) {
#ifndef BUGGY
		pthread_mutex_lock(&mutex);
#endif
		copy_entries();
#ifndef BUGGY
		pthread_mutex_unlock(&mutex);
#endif
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('r', "ROUNDS", &rounds, 1, 10000),
		{0},
	});
	limit = rounds;
	entries = allocate(limit, sizeof *entries);

	run_threads(2, body);

	printf("mysql-644: %ld entries, correct\n", count);
	free(entries);
	return 0;
}
