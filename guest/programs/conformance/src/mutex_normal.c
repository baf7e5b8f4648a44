// Normal mutex: mutual exclusion of eight threads, trylock, static and dynamic initialisation, destroy.
#include "conformance.h"

enum { THREADS = 8, ROUNDS = 400 };

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static long counter, inside;

static void *work(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		OK(pthread_mutex_lock(&mu));
		CHECK(++inside == 1);
		counter++;
		if (i % 64 == (int)(intptr_t)arg)
			sched_yield();
		CHECK(--inside == 0);
		OK(pthread_mutex_unlock(&mu));
	}
	return NULL;
}

static void *try(void *m)
{
	return (void *)(intptr_t)pthread_mutex_trylock(m);
}

int main(void)
{
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		t[i] = start(work, (void *)(intptr_t)i);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	printf("counter %ld\n", counter);

	pthread_mutex_t m;
	SHOWE(pthread_mutex_init(&m, NULL));
	SHOWE(pthread_mutex_trylock(&m));
	SHOWE(pthread_mutex_trylock(&m));
	printf("other thread: %s\n", errname((intptr_t)finish(start(try, &m))));
	SHOWE(pthread_mutex_unlock(&m));
	SHOWE(pthread_mutex_destroy(&m));
	return 0;
}
