// glibc-12486: an allocator that keeps statistics, and checks them when it is
// built for debugging.
//
// In the buggy form threads change the counters without a lock. When an addition
// is lost, a later check finds fewer bytes in use than are freed, although
// the memory itself is intact.
#include "suite.h"

static long threads = 2, rounds = 60;
static volatile long chunks_in_use, bytes_in_use;

#ifndef BUGGY
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
#endif

// count_chunk adds a chunk to the statistics, or removes one.
static void count_chunk(long sign, long size)
{
#ifndef BUGGY
	pthread_mutex_lock(&mutex);
#endif
	long chunks = chunks_in_use; // race: chunks_in_use
	long bytes = bytes_in_use; // race: bytes_in_use
	assert(sign > 0 || (chunks >= 1 && bytes >= size));
	DELAY(1);
	chunks_in_use = chunks + sign; // race: chunks_in_use
	bytes_in_use = bytes + sign * size; // race: bytes_in_use
#ifndef BUGGY
	pthread_mutex_unlock(&mutex);
#endif
}

static void *get(long size)
{
	count_chunk(1, size);
	return allocate(size, 1);
}

static void give_back(void *chunk, long size)
{
	free(chunk);
	count_chunk(-1, size);
}

static void body(long id)
{
	uint64_t random = id;
	for (long i = 0; i < rounds; i++) {
		long size = 16 + random_below(&random, 200);
		void *chunk = get(size);
		memset(chunk, id, size);
		DELAY(1 + size % 3);
		give_back(chunk, size);
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('r', "ROUNDS", &rounds, 1, 10000000),
		{0},
	});

	run_threads(threads, body);

	assert(chunks_in_use == 0 && bytes_in_use == 0);
	printf("glibc-12486: %ld rounds, correct\n", rounds);
	return 0;
}
