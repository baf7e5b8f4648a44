// Recursive mutex: nesting depth, trylock by the owner and by another thread, unlock by another thread.
#include "conformance.h"

static pthread_mutex_t mu;
static int depth_seen;

static int descend(int n)
{
	OK(pthread_mutex_lock(&mu));
	int sum = n == 0 ? 0 : n + descend(n - 1);
	OK(pthread_mutex_unlock(&mu));
	return sum;
}

static void *stranger(void *arg)
{
	(void)arg;
	SHOWE(pthread_mutex_trylock(&mu));
	SHOWE(pthread_mutex_unlock(&mu));
	return NULL;
}

static void *nested(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++) {
		OK(pthread_mutex_lock(&mu));
		OK(pthread_mutex_lock(&mu));
		int d = depth_seen;
		sched_yield();
		depth_seen = d + 1;
		OK(pthread_mutex_unlock(&mu));
		OK(pthread_mutex_unlock(&mu));
	}
	return NULL;
}

int main(void)
{
	pthread_mutexattr_t a;
	OK(pthread_mutexattr_init(&a));
	SHOWE(pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE));
	OK(pthread_mutex_init(&mu, &a));
	OK(pthread_mutexattr_destroy(&a));

	printf("sum %d\n", descend(50));
	SHOWE(pthread_mutex_lock(&mu));
	SHOWE(pthread_mutex_trylock(&mu));
	finish(start(stranger, NULL));
	SHOWE(pthread_mutex_unlock(&mu));
	finish(start(stranger, NULL));
	SHOWE(pthread_mutex_unlock(&mu));
	SHOWE(pthread_mutex_unlock(&mu));

	pthread_t t[4];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(nested, NULL);
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	printf("nested %d\n", depth_seen);

	pthread_mutex_t st = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	SHOWE(pthread_mutex_lock(&st));
	SHOWE(pthread_mutex_lock(&st));
	SHOWE(pthread_mutex_unlock(&st));
	SHOWE(pthread_mutex_unlock(&st));
	SHOWE(pthread_mutex_destroy(&mu));
	return 0;
}
