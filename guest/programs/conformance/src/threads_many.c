// Two hundred threads alive at once, each with a value of its own, released together.
#include "conformance.h"

enum { N = 200 };

static pthread_barrier_t bar;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pid_t tid[N];
static _Thread_local int mine;
static int total;

static void *worker(void *arg)
{
	int me = (intptr_t)arg;
	mine = me;
	tid[me] = gettid();
	pthread_barrier_wait(&bar);
	CHECK(mine == me);
	OK(pthread_mutex_lock(&mu));
	total += mine;
	OK(pthread_mutex_unlock(&mu));
	pthread_barrier_wait(&bar);
	return (void *)(intptr_t)mine;
}

int main(void)
{
	pthread_attr_t a;
	pthread_t t[N];
	OK(pthread_barrier_init(&bar, NULL, N));
	OK(pthread_attr_init(&a));
	OK(pthread_attr_setstacksize(&a, 64 * 1024));
	for (int i = 0; i < N; i++)
		OK(pthread_create(&t[i], &a, worker, (void *)(intptr_t)i));
	for (int i = 0; i < N; i++)
		CHECK(finish(t[i]) == (void *)(intptr_t)i);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < i; j++)
			CHECK(tid[i] != tid[j]);
	printf("total %d\n", total);
	return 0;
}
