// Unnamed semaphores: counts, trywait, overflow, refused values, threads that pass tokens in a ring.
#include "conformance.h"

#include <limits.h>
#include <semaphore.h>

enum { THREADS = 5, ROUNDS = 40 };

static sem_t ring[THREADS], pool;
static int trace[THREADS * ROUNDS], length;
static atomic_int inside, most;

static void *link_of_ring(void *arg)
{
	int me = (intptr_t)arg;
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(sem_wait(&ring[me]) == 0);
		trace[length++] = me;
		CHECK(sem_post(&ring[(me + 1) % THREADS]) == 0);
	}
	return NULL;
}

static void *bather(void *arg)
{
	(void)arg;
	for (int i = 0; i < 30; i++) {
		CHECK(sem_wait(&pool) == 0);
		int n = ++inside;
		if (n > most)
			most = n;
		sched_yield();
		inside--;
		CHECK(sem_post(&pool) == 0);
	}
	return NULL;
}

int main(void)
{
	sem_t s;
	int v;
	SHOW(sem_init(&s, 0, (unsigned)SEM_VALUE_MAX + 1));
	SHOW(sem_init(&s, 0, 2));
	SHOW(sem_trywait(&s));
	SHOW(sem_wait(&s));
	SHOW(sem_trywait(&s));
	SHOW(sem_post(&s));
	SHOW(sem_getvalue(&s, &v));
	printf("value %d\n", v);
	SHOW(sem_destroy(&s));
	SHOW(sem_init(&s, 0, SEM_VALUE_MAX));
	SHOW(sem_post(&s));
	SHOW(sem_destroy(&s));

	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		CHECK(sem_init(&ring[i], 0, i == 0) == 0);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(link_of_ring, (void *)(intptr_t)i);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	for (int i = 0; i < length; i++)
		CHECK(trace[i] == i % THREADS);
	printf("ring %d\n", length);

	CHECK(sem_init(&pool, 0, 2) == 0);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(bather, NULL);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	CHECK(most >= 1 && most <= 2);
	SHOW(sem_getvalue(&pool, &v));
	printf("value %d\n", v);
	return 0;
}
