// Older pthread names that programs still use: yield, robust and kind of mutexes under their first names, stack addresses.
#include "conformance.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void *hold(void *arg)
{
	OK(pthread_mutex_lock(arg));
	return NULL;
}

static void *nothing(void *arg)
{
	pthread_yield();
	return arg;
}

int main(void)
{
	pthread_mutexattr_t a;
	pthread_mutex_t m;
	int v;
	SHOWE(pthread_yield());
	OK(pthread_mutexattr_init(&a));
	SHOWE(pthread_mutexattr_setrobust_np(&a, PTHREAD_MUTEX_ROBUST_NP));
	SHOWE(pthread_mutexattr_getrobust_np(&a, &v));
	printf("robust %d\n", v);
	OK(pthread_mutex_init(&m, &a));
	finish(start(hold, &m));
	SHOWE(pthread_mutex_lock(&m));
	SHOWE(pthread_mutex_consistent_np(&m));
	SHOWE(pthread_mutex_unlock(&m));
	SHOWE(pthread_mutexattr_settype(&a, PTHREAD_MUTEX_FAST_NP));
	SHOWE(pthread_mutexattr_settype(&a, PTHREAD_MUTEX_TIMED_NP));
	SHOWE(pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ADAPTIVE_NP));

	// The address that is set is the stack's end.
	pthread_attr_t t;
	char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *got;
	CHECK(stack != MAP_FAILED);
	OK(pthread_attr_init(&t));
	SHOWE(pthread_attr_setstacksize(&t, 65536));
	SHOWE(pthread_attr_setstackaddr(&t, stack + 65536));
	SHOWE(pthread_attr_getstackaddr(&t, &got));
	printf("end of the stack %d\n", got == stack + 65536);
	pthread_t p;
	SHOWE(pthread_create(&p, &t, nothing, (void *)9));
	printf("value %ld\n", (long)finish(p));
	return 0;
}
