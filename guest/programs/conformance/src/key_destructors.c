// Thread-specific data: values per thread, destructors in rounds until no value is left, their limit, exit and cancel.
#include "conformance.h"

#include <limits.h>

static pthread_key_t first, second, chain, endless;
static atomic_int first_runs, second_runs, chain_runs, endless_runs;

static void on_first(void *v)
{
	CHECK(v == (void *)1);
	CHECK(pthread_getspecific(first) == NULL);
	first_runs++;
}

static void on_second(void *v)
{
	CHECK(v == (void *)2);
	second_runs++;
	// The value is destroyed in the next round.
	OK(pthread_setspecific(first, (void *)1));
}

static void on_chain(void *v)
{
	chain_runs++;
	if ((intptr_t)v > 1)
		OK(pthread_setspecific(chain, (void *)((intptr_t)v - 1)));
}

static void on_endless(void *v)
{
	endless_runs++;
	OK(pthread_setspecific(endless, v));
}

static void *body(void *arg)
{
	CHECK(pthread_getspecific(first) == NULL);
	OK(pthread_setspecific(second, (void *)2));
	switch ((intptr_t)arg) {
	case 0:
		return NULL;
	case 1:
		pthread_exit(NULL);
	default:
		for (;;)
			pause();
	}
}

static void *chained(void *arg)
{
	OK(pthread_setspecific(chain, arg));
	return NULL;
}

static void *never_done(void *arg)
{
	OK(pthread_setspecific(endless, arg));
	return NULL;
}

int main(void)
{
	OK(pthread_key_create(&first, on_first));
	OK(pthread_key_create(&second, on_second));
	OK(pthread_key_create(&chain, on_chain));
	OK(pthread_key_create(&endless, on_endless));

	for (intptr_t how = 0; how < 3; how++) {
		pthread_t t = start(body, (void *)how);
		if (how == 2)
			OK(pthread_cancel(t));
		finish(t);
	}
	// The cancelled thread may have died before or after it set its value.
	CHECK(first_runs == second_runs && first_runs >= 2);
	finish(start(chained, (void *)3));
	printf("chain of 3: %d\n", chain_runs);
	finish(start(never_done, (void *)1));
	printf("endless stops after PTHREAD_DESTRUCTOR_ITERATIONS: %d\n",
	       endless_runs == PTHREAD_DESTRUCTOR_ITERATIONS);
	SHOWE(pthread_key_delete(first));
	SHOWE(pthread_key_delete(first));
	SHOWE(pthread_setspecific(first, &first));
	// The main thread's values have no destructor run at exit.
	OK(pthread_setspecific(chain, (void *)1));
	return 0;
}
