// Deferred cancellation: acts at cancellation points only, states and types, testcancel, cancel of oneself.
#include "conformance.h"

static atomic_int step, cancelled;

static void *worker(void *arg)
{
	(void)arg;
	int old;
	SHOWE(pthread_setcancelstate(77, &old));
	SHOWE(pthread_setcanceltype(77, &old));
	OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old));
	printf("was enabled: %d\n", old == PTHREAD_CANCEL_ENABLE);
	OK(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old));
	printf("was deferred: %d\n", old == PTHREAD_CANCEL_DEFERRED);
	step = 1;
	while (!cancelled)
		nap(); // nanosleep would be a cancellation point
	pthread_testcancel();
	printf("disabled: still here\n");
	OK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old));
	// Nothing is a cancellation point until testcancel.
	CHECK(old == PTHREAD_CANCEL_DISABLE);
	char *p = malloc(100);
	CHECK(p != NULL);
	free(p);
	step = 2;
	pthread_testcancel();
	step = 3;
	return NULL;
}

static void *suicide(void *arg)
{
	(void)arg;
	OK(pthread_cancel(pthread_self()));
	step = 4;
	pthread_testcancel();
	step = 5;
	return NULL;
}

int main(void)
{
	pthread_t t = start(worker, NULL);
	while (step < 1)
		nap();
	OK(pthread_cancel(t));
	cancelled = 1;
	printf("result cancelled: %d\n", finish(t) == PTHREAD_CANCELED);
	printf("step %d\n", step);
	t = start(suicide, NULL);
	printf("self cancelled: %d\n", finish(t) == PTHREAD_CANCELED);
	printf("step %d\n", step);
	return 0;
}
