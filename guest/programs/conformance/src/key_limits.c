// All PTHREAD_KEYS_MAX keys at once, across threads; deleted keys forget their values and run no destructor.
#include "conformance.h"

#include <limits.h>

static pthread_key_t key[PTHREAD_KEYS_MAX + 1];
static int made;
static atomic_int destroyed;

static void count(void *v)
{
	(void)v;
	destroyed++;
}

static void *fill(void *arg)
{
	for (int i = 0; i < made; i++)
		OK(pthread_setspecific(key[i], (char *)arg + i));
	sched_yield();
	for (int i = 0; i < made; i++)
		CHECK(pthread_getspecific(key[i]) == (char *)arg + i);
	return NULL;
}

static void *set_and_wait(void *arg)
{
	pthread_barrier_t *b = arg;
	OK(pthread_setspecific(key[0], b));
	pthread_barrier_wait(b);
	pthread_barrier_wait(b);
	return NULL;
}

int main(void)
{
	int r;
	while ((r = pthread_key_create(&key[made], count)) == 0)
		made++;
	printf("one too many: %s\n", errname(r));
	CHECK(made > 1000 && made <= PTHREAD_KEYS_MAX);

	static char base[4];
	pthread_t t[4];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(fill, base + i + 1);
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	printf("all destroyed: %d\n", destroyed == 4 * made);

	// Deleted while a thread has a value: no destructor, and the new key of
	// the same number starts without a value.
	pthread_barrier_t b;
	OK(pthread_barrier_init(&b, NULL, 2));
	destroyed = 0;
	pthread_t w = start(set_and_wait, &b);
	pthread_barrier_wait(&b);
	OK(pthread_setspecific(key[0], &b));
	SHOWE(pthread_key_delete(key[0]));
	pthread_key_t again;
	SHOWE(pthread_key_create(&again, count));
	printf("value of a new key: %d\n", pthread_getspecific(again) != NULL);
	pthread_barrier_wait(&b);
	finish(w);
	printf("destroyed %d\n", destroyed);
	return 0;
}
