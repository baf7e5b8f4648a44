// C11 thread-specific storage: destructors, and _Thread_local variables of several sizes and alignments.
#include "conformance.h"

#include <threads.h>

static tss_t key;
static atomic_int destroyed;
static thread_local int counter = 7;
static thread_local char big[5000];
static thread_local struct {
	_Alignas(64) char c;
	int n;
} aligned = {'x', 3};

static void destroy(void *p)
{
	destroyed += *(int *)p;
	free(p);
}

static int worker(void *arg)
{
	int n = (intptr_t)arg;
	CHECK(tss_get(key) == NULL);
	int *p = malloc(sizeof *p);
	*p = n;
	CHECK(tss_set(key, p) == thrd_success);
	for (int i = 0; i < n; i++) {
		counter++;
		thrd_yield();
	}
	CHECK(counter == 7 + n);
	CHECK(big[0] == 0 && big[4999] == 0);
	memset(big, n, sizeof big);
	CHECK(((uintptr_t)&aligned & 63) == 0);
	CHECK(aligned.c == 'x' && aligned.n == 3);
	aligned.n = n;
	CHECK(tss_get(key) == p);
	return counter;
}

int main(void)
{
	thrd_t t[6];
	CHECK(tss_create(&key, destroy) == thrd_success);
	for (int i = 0; i < LEN(t); i++)
		CHECK(thrd_create(&t[i], worker, (void *)(intptr_t)(i + 1)) == thrd_success);
	for (int i = 0; i < LEN(t); i++) {
		int r;
		CHECK(thrd_join(t[i], &r) == thrd_success);
		printf("thread %d: %d\n", i, r);
	}
	printf("destroyed %d\n", destroyed);
	printf("main: %d %d %d\n", counter, big[0], aligned.n);
	tss_delete(key);
	return 0;
}
