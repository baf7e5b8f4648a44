// Calls every function of an allocator, in two threads, and prints the calls
// as the trace should have it: operation, old block, size, new block.
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

static void did(const char *op, uintptr_t old, size_t size, void *new)
{
	// printf allocates its buffer when it is first called: main has done that.
	printf("%s 0x%lx %zu 0x%lx\n", op, (unsigned long)old, size, (unsigned long)new);
}

static void *work(void *arg)
{
	pthread_mutex_lock(&mu);
	uintptr_t old = 0;
	char *p = malloc(100);
	did("allocate", 0, 100, p);
	for (size_t n = 10; n < 1000000; n *= 10) {
		old = (uintptr_t)p;
		p = realloc(p, n);
		did("resize", old, n, p);
	}
	old = (uintptr_t)p;
	p = reallocarray(p, 3, 7);
	did("resize", old, 21, p);
	free(p);
	did("free", (uintptr_t)p, 0, NULL);
	void *q[5];
	q[0] = calloc(4, 25);
	did("allocate", 0, 100, q[0]);
	q[1] = aligned_alloc(64, 128);
	did("allocate", 0, 128, q[1]);
	if (posix_memalign(&q[2], 256, 99))
		abort();
	did("allocate", 0, 99, q[2]);
	q[3] = memalign(32, 5);
	did("allocate", 0, 5, q[3]);
	q[4] = valloc(1);
	did("allocate", 0, 1, q[4]);
	for (int i = 0; i < 5; i++) {
		free(q[i]);
		did("free", (uintptr_t)q[i], 0, NULL);
	}
	pthread_mutex_unlock(&mu);
	return arg;
}

int main(void)
{
	pthread_t t;
	puts("begin");
	pthread_create(&t, NULL, work, NULL);
	pthread_join(t, NULL);
	work(NULL);
	puts("end");
	return 0;
}
