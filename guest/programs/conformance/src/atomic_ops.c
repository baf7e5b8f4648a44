// C11 atomics of one to sixteen bytes: every fetch operation from eight threads, exchanges, flags, weak compares, fences.
// link: -latomic
#include "conformance.h"

enum { THREADS = 8, ROUNDS = 300 };

static _Atomic(uint8_t) a8;
static _Atomic(uint16_t) a16;
static _Atomic(uint32_t) a32;
static _Atomic(uint64_t) a64, and_, or_, xor_, max_;
static _Atomic(int64_t) sub_;
static atomic_flag flag = ATOMIC_FLAG_INIT;
static int guarded;
static _Atomic(double) real;
struct pair {
	uint64_t a, b;
};
static _Atomic(struct pair) both;
static _Atomic(uint64_t) bag, bag_out;

static void *work(void *arg)
{
	uint64_t me = (uintptr_t)arg;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		atomic_fetch_add(&a8, 1);
		atomic_fetch_add_explicit(&a16, 3, memory_order_relaxed);
		a32++;
		atomic_fetch_add(&a64, 1ul << 32);
		atomic_fetch_sub(&sub_, me);
		atomic_fetch_and(&and_, ~(1ul << (i % 64)));
		atomic_fetch_or(&or_, 1ul << (i * 7 % 64));
		atomic_fetch_xor(&xor_, i * 0x123456789 + me);
		uint64_t m = max_;
		while (m < me * 1000 + i && !atomic_compare_exchange_weak(&max_, &m, me * 1000 + i))
			;
		while (atomic_flag_test_and_set_explicit(&flag, memory_order_acquire))
			sched_yield();
		guarded++;
		atomic_flag_clear_explicit(&flag, memory_order_release);
		double d = real;
		while (!atomic_compare_exchange_weak(&real, &d, d + 0.5))
			;
		struct pair p = both, q;
		do {
			CHECK(p.b == p.a * 2);
			q = (struct pair){p.a + 1, p.b + 2};
		} while (!atomic_compare_exchange_weak(&both, &p, q));
		// Each value that is exchanged is taken out exactly once.
		uint64_t out = atomic_exchange(&bag, me * ROUNDS + i);
		atomic_fetch_add(&bag_out, out);
	}
	return NULL;
}

static _Atomic(int) token;
static int passed[THREADS];

static void *ring(void *arg)
{
	int me = (intptr_t)arg;
	for (int i = 0; i < 20; i++) {
		while (atomic_load_explicit(&token, memory_order_acquire) != me)
			sched_yield();
		passed[me] = passed[(me + THREADS - 1) % THREADS] + 1;
		atomic_store_explicit(&token, (me + 1) % THREADS, memory_order_release);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	and_ = ~0ul;
	for (int i = 0; i < THREADS; i++)
		t[i] = start(work, (void *)(intptr_t)(i + 1));
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	struct pair p = both;
	printf("%u %u %u %lx\n", a8, a16, a32, a64);
	printf("%ld %lx %lx %lx %lu\n", sub_, and_, or_, xor_, max_);
	printf("%d %.1f %lu %lu\n", guarded, real, p.a, p.b);
	printf("bag %lu\n", bag + bag_out);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(ring, (void *)(intptr_t)i);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	for (int i = 0; i < THREADS; i++)
		printf("%d ", passed[i]);
	printf("\n");
	return 0;
}
