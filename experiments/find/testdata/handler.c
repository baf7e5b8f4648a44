// A handler of a signal that takes a lock which the thread that it interrupts may hold.
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t first;

static void handle(int signal)
{
	(void)signal;
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

static void *interrupt(void *arg)
{
	(void)arg;
	pthread_kill(first, SIGUSR1);
	return NULL;
}

int main(void)
{
	pthread_t t;
	signal(SIGUSR1, handle);
	first = pthread_self();
	pthread_create(&t, NULL, interrupt, NULL);
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	pthread_join(t, NULL);
	return 0;
}
