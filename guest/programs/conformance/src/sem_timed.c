// sem_timedwait and sem_clockwait: time-outs on both clocks, posts in time, refused arguments; EINTR.
#include "conformance.h"

#include <semaphore.h>

static sem_t s;
static atomic_int returned, handled;

static void handler(int sig)
{
	(void)sig;
	handled++;
}

static void *in_time(void *arg)
{
	clockid_t c = (intptr_t)arg;
	struct timespec t = after(c, 100 * SEC);
	int r = sem_clockwait(&s, c, &t);
	return (void *)(intptr_t)(r == 0 ? 0 : errno);
}

static void *interrupted(void *arg)
{
	(void)arg;
	int r = sem_wait(&s);
	int e = r == 0 ? 0 : errno;
	returned = 1;
	return (void *)(intptr_t)e;
}

int main(void)
{
	CHECK(sem_init(&s, 0, 0) == 0);
	struct timespec t = after(CLOCK_REALTIME, 2 * MSEC);
	SHOW(sem_timedwait(&s, &t));
	CHECK(now(CLOCK_REALTIME) >= to_ns(t));
	SHOW(sem_clockwait(&s, CLOCK_REALTIME, &t));
	t = after(CLOCK_MONOTONIC, 2 * MSEC);
	SHOW(sem_clockwait(&s, CLOCK_MONOTONIC, &t));
	CHECK(now(CLOCK_MONOTONIC) >= to_ns(t));
	SHOW(sem_clockwait(&s, CLOCK_PROCESS_CPUTIME_ID, &t));
	t.tv_nsec = SEC;
	SHOW(sem_timedwait(&s, &t));
	SHOW(sem_post(&s));
	t = after(CLOCK_REALTIME, 0);
	SHOW(sem_timedwait(&s, &t));

	pthread_t a = start(in_time, (void *)CLOCK_REALTIME), b = start(in_time, (void *)CLOCK_MONOTONIC);
	nap();
	CHECK(sem_post(&s) == 0);
	CHECK(sem_post(&s) == 0);
	printf("in time: %s %s\n", errname((intptr_t)finish(a)), errname((intptr_t)finish(b)));

	on_signal(SIGUSR1, handler, 0);
	a = start(interrupted, NULL);
	while (!returned) {
		pthread_kill(a, SIGUSR1);
		nap();
	}
	printf("signalled without SA_RESTART: %s\n", errname((intptr_t)finish(a)));
	CHECK(handled > 0);

	// sem_wait is restarted by the kernel under SA_RESTART.
	on_signal(SIGUSR1, handler, SA_RESTART);
	returned = handled = 0;
	a = start(interrupted, NULL);
	while (handled < 3) {
		pthread_kill(a, SIGUSR1);
		nap();
	}
	CHECK(!returned);
	CHECK(sem_post(&s) == 0);
	printf("signalled with SA_RESTART: %s\n", errname((intptr_t)finish(a)));
	return 0;
}
