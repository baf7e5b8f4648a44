// A thread that expects another one to be done within a time, 50 microseconds by default.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#ifndef TIME
#define TIME 50
#endif

static atomic_int ready;

static void *late(void *arg)
{
	(void)arg;
	usleep(TIME);
	assert(atomic_load(&ready));
	return NULL;
}

int main(void)
{
	pthread_t t;
	pthread_create(&t, NULL, late, NULL);
	atomic_store(&ready, 1);
	pthread_join(t, NULL);
	return 0;
}
