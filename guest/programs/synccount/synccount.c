// synccount: a library to preload, which counts the barrier waits, mutex
// acquisitions and condition waits of each thread of a program and writes them,
// a line a thread in the order of their first operation, to the file that
// SYNCCOUNT names.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_THREADS = 256 };

struct counts {
	long barriers, locks, waits;
};

static struct counts all[MAX_THREADS];
static long threads;
static __thread struct counts *own;

static struct counts *mine(void)
{
	if (own == NULL) {
		long i = __atomic_fetch_add(&threads, 1, __ATOMIC_SEQ_CST);
		own = &all[i < MAX_THREADS ? i : MAX_THREADS - 1];
	}
	return own;
}

static void *real(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);
	if (function == NULL)
		abort();
	return function;
}

int pthread_barrier_wait(pthread_barrier_t *b)
{
	mine()->barriers++;
	return ((int (*)(pthread_barrier_t *))real("pthread_barrier_wait"))(b);
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
	mine()->locks++;
	return ((int (*)(pthread_mutex_t *))real("pthread_mutex_lock"))(m);
}

int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	mine()->waits++;
	return ((int (*)(pthread_cond_t *, pthread_mutex_t *))real("pthread_cond_wait"))(c, m);
}

__attribute__((destructor)) static void report(void)
{
	const char *name = getenv("SYNCCOUNT");
	FILE *f = name ? fopen(name, "w") : NULL;
	if (f == NULL)
		return;
	for (long i = 0; i < threads && i < MAX_THREADS; i++)
		fprintf(f, "%ld %ld %ld\n", all[i].barriers, all[i].locks, all[i].waits);
	fclose(f);
}
