// Destructors of thread-local objects as C++ registers them, pthread key destructors after them, exit of the main thread.
#include "conformance.h"

extern int __cxa_thread_atexit_impl(void (*f)(void *), void *obj, void *dso);
extern void *__dso_handle;

static pthread_key_t key;
static char trail[3][200];
static _Thread_local char *out;
static atomic_int ready;

static void note(const char *what, long n)
{
	if (out)
		snprintf(out + strlen(out), 200 - strlen(out), " %s%ld", what, n);
	else
		printf(" %s%ld\n", what, n);
}

static void object_dies(void *p)
{
	note("object", (long)p);
	// A destructor that is registered while others run is run, too.
	if ((long)p == 2)
		CHECK(__cxa_thread_atexit_impl(object_dies, (void *)20, &__dso_handle) == 0);
}

static void key_dies(void *p)
{
	note("key", (long)p);
}

static void *worker(void *arg)
{
	out = trail[(intptr_t)arg];
	OK(pthread_setspecific(key, (void *)1));
	for (long i = 1; i <= 3; i++)
		CHECK(__cxa_thread_atexit_impl(object_dies, (void *)i, &__dso_handle) == 0);
	if ((intptr_t)arg == 1)
		pthread_exit(NULL);
	while ((intptr_t)arg == 2) {
		ready = 1;
		pause();
	}
	return NULL;
}

static void at_end(void)
{
	printf("exit handler\n");
}

int main(void)
{
	OK(pthread_key_create(&key, key_dies));
	for (intptr_t i = 0; i < 3; i++) {
		pthread_t t = start(worker, (void *)i);
		if (i == 2) {
			while (!ready)
				nap();
			OK(pthread_cancel(t));
		}
		finish(t);
		printf("thread %ld:%s\n", (long)i, trail[i]);
	}
	atexit(at_end);
	CHECK(__cxa_thread_atexit_impl(object_dies, (void *)9, &__dso_handle) == 0);
	return 0;
}
