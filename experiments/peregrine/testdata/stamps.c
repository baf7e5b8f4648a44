// Threads print time stamp counters, processor time, and on which processor they are; and how much of a timer is
// left.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <x86intrin.h>

static unsigned long long at[4];
static int cpu[4];
static struct rusage used[4];
static struct itimerval left[4];

static void *stamp(void *to)
{
	long i = (long)to;

	cpu[i] = sched_getcpu();
	at[i] = __rdtsc();
	for (volatile int n = 0; n < 10000; n++)
		;
	getrusage(RUSAGE_THREAD, &used[i]);
	getitimer(ITIMER_REAL, &left[i]);
	return 0;
}

int main(void)
{
	pthread_t threads[3];

	setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_sec = 1000}, 0);

	for (long i = 0; i < 3; i++)
		pthread_create(&threads[i], 0, stamp, (void *)i);
	stamp((void *)3);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], 0);
	for (int i = 0; i < 4; i++)
		printf("%llu on %d, %ld, %ld\n", at[i], cpu[i], used[i].ru_utime.tv_usec, left[i].it_value.tv_usec);
	return 0;
}
