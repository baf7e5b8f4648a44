// membarrier: the query, registration, barriers between threads, errors.
#include "conformance.h"

#include <linux/membarrier.h>

static atomic_int turn;
static volatile int data[2];

static int barrier(int cmd, unsigned flags) { return syscall(SYS_membarrier, cmd, flags, 0); }

static void *other(void *arg)
{
	for (int i = 0; i < 200; i++) {
		while (atomic_load_explicit(&turn, memory_order_relaxed) != 2 * i + 1)
			sched_yield();
		CHECK(barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0);
		CHECK(data[0] == i);
		data[1] = i;
		CHECK(barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0);
		atomic_store_explicit(&turn, 2 * i + 2, memory_order_relaxed);
	}
	return arg;
}

int main(void)
{
	int all = barrier(MEMBARRIER_CMD_QUERY, 0);
	CHECK(all > 0 && all & MEMBARRIER_CMD_GLOBAL && all & MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	SHOW(barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0));
	SHOW(barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0));
	SHOW(barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0));
	SHOW(barrier(MEMBARRIER_CMD_GLOBAL, 0));
	SHOW(barrier(MEMBARRIER_CMD_QUERY, 1 << 20));
	SHOW(barrier(1 << 30, 0));
	SHOW(barrier(3, 0));
	pthread_t t = start(other, NULL);
	for (int i = 0; i < 200; i++) {
		data[0] = i;
		CHECK(barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0);
		atomic_store_explicit(&turn, 2 * i + 1, memory_order_relaxed);
		while (atomic_load_explicit(&turn, memory_order_relaxed) != 2 * i + 2)
			sched_yield();
		CHECK(data[1] == i);
	}
	finish(t);
	return 0;
}
