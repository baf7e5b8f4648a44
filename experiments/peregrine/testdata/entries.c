// A thread takes a lock again and again while another sends it signals: some come where
// it has called pthread_mutex_lock or pthread_mutex_unlock and has executed nothing there.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile long count, sum, stop;

static void handler(int n)
{
	sum = sum * 31 + count;
}

static void *lock(void *arg)
{
	while (!stop) {
		pthread_mutex_lock(&mutex);
		count++;
		pthread_mutex_unlock(&mutex);
	}
	return arg;
}

int main(void)
{
	pthread_t t;
	signal(SIGUSR1, handler);
	pthread_create(&t, 0, lock, 0);
	for (int i = 0; i < 50; i++) {
		pthread_kill(t, SIGUSR1);
		for (volatile int k = 0; k < 200; k++)
			;
	}
	stop = 1;
	pthread_join(t, 0);
	printf("%ld\n", sum);
	return 0;
}
