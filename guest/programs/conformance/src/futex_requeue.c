// FUTEX_REQUEUE and FUTEX_CMP_REQUEUE: the number of woken and of moved threads, and later wakes of each.
#include "futex.h"

static atomic_uint a, b, c;
static atomic_int woken;

static void *sleeper(void *arg)
{
	CHECK(futex(&a, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) == 0);
	woken++;
	return arg;
}

static long wake(atomic_uint *w, int n)
{
	return futex(w, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

int main(void)
{
	enum { N = 8 };
	pthread_t t[N];
	for (int i = 0; i < N; i++)
		t[i] = start(sleeper, NULL);
	gather(&a, &b, N, FUTEX_PRIVATE_FLAG);

	b = 7;
	SHOW(futex(&b, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)INT_MAX, &c, 6));
	// The result counts both those woken and those moved.
	SHOW(futex(&b, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)2, &c, 7));
	printf("moved %ld\n", wake(&c, INT_MAX));
	// Plain requeue counts the same way.
	SHOW(futex(&b, FUTEX_REQUEUE_PRIVATE, 1, (void *)1, &c, 0));
	printf("moved %ld\n", wake(&c, INT_MAX));
	// Onto the same word: no thread is moved.
	SHOW(futex(&b, FUTEX_REQUEUE_PRIVATE, 0, (void *)INT_MAX, &b, 0));
	SHOW(futex(&b, FUTEX_CMP_REQUEUE_PRIVATE, 0, (void *)0, &c, 7));
	printf("left %ld\n", wake(&b, INT_MAX));
	for (int i = 0; i < N; i++)
		finish(t[i]);
	CHECK(woken == N);
	SHOW(futex(&b, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)INT_MAX, &c, 7));
	return 0;
}
