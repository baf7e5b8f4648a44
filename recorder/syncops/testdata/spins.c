/* Threads that take a spin lock 50 times each; the lock is held when they begin. */
#include <pthread.h>

enum { threads = 3, times = 50 };

static pthread_spinlock_t lock;
static int count;

static void *body(void *arg)
{
	for (int i = 0; i < times; i++) {
		pthread_spin_lock(&lock);
		count++;
		pthread_spin_unlock(&lock);
	}
	return arg;
}

int main(void)
{
	pthread_t t[threads];

	pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_lock(&lock);
	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], 0, body, 0);
	for (volatile int i = 0; i < 10000; i++)
		;
	pthread_spin_unlock(&lock);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], 0);
	return count != threads * times;
}
