// Read-write lock with time-outs: timedrdlock, timedwrlock, clockrdlock, clockwrlock.
#include "conformance.h"

static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;

static void *locker(void *arg)
{
	int kind = (intptr_t)arg;
	clockid_t c = kind >= 4 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
	struct timespec t = after(c, 2 * MSEC);
	int r = 0;
	switch (kind % 4) {
	case 0:
		r = pthread_rwlock_clockrdlock(&rw, c, &t);
		break;
	case 1:
		r = pthread_rwlock_clockwrlock(&rw, c, &t);
		break;
	case 2:
		t = after(CLOCK_REALTIME, 2 * MSEC);
		r = pthread_rwlock_timedrdlock(&rw, &t);
		break;
	case 3:
		t = after(CLOCK_REALTIME, 2 * MSEC);
		r = pthread_rwlock_timedwrlock(&rw, &t);
		break;
	}
	if (r == ETIMEDOUT && kind % 4 < 2)
		CHECK(now(c) >= to_ns(t));
	if (r == 0)
		OK(pthread_rwlock_unlock(&rw));
	return (void *)(intptr_t)r;
}

static void all(const char *when)
{
	for (int k = 0; k < 8; k++)
		printf("%s, form %d: %s\n", when, k, errname((intptr_t)finish(start(locker, (void *)(intptr_t)k))));
}

static void *late_reader(void *arg)
{
	(void)arg;
	struct timespec t = after(CLOCK_MONOTONIC, 100 * SEC);
	int r = pthread_rwlock_clockrdlock(&rw, CLOCK_MONOTONIC, &t);
	if (r == 0)
		OK(pthread_rwlock_unlock(&rw));
	return (void *)(intptr_t)r;
}

int main(void)
{
	all("free");
	OK(pthread_rwlock_rdlock(&rw));
	all("read-locked");
	OK(pthread_rwlock_unlock(&rw));
	OK(pthread_rwlock_wrlock(&rw));
	all("write-locked");
	struct timespec wrong = {1, SEC};
	SHOWE(pthread_rwlock_timedrdlock(&rw, &wrong));
	SHOWE(pthread_rwlock_timedwrlock(&rw, &wrong));
	SHOWE(pthread_rwlock_clockrdlock(&rw, CLOCK_PROCESS_CPUTIME_ID, &wrong));
	SHOWE(pthread_rwlock_clockwrlock(&rw, CLOCK_PROCESS_CPUTIME_ID, &wrong));
	pthread_t t[3];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(late_reader, NULL);
	nap();
	OK(pthread_rwlock_unlock(&rw));
	for (int i = 0; i < LEN(t); i++)
		printf("late reader: %s\n", errname((intptr_t)finish(t[i])));
	return 0;
}
