// POSIX timers with SIGEV_SIGNAL and SIGEV_NONE: one shot, interval, absolute, overruns, gettime, settime, refusals.
// link: -lrt
#include "conformance.h"

static volatile sig_atomic_t fired, value, overruns;

static void handler(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	fired++;
	value = si->si_value.sival_int;
	overruns += si->si_overrun;
}

static void await(int n)
{
	while (fired < n)
		nap();
}

int main(void)
{
	timer_t t, quiet;
	struct itimerspec it = {0}, old;
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 5};
	on_siginfo(SIGRTMIN, handler, SA_RESTART);
	static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME};
	for (int i = 0; i < LEN(clocks); i++) {
		fired = 0;
		CHECK(timer_create(clocks[i], &ev, &t) == 0);
		it.it_value = (struct timespec){0, MSEC};
		CHECK(timer_settime(t, 0, &it, NULL) == 0);
		await(1);
		it.it_value = after(clocks[i], MSEC);
		CHECK(timer_settime(t, TIMER_ABSTIME, &it, NULL) == 0);
		await(2);
		CHECK(now(clocks[i]) >= to_ns(it.it_value));
		it.it_value = (struct timespec){1, 0}; // in the past
		CHECK(timer_settime(t, TIMER_ABSTIME, &it, NULL) == 0);
		await(3);
		CHECK(timer_delete(t) == 0);
		printf("clock %d: fired %d, value %d\n", (int)clocks[i], (int)fired, (int)value);
	}

	// An interval whose signal is blocked for a while: one signal and overruns.
	fired = 0;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	CHECK(timer_create(CLOCK_MONOTONIC, &ev, &t) == 0);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	it.it_value = it.it_interval = (struct timespec){0, MSEC / 4};
	CHECK(timer_settime(t, 0, &it, NULL) == 0);
	struct timespec ts = {0, 5 * MSEC};
	CHECK(nanosleep(&ts, NULL) == 0);
	CHECK(timer_gettime(t, &old) == 0);
	printf("interval kept %d, time left within it %d\n", old.it_interval.tv_nsec == MSEC / 4,
	       old.it_value.tv_sec == 0 && old.it_value.tv_nsec <= MSEC / 4);
	siginfo_t si;
	CHECK(sigwaitinfo(&set, &si) == SIGRTMIN);
	CHECK(si.si_code == SI_TIMER && si.si_overrun >= 15 && timer_getoverrun(t) == si.si_overrun);
	printf("overruns counted\n");
	memset(&it, 0, sizeof it);
	SHOW(timer_settime(t, 0, &it, &old));
	SHOW(timer_gettime(t, &old));
	printf("disarmed %d\n", old.it_value.tv_sec == 0 && old.it_value.tv_nsec == 0);
	SHOW(timer_delete(t));
	SHOW(syscall(SYS_timer_delete, 12345));

	ev.sigev_notify = SIGEV_NONE;
	CHECK(timer_create(CLOCK_MONOTONIC, &ev, &quiet) == 0);
	it.it_value = (struct timespec){0, MSEC};
	CHECK(timer_settime(quiet, 0, &it, NULL) == 0);
	do
		CHECK(timer_gettime(quiet, &old) == 0);
	while (old.it_value.tv_nsec != 0);
	printf("silent timer ran out\n");
	SHOW(timer_delete(quiet));

	it.it_value.tv_nsec = SEC;
	CHECK(timer_create(CLOCK_MONOTONIC, NULL, &t) == 0); // SIGALRM by default
	SHOW(timer_settime(t, 0, &it, NULL));
	SHOW(timer_create(77, NULL, &quiet));
	ev = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 77};
	SHOW(timer_create(CLOCK_MONOTONIC, &ev, &quiet));
	ev.sigev_notify = 77;
	SHOW(timer_create(CLOCK_MONOTONIC, &ev, &quiet));
	on_siginfo(SIGALRM, handler, 0);
	fired = 0;
	it.it_value = (struct timespec){0, MSEC};
	CHECK(timer_settime(t, 0, &it, NULL) == 0);
	await(1);
	printf("SIGALRM by default\n");
	return 0;
}
