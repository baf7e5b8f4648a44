// Outcomes that the memory model forbids never happen: store buffering with fences, message passing, Dekker, Peterson, seqlock.
#include "conformance.h"

enum { ROUNDS = 60 };

static atomic_int x, y, r0, r1;
static pthread_barrier_t bar;

static void *buffering(void *arg)
{
	bool first = arg == NULL;
	int bad = 0;
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&bar);
		if (first) {
			atomic_store_explicit(&x, 1, memory_order_relaxed);
			atomic_thread_fence(memory_order_seq_cst);
			r0 = atomic_load_explicit(&y, memory_order_relaxed);
		} else {
			atomic_store_explicit(&y, 1, memory_order_relaxed);
			atomic_thread_fence(memory_order_seq_cst);
			r1 = atomic_load_explicit(&x, memory_order_relaxed);
		}
		if (pthread_barrier_wait(&bar) == PTHREAD_BARRIER_SERIAL_THREAD) {
			bad += r0 == 0 && r1 == 0;
			x = y = 0;
		}
	}
	return (void *)(intptr_t)bad;
}

static int data[4];
static atomic_int ready;

static void *sender(void *arg)
{
	for (int i = 1; i <= ROUNDS; i++) {
		while (atomic_load_explicit(&ready, memory_order_acquire) != 0)
			sched_yield();
		for (int k = 0; k < LEN(data); k++)
			data[k] = i + k;
		atomic_store_explicit(&ready, i, memory_order_release);
	}
	return arg;
}

static void *receiver(void *arg)
{
	int bad = 0;
	(void)arg;
	for (int i = 1; i <= ROUNDS; i++) {
		while (atomic_load_explicit(&ready, memory_order_acquire) != i)
			sched_yield();
		for (int k = 0; k < LEN(data); k++)
			bad += data[k] != i + k;
		atomic_store_explicit(&ready, 0, memory_order_release);
	}
	return (void *)(intptr_t)bad;
}

static atomic_int want[2], turn;
static int inside, total;

static void *peterson(void *arg)
{
	int me = arg != NULL;
	for (int i = 0; i < ROUNDS; i++) {
		want[me] = 1;
		turn = !me;
		while (want[!me] && turn == !me)
			sched_yield();
		CHECK(++inside == 1);
		total++;
		CHECK(--inside == 0);
		want[me] = 0;
	}
	return NULL;
}

static atomic_uint seq;
static atomic_long va, vb;
static atomic_bool stop;

static void *seq_writer(void *arg)
{
	for (long i = 1; i <= ROUNDS * 3; i++) {
		atomic_fetch_add_explicit(&seq, 1, memory_order_acq_rel);
		atomic_store_explicit(&va, i, memory_order_release);
		atomic_store_explicit(&vb, -i, memory_order_release);
		atomic_fetch_add_explicit(&seq, 1, memory_order_release);
		if (i % 50 == 0)
			sched_yield();
	}
	stop = true;
	return arg;
}

static void *seq_reader(void *arg)
{
	int bad = 0;
	(void)arg;
	while (!stop) {
		unsigned s = atomic_load_explicit(&seq, memory_order_acquire);
		if (s & 1) {
			sched_yield();
			continue;
		}
		long a = atomic_load_explicit(&va, memory_order_acquire), b = atomic_load_explicit(&vb, memory_order_acquire);
		if (atomic_load_explicit(&seq, memory_order_acquire) == s)
			bad += a != -b;
	}
	return (void *)(intptr_t)bad;
}

static long pair(void *(*f)(void *), void *(*g)(void *))
{
	pthread_t a = start(f, NULL), b = start(g, &bar);
	long sum = (long)finish(a);
	return sum + (long)finish(b);
}

int main(void)
{
	OK(pthread_barrier_init(&bar, NULL, 2));
	printf("store buffering with fences: %ld\n", pair(buffering, buffering));
	printf("message passing: %ld\n", pair(sender, receiver));
	pair(peterson, peterson);
	printf("Peterson: %d\n", total);
	pthread_t r[3], w;
	for (int i = 0; i < LEN(r); i++)
		r[i] = start(seq_reader, NULL);
	w = start(seq_writer, NULL);
	long bad = 0;
	for (int i = 0; i < LEN(r); i++)
		bad += (long)finish(r[i]);
	finish(w);
	printf("sequence lock: %ld\n", bad);
	return 0;
}
