// benign-approximate: threads that count operations in one counter without
// a lock, because the exact number is not needed.
//
// Updates may be lost; the program only asks that the counter is not too high
// and not negative. The fixed form has a lock.
#include "suite.h"

static long threads = 2, rounds = 300;
static volatile long requests;

#ifndef BUGGY
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
#endif

static void count_request(void)
{
#ifndef BUGGY
	pthread_mutex_lock(&mutex);
#endif
	long before = requests; // race: requests
	requests = before + 1; // race: requests
#ifndef BUGGY
	pthread_mutex_unlock(&mutex);
#endif
}

static void body(long id)
{
	(void)id;
	for (long i = 0; i < rounds; i++)
		count_request();
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('p', "THREADS", &threads, 2, MAX_THREADS),
		NUMBER('r', "ROUNDS", &rounds, 1, 100000000),
		{0},
	});

	run_threads(threads, body);

	if (requests < 1 || requests > threads * rounds)
		wrong("%ld requests were counted of %ld", requests, threads * rounds);
	printf("benign-approximate: %ld rounds, correct\n", rounds);
	return 0;
}
