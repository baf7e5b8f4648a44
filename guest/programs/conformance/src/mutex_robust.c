// Robust mutex: a dying owner thread gives EOWNERDEAD, consistent repairs it, unlock without makes it unrecoverable.
#include "conformance.h"

static pthread_mutex_t mu;
static int data;

static void make(void)
{
	pthread_mutexattr_t a;
	OK(pthread_mutexattr_init(&a));
	OK(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST));
	OK(pthread_mutex_init(&mu, &a));
	OK(pthread_mutexattr_destroy(&a));
}

static void *die_holding(void *arg)
{
	(void)arg;
	OK(pthread_mutex_lock(&mu));
	data = 1;
	return NULL;
}

static void *exit_holding(void *arg)
{
	OK(pthread_mutex_lock(&mu));
	atomic_store((atomic_int *)arg, 1);
	nap();
	pthread_exit(NULL);
}

static void *waiter(void *arg)
{
	(void)arg;
	int r = pthread_mutex_lock(&mu);
	if (r == EOWNERDEAD)
		OK(pthread_mutex_consistent(&mu));
	if (r != ENOTRECOVERABLE)
		OK(pthread_mutex_unlock(&mu));
	return (void *)(intptr_t)r;
}

static void *fail_to_repair(void *arg)
{
	(void)arg;
	int r = pthread_mutex_lock(&mu);
	CHECK(r == EOWNERDEAD || r == ENOTRECOVERABLE);
	if (r == EOWNERDEAD)
		OK(pthread_mutex_unlock(&mu));
	return (void *)(intptr_t)r;
}

int main(void)
{
	make();
	finish(start(die_holding, NULL));
	SHOWE(pthread_mutex_lock(&mu));
	SHOWE(pthread_mutex_consistent(&mu));
	SHOWE(pthread_mutex_consistent(&mu));
	SHOWE(pthread_mutex_unlock(&mu));
	SHOWE(pthread_mutex_lock(&mu));
	SHOWE(pthread_mutex_unlock(&mu));

	// The owner dies while others wait for it: exactly one gets EOWNERDEAD.
	atomic_int held = 0;
	pthread_t owner = start(exit_holding, &held), w[3];
	while (!held)
		nap();
	int dead = 0, fine = 0;
	for (int i = 0; i < LEN(w); i++)
		w[i] = start(waiter, NULL);
	finish(owner);
	for (int i = 0; i < LEN(w); i++) {
		int r = (intptr_t)finish(w[i]);
		dead += r == EOWNERDEAD;
		fine += r == 0;
	}
	printf("waiters: %d EOWNERDEAD, %d ok\n", dead, fine);

	finish(start(die_holding, NULL));
	SHOWE(pthread_mutex_trylock(&mu));
	SHOWE(pthread_mutex_unlock(&mu));
	SHOWE(pthread_mutex_lock(&mu));
	SHOWE(pthread_mutex_trylock(&mu));
	struct timespec past = {0, 0};
	SHOWE(pthread_mutex_timedlock(&mu, &past));
	SHOWE(pthread_mutex_destroy(&mu));

	make();
	finish(start(die_holding, NULL));
	for (int i = 0; i < LEN(w); i++)
		w[i] = start(fail_to_repair, NULL);
	dead = fine = 0;
	for (int i = 0; i < LEN(w); i++) {
		int r = (intptr_t)finish(w[i]);
		dead += r == EOWNERDEAD;
		fine += r == ENOTRECOVERABLE;
	}
	printf("unrepaired: %d EOWNERDEAD, %d ENOTRECOVERABLE\n", dead, fine);
	SHOWE(pthread_mutex_destroy(&mu));
	return 0;
}
