// Read-write lock: shared readers, exclusive writers, try forms, EDEADLK, and the writer-preferring kind.
#include "conformance.h"

static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;

static void *try_read(void *l)
{
	int r = pthread_rwlock_tryrdlock(l);
	if (r == 0)
		OK(pthread_rwlock_unlock(l));
	return (void *)(intptr_t)r;
}

static void *try_write(void *l)
{
	int r = pthread_rwlock_trywrlock(l);
	if (r == 0)
		OK(pthread_rwlock_unlock(l));
	return (void *)(intptr_t)r;
}

static void *write_once(void *l)
{
	OK(pthread_rwlock_wrlock(l));
	OK(pthread_rwlock_unlock(l));
	return NULL;
}

static void others(const char *when)
{
	printf("%s: read %s, write %s\n", when, errname((intptr_t)finish(start(try_read, &rw))),
	       errname((intptr_t)finish(start(try_write, &rw))));
}

int main(void)
{
	others("free");
	SHOWE(pthread_rwlock_rdlock(&rw));
	SHOWE(pthread_rwlock_rdlock(&rw));
	others("read twice");
	SHOWE(pthread_rwlock_unlock(&rw));
	others("read once");
	SHOWE(pthread_rwlock_unlock(&rw));
	SHOWE(pthread_rwlock_wrlock(&rw));
	SHOWE(pthread_rwlock_wrlock(&rw));
	SHOWE(pthread_rwlock_rdlock(&rw));
	others("written");
	SHOWE(pthread_rwlock_unlock(&rw));
	SHOWE(pthread_rwlock_destroy(&rw));

	pthread_rwlockattr_t a;
	int v;
	OK(pthread_rwlockattr_init(&a));
	OK(pthread_rwlockattr_getpshared(&a, &v));
	printf("shared %d\n", v);
	OK(pthread_rwlockattr_getkind_np(&a, &v));
	printf("kind %d\n", v);
	SHOWE(pthread_rwlockattr_setpshared(&a, 77));
	SHOWE(pthread_rwlockattr_setkind_np(&a, 77));
	SHOWE(pthread_rwlockattr_setpshared(&a, PTHREAD_PROCESS_SHARED));
	SHOWE(pthread_rwlockattr_setpshared(&a, PTHREAD_PROCESS_PRIVATE));
	SHOWE(pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP));
	pthread_rwlock_t fair;
	OK(pthread_rwlock_init(&fair, &a));
	OK(pthread_rwlockattr_destroy(&a));

	// A waiting writer keeps new readers out.
	OK(pthread_rwlock_rdlock(&fair));
	pthread_t w = start(write_once, &fair);
	int r;
	while ((r = pthread_rwlock_tryrdlock(&fair)) == 0) {
		OK(pthread_rwlock_unlock(&fair));
		sched_yield();
	}
	printf("reader behind a writer: %s\n", errname(r));
	OK(pthread_rwlock_unlock(&fair));
	finish(w);
	printf("afterwards: %s\n", errname((intptr_t)finish(start(try_read, &fair))));
	SHOWE(pthread_rwlock_destroy(&fair));
	return 0;
}
