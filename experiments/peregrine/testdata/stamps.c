// Threads print time stamp counters, and on which processor they are.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <x86intrin.h>

static unsigned long long at[4];
static int cpu[4];

static void *stamp(void *to)
{
	long i = (long)to;

	cpu[i] = sched_getcpu();
	at[i] = __rdtsc();
	return 0;
}

int main(void)
{
	pthread_t threads[3];

	for (long i = 0; i < 3; i++)
		pthread_create(&threads[i], 0, stamp, (void *)i);
	stamp((void *)3);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], 0);
	for (int i = 0; i < 4; i++)
		printf("%llu on %d\n", at[i], cpu[i]);
	return 0;
}
