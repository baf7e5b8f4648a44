// POSIX timers with SIGEV_THREAD and SIGEV_THREAD_ID, and timers on CPU-time clocks.
// link: -lrt
#include "conformance.h"

static atomic_int notified, on_other_thread, signalled;
static pid_t target;

static void notify(union sigval v)
{
	if (gettid() != getpid())
		on_other_thread = 1;
	notified += v.sival_int;
}

static void handler(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	CHECK(gettid() == target);
	signalled += si->si_value.sival_int;
}

static atomic_int ready, stop;
static volatile unsigned long work;

static void *worker(void *arg)
{
	target = gettid();
	ready = 1;
	while (!stop)
		work++;
	return arg;
}

int main(void)
{
	timer_t t;
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = notify, .sigev_value.sival_int = 10};
	struct itimerspec it = {.it_value = {0, MSEC}}, off = {0};
	CHECK(timer_create(CLOCK_MONOTONIC, &ev, &t) == 0);
	CHECK(timer_settime(t, 0, &it, NULL) == 0);
	while (notified < 10)
		nap();
	printf("notified %d, on a thread of its own %d\n", notified, on_other_thread);
	it.it_interval = it.it_value;
	CHECK(timer_settime(t, 0, &it, NULL) == 0);
	while (notified < 40)
		nap();
	CHECK(timer_settime(t, 0, &off, NULL) == 0);
	CHECK(timer_delete(t) == 0);
	printf("interval notified again\n");

	on_siginfo(SIGRTMIN + 4, handler, SA_RESTART);
	pthread_t w = start(worker, NULL);
	while (!ready)
		nap();
	ev = (struct sigevent){.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 4, .sigev_value.sival_int = 3};
	ev._sigev_un._tid = target;
	CHECK(timer_create(CLOCK_MONOTONIC, &ev, &t) == 0);
	it.it_interval = (struct timespec){0, 0};
	for (int i = 1; i <= 4; i++) {
		CHECK(timer_settime(t, 0, &it, NULL) == 0);
		while (signalled < 3 * i)
			nap();
	}
	printf("signals reached their thread: %d\n", signalled);
	CHECK(timer_delete(t) == 0);

	// CPU time of the worker and of the process advances while it works.
	clockid_t clock;
	OK(pthread_getcpuclockid(w, &clock));
	signalled = 0;
	CHECK(timer_create(clock, &ev, &t) == 0);
	CHECK(timer_settime(t, 0, &it, NULL) == 0);
	while (signalled < 3)
		nap();
	CHECK(timer_delete(t) == 0);
	CHECK(timer_create(CLOCK_PROCESS_CPUTIME_ID, &ev, &t) == 0);
	CHECK(timer_settime(t, 0, &it, NULL) == 0);
	while (signalled < 6)
		nap();
	CHECK(timer_delete(t) == 0);
	printf("CPU-time timers: %d\n", signalled);
	stop = 1;
	finish(w);
	ev._sigev_un._tid = 999999999;
	SHOW(timer_create(CLOCK_MONOTONIC, &ev, &t));
	return 0;
}
