/*
 * Preloaded into a program, this library makes it fail under some schedules: each thread at its start, and
 * each creator of a thread, adds 1 to a counter some times without a lock, and aborts if another thread
 * was in between.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

static volatile int count;

static void add(void)
{
	for (int i = 0; i < 16; i++) {
		int before = count;

		count = before + 1;
		if (count != before + 1) {
			signal(SIGABRT, SIG_DFL); /* Go's run-time has a handler, which exits with status 2 */
			abort();
		}
	}
}

struct start {
	void *(*routine)(void *);
	void *argument;
};

static void *begin(void *p)
{
	struct start start = *(struct start *)p;

	free(p);
	add();
	return start.routine(start.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
	struct start *start = malloc(sizeof *start);

	if (!create || !start)
		exit(99);
	*start = (struct start){routine, argument};
	int status = create(thread, attributes, begin, start);
	add();
	return status;
}
