// Error-checking mutex: EDEADLK for the owner, EPERM for other threads, EBUSY on destroy while held; adaptive mutex.
#include "conformance.h"

static pthread_mutex_t mu = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

static void *stranger(void *arg)
{
	(void)arg;
	SHOWE(pthread_mutex_trylock(&mu));
	SHOWE(pthread_mutex_unlock(&mu));
	return NULL;
}

static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static int count;

static void *adapt(void *arg)
{
	(void)arg;
	for (int i = 0; i < 200; i++) {
		OK(pthread_mutex_lock(&adaptive));
		count++;
		OK(pthread_mutex_unlock(&adaptive));
	}
	return NULL;
}

int main(void)
{
	SHOWE(pthread_mutex_unlock(&mu));
	SHOWE(pthread_mutex_lock(&mu));
	SHOWE(pthread_mutex_lock(&mu));
	SHOWE(pthread_mutex_trylock(&mu));
	struct timespec past = {0, 0};
	SHOWE(pthread_mutex_timedlock(&mu, &past));
	finish(start(stranger, NULL));
	SHOWE(pthread_mutex_destroy(&mu));
	SHOWE(pthread_mutex_unlock(&mu));
	SHOWE(pthread_mutex_destroy(&mu));

	pthread_t t[4];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(adapt, NULL);
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	printf("adaptive %d\n", count);
	return 0;
}
