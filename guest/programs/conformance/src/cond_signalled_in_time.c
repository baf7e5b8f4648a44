// Timed condition waits that are signalled long before their deadline, on both clocks and by many waiters.
#include "conformance.h"

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int tickets, waiting;

static void *waiter(void *arg)
{
	clockid_t c = (intptr_t)arg;
	struct timespec t = after(c, 100 * SEC);
	int r = 0;
	OK(pthread_mutex_lock(&mu));
	waiting++;
	while (tickets == 0 && r == 0)
		r = pthread_cond_clockwait(&cond, &mu, c, &t);
	if (r == 0)
		tickets--;
	OK(pthread_mutex_unlock(&mu));
	return (void *)(intptr_t)r;
}

int main(void)
{
	pthread_t t[8];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(waiter, (void *)(intptr_t)(i % 2 ? CLOCK_REALTIME : CLOCK_MONOTONIC));
	int given = 0;
	while (given < LEN(t)) {
		OK(pthread_mutex_lock(&mu));
		if (waiting > given) {
			tickets++;
			given++;
			OK(pthread_cond_signal(&cond));
		}
		OK(pthread_mutex_unlock(&mu));
		sched_yield();
	}
	for (int i = 0; i < LEN(t); i++)
		printf("waiter %d: %s\n", i, errname((intptr_t)finish(t[i])));
	printf("tickets left %d\n", tickets);
	return 0;
}
