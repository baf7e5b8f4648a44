// benign-user-synchronization: a thread that spins until another has set a flag,
// and then reads the data that it wrote before.
//
// Detectors that do not know the flag's meaning report the flag and the data,
// yet the data are read after they were written: x86 neither moves a store
// before an earlier one nor a load before an earlier one. The fixed form uses a
// lock and a condition.
#include <sched.h>

#include "suite.h"

static long rounds = 10;
static volatile long ready; // the round that the data are of
static volatile long data;

#ifndef BUGGY
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void await(long round)
{
	pthread_mutex_lock(&mutex);
	while (ready != round)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
}

static void announce(long round)
{
	pthread_mutex_lock(&mutex);
	ready = round;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
}
#else
static void await(long round)
{
	while (ready != round) // race: ready
		sched_yield();
}

static void announce(long round)
{
	ready = round; // race: ready
}
#endif

// The threads take turns: odd rounds are for writing, even ones for reading.
static void body(long id)
{
	for (long i = 0; i < rounds; i++) {
		await(2 * i + id);
		DELAY(1);
		if (id == 0)
			data = i * i; // race: data
		else if (data != i * i) // race: data
			wrong("round %ld has the data %ld", i, data);
		announce(2 * i + id + 1);
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('r', "ROUNDS", &rounds, 1, 10000000),
		{0},
	});

	run_threads(2, body);

	printf("benign-user-synchronization: %ld rounds, correct\n", rounds);
	return 0;
}
