// Asynchronous cancellation: a thread in an endless loop of its own and one that became asynchronous while pending.
#include "conformance.h"

static atomic_int step;
static volatile unsigned long spins;

static void *spinner(void *arg)
{
	(void)arg;
	OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
	step = 1;
	for (;;)
		spins++;
	return NULL;
}

static void *pending(void *arg)
{
	(void)arg;
	step = 2;
	while (step < 3)
		sched_yield();
	// The request is pending; switching to asynchronous acts on it.
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	step = 4;
	return NULL;
}

static void *disabled(void *arg)
{
	(void)arg;
	OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
	OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
	step = 5;
	while (step < 6)
		sched_yield();
	return (void *)7;
}

int main(void)
{
	pthread_t t = start(spinner, NULL);
	while (step < 1)
		nap();
	OK(pthread_cancel(t));
	printf("spinner: %d\n", finish(t) == PTHREAD_CANCELED);

	t = start(pending, NULL);
	while (step < 2)
		nap();
	OK(pthread_cancel(t));
	step = 3;
	printf("pending: %d\n", finish(t) == PTHREAD_CANCELED);
	printf("step %d\n", step);

	t = start(disabled, NULL);
	while (step < 5)
		nap();
	OK(pthread_cancel(t));
	step = 6;
	printf("disabled: %ld\n", (long)finish(t));
	return 0;
}
