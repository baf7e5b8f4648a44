// A three-state mutex and an event count built on raw futexes and atomics, under contention.
#include "futex.h"

enum { THREADS = 6, ROUNDS = 300 };

static atomic_uint lock_word, event;
static long counter;
static atomic_int done;

// The mutex of U. Drepper, "Futexes are tricky", mutex 2: 0 free, 1 taken, 2 contended.
static void lock(void)
{
	unsigned c = 0;
	if (atomic_compare_exchange_strong(&lock_word, &c, 1))
		return;
	if (c != 2)
		c = atomic_exchange(&lock_word, 2);
	while (c != 0) {
		futex(&lock_word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
		c = atomic_exchange(&lock_word, 2);
	}
}

static void unlock(void)
{
	if (atomic_fetch_sub(&lock_word, 1) != 1) {
		lock_word = 0;
		futex(&lock_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
}

static void *worker(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		lock();
		long c = counter;
		if (i % 100 == 0)
			sched_yield();
		counter = c + 1;
		unlock();
	}
	done++;
	event++;
	futex(&event, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	return arg;
}

int main(void)
{
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		t[i] = start(worker, NULL);
	for (;;) {
		unsigned seen = event;
		if (done == THREADS)
			break;
		futex(&event, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
	}
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	printf("counter %ld, word %u, events %u\n", counter, lock_word, event);
	return 0;
}
