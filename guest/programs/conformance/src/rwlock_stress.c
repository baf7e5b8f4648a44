// Read-write lock under contention of every kind: readers never see a torn pair, writers never lose an update.
#include "conformance.h"

static pthread_rwlock_t rw;
static int a, b;
static atomic_int torn;

static void *writer(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++) {
		OK(pthread_rwlock_wrlock(&rw));
		a++;
		if (i % 10 == 0)
			sched_yield();
		b++;
		OK(pthread_rwlock_unlock(&rw));
	}
	return NULL;
}

static void *reader(void *arg)
{
	(void)arg;
	for (int i = 0; i < 200; i++) {
		OK(pthread_rwlock_rdlock(&rw));
		if (a != b)
			torn++;
		OK(pthread_rwlock_unlock(&rw));
	}
	return NULL;
}

int main(void)
{
	static const int kinds[] = {PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NP,
				    PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};
	for (int k = 0; k < LEN(kinds); k++) {
		pthread_rwlockattr_t attr;
		OK(pthread_rwlockattr_init(&attr));
		OK(pthread_rwlockattr_setkind_np(&attr, kinds[k]));
		OK(pthread_rwlock_init(&rw, &attr));
		a = b = 0;
		pthread_t t[6];
		for (int i = 0; i < LEN(t); i++)
			t[i] = start(i < 2 ? writer : reader, NULL);
		for (int i = 0; i < LEN(t); i++)
			finish(t[i]);
		printf("kind %d: a %d b %d torn %d\n", kinds[k], a, b, torn);
		OK(pthread_rwlock_destroy(&rw));
	}
	return 0;
}
