// Signals during FUTEX_WAIT: EINTR without SA_RESTART, restarted with it, relative time-outs kept over restarts.
#include "futex.h"

static atomic_uint word;
static atomic_int handled, returned;

static void handler(int sig)
{
	(void)sig;
	handled++;
}

static void *sleeper(void *arg)
{
	long r = futex(&word, FUTEX_WAIT_PRIVATE, 0, arg, NULL, 0);
	int e = r == 0 ? 0 : errno;
	returned = 1;
	return (void *)(intptr_t)e;
}

static int signalled(const struct timespec *t, int enough)
{
	handled = returned = 0;
	pthread_t p = start(sleeper, (void *)t);
	while (!returned && (enough == 0 || handled < enough)) {
		OK(pthread_kill(p, SIGUSR1));
		nap();
	}
	if (enough) {
		CHECK(!returned);
		while (futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0)
			sched_yield();
	}
	return (intptr_t)finish(p);
}

int main(void)
{
	struct timespec far = {100, 0}, near = {0, 4 * MSEC};
	on_signal(SIGUSR1, handler, 0);
	printf("no time-out: %s\n", errname(signalled(NULL, 0)));
	printf("with time-out: %s\n", errname(signalled(&far, 0)));
	on_signal(SIGUSR1, handler, SA_RESTART);
	printf("restarted: %s\n", errname(signalled(NULL, 5)));
	// With a time-out the call continues only after a signal without handler,
	// such as SIGCONT, and its deadline does not change.
	int64_t begin = now(CLOCK_MONOTONIC);
	returned = 0;
	pthread_t p = start(sleeper, &near);
	while (!returned) {
		OK(pthread_kill(p, SIGCONT));
		sched_yield();
	}
	printf("ignored signals: %s\n", errname((intptr_t)finish(p)));
	CHECK(now(CLOCK_MONOTONIC) - begin >= near.tv_nsec);
	return 0;
}
