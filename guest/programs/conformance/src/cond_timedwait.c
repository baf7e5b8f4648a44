// pthread_cond_timedwait and clockwait: time-outs on each clock, past times, refused arguments, attributes.
#include "conformance.h"

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

static void wait_out(const char *name, pthread_cond_t *c, clockid_t clock, int64_t ns)
{
	struct timespec t = after(clock, ns);
	int r;
	OK(pthread_mutex_lock(&mu));
	do
		r = pthread_cond_timedwait(c, &mu, &t);
	while (r == 0);
	CHECK(now(clock) >= to_ns(t));
	OK(pthread_mutex_unlock(&mu));
	printf("%s: %s\n", name, errname(r));
}

static void clock_out(const char *name, pthread_cond_t *c, clockid_t clock)
{
	struct timespec t = after(clock, 2 * MSEC);
	int r;
	OK(pthread_mutex_lock(&mu));
	do
		r = pthread_cond_clockwait(c, &mu, clock, &t);
	while (r == 0);
	OK(pthread_mutex_unlock(&mu));
	printf("%s: %s\n", name, errname(r));
}

int main(void)
{
	pthread_cond_t real = PTHREAD_COND_INITIALIZER, mono;
	pthread_condattr_t a;
	clockid_t clock;
	int shared;
	OK(pthread_condattr_init(&a));
	OK(pthread_condattr_getclock(&a, &clock));
	OK(pthread_condattr_getpshared(&a, &shared));
	printf("default clock %d shared %d\n", (int)clock, shared);
	SHOWE(pthread_condattr_setclock(&a, CLOCK_PROCESS_CPUTIME_ID));
	SHOWE(pthread_condattr_setclock(&a, CLOCK_MONOTONIC));
	SHOWE(pthread_condattr_setpshared(&a, 77));
	OK(pthread_condattr_getclock(&a, &clock));
	printf("clock %d\n", (int)clock);
	OK(pthread_cond_init(&mono, &a));
	OK(pthread_condattr_destroy(&a));

	wait_out("realtime", &real, CLOCK_REALTIME, 2 * MSEC);
	wait_out("monotonic", &mono, CLOCK_MONOTONIC, 2 * MSEC);
	wait_out("realtime, past", &real, CLOCK_REALTIME, -SEC);
	wait_out("monotonic, past", &mono, CLOCK_MONOTONIC, -1);
	clock_out("clockwait realtime on monotonic", &mono, CLOCK_REALTIME);
	clock_out("clockwait monotonic on realtime", &real, CLOCK_MONOTONIC);

	OK(pthread_mutex_lock(&mu));
	struct timespec wrong = {1, SEC};
	SHOWE(pthread_cond_timedwait(&real, &mu, &wrong));
	SHOWE(pthread_cond_clockwait(&real, &mu, CLOCK_PROCESS_CPUTIME_ID, &wrong));
	OK(pthread_mutex_unlock(&mu));
	SHOWE(pthread_cond_destroy(&mono));
	return 0;
}
