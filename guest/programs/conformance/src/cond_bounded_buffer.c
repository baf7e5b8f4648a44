// Bounded buffer with two conditions: three producers, three consumers, every item once.
#include "conformance.h"

enum { SLOTS = 4, ITEMS = 150, SIDES = 3 };

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static int slot[SLOTS], used, in, out, seen[SIDES * ITEMS];

static void put(int v)
{
	OK(pthread_mutex_lock(&mu));
	while (used == SLOTS)
		OK(pthread_cond_wait(&not_full, &mu));
	slot[in] = v;
	in = (in + 1) % SLOTS;
	used++;
	OK(pthread_cond_signal(&not_empty));
	OK(pthread_mutex_unlock(&mu));
}

static int get(void)
{
	OK(pthread_mutex_lock(&mu));
	while (used == 0)
		OK(pthread_cond_wait(&not_empty, &mu));
	int v = slot[out];
	out = (out + 1) % SLOTS;
	used--;
	OK(pthread_cond_signal(&not_full));
	OK(pthread_mutex_unlock(&mu));
	return v;
}

static void *producer(void *arg)
{
	for (int i = 0; i < ITEMS; i++)
		put((intptr_t)arg * ITEMS + i);
	return NULL;
}

static void *consumer(void *arg)
{
	int last[SIDES] = {-1, -1, -1};
	(void)arg;
	for (int i = 0; i < ITEMS; i++) {
		int v = get();
		// One producer's items reach one consumer in order.
		CHECK(v % ITEMS > last[v / ITEMS]);
		last[v / ITEMS] = v % ITEMS;
		__atomic_fetch_add(&seen[v], 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

int main(void)
{
	pthread_t p[SIDES], c[SIDES];
	for (int i = 0; i < SIDES; i++) {
		p[i] = start(producer, (void *)(intptr_t)i);
		c[i] = start(consumer, NULL);
	}
	for (int i = 0; i < SIDES; i++) {
		finish(p[i]);
		finish(c[i]);
	}
	for (int i = 0; i < SIDES * ITEMS; i++)
		CHECK(seen[i] == 1);
	printf("items %d, left %d\n", SIDES * ITEMS, used);
	return 0;
}
