// A library that is loaded at run time. act is chosen by a resolver.
#include <pthread.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static int act_here(void) { return 7; }

static int (*resolve(void))(void) { return act_here; }

int special(void) __attribute__((ifunc("resolve")));

int act(void)
{
	int result = special();
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	return result;
}
