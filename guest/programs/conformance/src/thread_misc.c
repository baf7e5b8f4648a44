// The smaller pthread calls: equal, self, concurrency, scheduling parameters, CPU-time clocks, yield.
#include "conformance.h"

static pthread_barrier_t bar;

static void *busy(void *arg)
{
	volatile unsigned long n = 0;
	for (int i = 0; i < 200000; i++)
		n += i;
	pthread_barrier_wait(&bar);
	pthread_barrier_wait(&bar);
	return arg;
}

int main(void)
{
	struct sched_param sp;
	int policy;
	OK(pthread_barrier_init(&bar, NULL, 2));
	printf("equal %d\n", pthread_equal(pthread_self(), pthread_self()) != 0);
	SHOWE(pthread_setconcurrency(3));
	printf("concurrency %d\n", pthread_getconcurrency());
	SHOWE(pthread_setconcurrency(-1));
	SHOWE(pthread_getschedparam(pthread_self(), &policy, &sp));
	printf("policy %d priority %d\n", policy, sp.sched_priority);
	SHOWE(pthread_setschedparam(pthread_self(), SCHED_OTHER, &sp));
	SHOWE(pthread_setschedparam(pthread_self(), SCHED_BATCH, &sp));
	SHOWE(pthread_getschedparam(pthread_self(), &policy, &sp));
	printf("policy %d\n", policy);
	SHOWE(pthread_setschedparam(pthread_self(), SCHED_OTHER, &sp));
	sp.sched_priority = 5;
	SHOWE(pthread_setschedparam(pthread_self(), SCHED_OTHER, &sp));
	SHOWE(pthread_setschedparam(pthread_self(), 77, &sp));
	SHOWE(pthread_setschedprio(pthread_self(), 0));
	SHOWE(pthread_setschedprio(pthread_self(), 5));
	SHOW(sched_yield());

	pthread_t t = start(busy, NULL);
	CHECK(!pthread_equal(t, pthread_self()));
	clockid_t other, own;
	SHOWE(pthread_getcpuclockid(t, &other));
	SHOWE(pthread_getcpuclockid(pthread_self(), &own));
	pthread_barrier_wait(&bar);
	CHECK(now(other) > 0);
	CHECK(now(own) > 0);
	int64_t a = now(CLOCK_THREAD_CPUTIME_ID), b = now(own), c = now(CLOCK_THREAD_CPUTIME_ID);
	CHECK(a <= b && b <= c);
	CHECK(now(CLOCK_PROCESS_CPUTIME_ID) >= c);
	pthread_barrier_wait(&bar);
	finish(t);
	return 0;
}
