// Thread creation with attributes: stack size, guard, detach state, scheduling; every attribute getter and setter.
#include "conformance.h"

#include <limits.h>

static void *use_stack(void *arg)
{
	// Touch most of the stack that was requested.
	size_t n = (size_t)(uintptr_t)arg;
	volatile char big[n];
	for (size_t i = 0; i < n; i += 1024)
		big[i] = (char)(i >> 10);
	long sum = 0;
	for (size_t i = 0; i < n; i += 1024)
		sum += (unsigned char)big[i];
	return (void *)sum;
}

int main(void)
{
	pthread_attr_t a;
	size_t size, guard;
	int v;
	struct sched_param sp = {.sched_priority = 0};

	OK(pthread_attr_init(&a));
	OK(pthread_attr_getdetachstate(&a, &v));
	printf("detach state %d\n", v == PTHREAD_CREATE_JOINABLE);
	SHOWE(pthread_attr_setdetachstate(&a, 77));
	SHOWE(pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED));
	OK(pthread_attr_getdetachstate(&a, &v));
	printf("detached %d\n", v == PTHREAD_CREATE_DETACHED);
	SHOWE(pthread_attr_setdetachstate(&a, PTHREAD_CREATE_JOINABLE));

	SHOWE(pthread_attr_setstacksize(&a, 100));
	SHOWE(pthread_attr_setstacksize(&a, 256 * 1024));
	OK(pthread_attr_getstacksize(&a, &size));
	printf("stack size %zu\n", size);
	OK(pthread_attr_getguardsize(&a, &guard));
	printf("default guard %zu\n", guard);
	SHOWE(pthread_attr_setguardsize(&a, 3 * 4096));
	OK(pthread_attr_getguardsize(&a, &guard));
	printf("guard %zu\n", guard);

	SHOWE(pthread_attr_setinheritsched(&a, 77));
	SHOWE(pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED));
	OK(pthread_attr_getinheritsched(&a, &v));
	printf("explicit %d\n", v == PTHREAD_EXPLICIT_SCHED);
	SHOWE(pthread_attr_setschedpolicy(&a, 77));
	SHOWE(pthread_attr_setschedpolicy(&a, SCHED_OTHER));
	OK(pthread_attr_getschedpolicy(&a, &v));
	printf("policy %d\n", v);
	SHOWE(pthread_attr_setschedparam(&a, &sp));
	sp.sched_priority = 5;
	SHOWE(pthread_attr_setschedparam(&a, &sp));
	OK(pthread_attr_getschedparam(&a, &sp));
	printf("priority %d\n", sp.sched_priority);
	SHOWE(pthread_attr_setscope(&a, PTHREAD_SCOPE_PROCESS));
	SHOWE(pthread_attr_setscope(&a, PTHREAD_SCOPE_SYSTEM));
	SHOWE(pthread_attr_setscope(&a, 77));
	OK(pthread_attr_getscope(&a, &v));
	printf("scope %d\n", v == PTHREAD_SCOPE_SYSTEM);

	pthread_t t;
	void *r;
	SHOWE(pthread_create(&t, &a, use_stack, (void *)(200 * 1024)));
	SHOWE(pthread_join(t, &r));
	printf("sum %ld\n", (long)r);
	SHOWE(pthread_attr_setguardsize(&a, 0));
	SHOWE(pthread_create(&t, &a, use_stack, (void *)(100 * 1024)));
	SHOWE(pthread_join(t, &r));
	printf("sum %ld\n", (long)r);
	// A guard as large as the whole stack.
	SHOWE(pthread_attr_setguardsize(&a, 1 << 20));
	SHOWE(pthread_create(&t, &a, use_stack, NULL));
	SHOWE(pthread_attr_destroy(&a));
	return 0;
}
