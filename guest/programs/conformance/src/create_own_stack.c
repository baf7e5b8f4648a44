// Threads on stacks that the program supplies: setstack, getstack, stack contents survive the thread.
#include "conformance.h"

enum { SIZE = 128 * 1024 };

static void *where(void *arg)
{
	char local;
	char *base = arg;
	return (void *)(intptr_t)(&local >= base && &local < base + SIZE);
}

static void *check_attr(void *arg)
{
	pthread_attr_t a;
	void *addr;
	size_t size, guard;
	OK(pthread_getattr_np(pthread_self(), &a));
	OK(pthread_attr_getstack(&a, &addr, &size));
	OK(pthread_attr_getguardsize(&a, &guard));
	OK(pthread_attr_destroy(&a));
	printf("getattr: own address %d, size %zu, guard %zu\n", addr == arg, size, guard);
	return NULL;
}

int main(void)
{
	pthread_attr_t a;
	void *addr, *base = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t size;
	CHECK(base != MAP_FAILED);
	OK(pthread_attr_init(&a));
	SHOWE(pthread_attr_setstack(&a, base, 100));
	SHOWE(pthread_attr_setstack(&a, base, SIZE));
	OK(pthread_attr_getstack(&a, &addr, &size));
	printf("same %d, size %zu\n", addr == base, size);

	for (int i = 0; i < 3; i++) {
		pthread_t t;
		OK(pthread_create(&t, &a, where, base));
		printf("on own stack: %ld\n", (long)finish(t));
	}
	pthread_t t;
	OK(pthread_create(&t, &a, check_attr, base));
	finish(t);
	OK(pthread_attr_destroy(&a));
	CHECK(munmap(base, SIZE) == 0);

	char *heap = malloc(SIZE);
	CHECK(heap != NULL);
	OK(pthread_attr_init(&a));
	OK(pthread_attr_setstack(&a, heap, SIZE));
	OK(pthread_create(&t, &a, where, heap));
	printf("on the heap: %ld\n", (long)finish(t));
	OK(pthread_attr_destroy(&a));
	free(heap);
	return 0;
}
