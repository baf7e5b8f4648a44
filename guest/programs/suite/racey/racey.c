// racey: threads that race on purpose, so that the program's one line of output
// shows the result of every race.
//
// Each thread repeatedly picks two elements of the shared array m by its entry
// of sig, mixes one into sig and sig into the other, without any
// synchronization. The mixing function is a bijection in each of its arguments,
// so a read of another value changes everything after it.
#include "suite.h"

static long threads = 4, iterations = 50, elements = 64;

static unsigned sig[MAX_THREADS];
static unsigned *m;

#ifndef BUGGY
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
#endif

// blend is a bijection of a for fixed b, and of b for fixed a.
static unsigned blend(unsigned a, unsigned b)
{
	unsigned h = a * 2654435761u + b;
	h ^= h >> 15;
	h *= 2246822519u;
	return h ^ h >> 13;
}

static void step(long id)
{
	unsigned own = sig[id];
	unsigned from = own % elements;
	unsigned seen = m[from]; // race: m
	own = blend(own, seen);
	sig[id] = own; // race: sig
	unsigned neighbour = sig[(id + 1) % threads]; // race: sig
	unsigned to = own % elements;
	unsigned old = m[to]; // race: m
	m[to] = blend(old, neighbour); // race: m
}

static void body(long id)
{
	for (long i = 0; i < iterations; i++) {
#ifdef BUGGY
		step(id);
		if (i % 16 == 0)
			DELAY(1);
#else
		pthread_mutex_lock(&mutex);
		step(id);
		pthread_mutex_unlock(&mutex);
#endif
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('i', "ITERATIONS", &iterations, 1, 100000000),
		NUMBER('n', "ELEMENTS", &elements, 1, 1000000),
		{0},
	});
	m = allocate(elements, sizeof *m);
	for (long i = 0; i < elements; i++)
		m[i] = random_at(1, i);
	for (long i = 0; i < threads; i++)
		sig[i] = random_at(2, i);

	run_threads(threads, body);

	unsigned signature = 0;
	for (long i = 0; i < threads; i++)
		signature = blend(signature, sig[i]);
	for (long i = 0; i < elements; i++)
		signature = blend(signature, m[i]);
	printf("racey: signature %08x\n", signature);
	free(m);
	return 0;
}
