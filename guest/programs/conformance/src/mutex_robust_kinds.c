// Robust mutexes that are recursive or error-checking, and a thread that dies and holds many at once.
#include "conformance.h"

enum { MANY = 20 };

static pthread_mutex_t mu[MANY];

static void make(pthread_mutex_t *m, int type)
{
	pthread_mutexattr_t a;
	OK(pthread_mutexattr_init(&a));
	OK(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST));
	OK(pthread_mutexattr_settype(&a, type));
	OK(pthread_mutex_init(m, &a));
	OK(pthread_mutexattr_destroy(&a));
}

static void *hold_all(void *arg)
{
	(void)arg;
	for (int i = 0; i < MANY; i++)
		OK(pthread_mutex_lock(&mu[i]));
	// Unlocked out of order: the kernel walks the rest of the list.
	for (int i = 0; i < MANY; i += 3)
		OK(pthread_mutex_unlock(&mu[i]));
	return NULL;
}

static void *hold_deep(void *arg)
{
	pthread_mutex_t *m = arg;
	OK(pthread_mutex_lock(m));
	OK(pthread_mutex_lock(m));
	return NULL;
}

static void *hold_once(void *arg)
{
	OK(pthread_mutex_lock(arg));
	return NULL;
}

int main(void)
{
	for (int i = 0; i < MANY; i++)
		make(&mu[i], PTHREAD_MUTEX_NORMAL);
	finish(start(hold_all, NULL));
	for (int i = 0; i < MANY; i++)
		printf("%s%c", errname(pthread_mutex_trylock(&mu[i])), i % 5 == 4 ? '\n' : ' ');

	pthread_mutex_t deep, strict;
	make(&deep, PTHREAD_MUTEX_RECURSIVE);
	finish(start(hold_deep, &deep));
	SHOWE(pthread_mutex_lock(&deep));
	SHOWE(pthread_mutex_consistent(&deep));
	SHOWE(pthread_mutex_lock(&deep));
	SHOWE(pthread_mutex_unlock(&deep));
	SHOWE(pthread_mutex_unlock(&deep));
	SHOWE(pthread_mutex_unlock(&deep));

	make(&strict, PTHREAD_MUTEX_ERRORCHECK);
	finish(start(hold_once, &strict));
	SHOWE(pthread_mutex_lock(&strict));
	SHOWE(pthread_mutex_lock(&strict));
	SHOWE(pthread_mutex_consistent(&strict));
	SHOWE(pthread_mutex_unlock(&strict));
	SHOWE(pthread_mutex_unlock(&strict));
	return 0;
}
