// A thread that waits in a loop for a store of main between two operations.
#include <pthread.h>
static volatile int flag;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *arg)
{
	while (!flag)
		;
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	return arg;
}
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, work, 0);
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	flag = 1;
	pthread_join(t, 0);
	return 0;
}
