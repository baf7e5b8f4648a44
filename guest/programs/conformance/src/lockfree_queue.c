// A bounded lock-free queue of many producers and consumers with sequence numbers per slot; each item once, in order.
#include "conformance.h"

enum { SLOTS = 16, SIDES = 4, EACH = 400 };

static struct {
	atomic_uint seq;
	int value;
} slot[SLOTS];
static atomic_uint head, tail;
static atomic_int seen[SIDES * EACH], taken;

static bool enqueue(int v)
{
	unsigned pos = atomic_load_explicit(&tail, memory_order_relaxed);
	for (;;) {
		unsigned seq = atomic_load_explicit(&slot[pos % SLOTS].seq, memory_order_acquire);
		int diff = (int)(seq - pos);
		if (diff == 0) {
			if (atomic_compare_exchange_weak_explicit(&tail, &pos, pos + 1, memory_order_relaxed, memory_order_relaxed))
				break;
		} else if (diff < 0) {
			return false;
		} else {
			pos = atomic_load_explicit(&tail, memory_order_relaxed);
		}
	}
	slot[pos % SLOTS].value = v;
	atomic_store_explicit(&slot[pos % SLOTS].seq, pos + 1, memory_order_release);
	return true;
}

static bool dequeue(int *v)
{
	unsigned pos = atomic_load_explicit(&head, memory_order_relaxed);
	for (;;) {
		unsigned seq = atomic_load_explicit(&slot[pos % SLOTS].seq, memory_order_acquire);
		int diff = (int)(seq - (pos + 1));
		if (diff == 0) {
			if (atomic_compare_exchange_weak_explicit(&head, &pos, pos + 1, memory_order_relaxed, memory_order_relaxed))
				break;
		} else if (diff < 0) {
			return false;
		} else {
			pos = atomic_load_explicit(&head, memory_order_relaxed);
		}
	}
	*v = slot[pos % SLOTS].value;
	atomic_store_explicit(&slot[pos % SLOTS].seq, pos + SLOTS, memory_order_release);
	return true;
}

static void *producer(void *arg)
{
	for (int i = 0; i < EACH; i++)
		while (!enqueue((intptr_t)arg * EACH + i))
			sched_yield();
	return NULL;
}

static void *consumer(void *arg)
{
	int last[SIDES] = {-1, -1, -1, -1}, v;
	while (taken < SIDES * EACH) {
		if (!dequeue(&v)) {
			sched_yield();
			continue;
		}
		taken++;
		seen[v]++;
		CHECK(v % EACH > last[v / EACH]);
		last[v / EACH] = v % EACH;
	}
	return arg;
}

int main(void)
{
	pthread_t p[SIDES], c[SIDES];
	for (int i = 0; i < SLOTS; i++)
		slot[i].seq = i;
	for (int i = 0; i < SIDES; i++) {
		c[i] = start(consumer, NULL);
		p[i] = start(producer, (void *)(intptr_t)i);
	}
	for (int i = 0; i < SIDES; i++) {
		finish(p[i]);
		finish(c[i]);
	}
	for (int i = 0; i < SIDES * EACH; i++)
		CHECK(seen[i] == 1);
	printf("items %d\n", taken);
	return 0;
}
