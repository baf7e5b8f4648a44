// Timers whose signals have no effect: an interval of a nanosecond costs nothing while the signal is ignored, blocked or pending.
#include "conformance.h"

#include <sys/time.h>
#include <sys/timerfd.h>

static volatile sig_atomic_t heard;

static void count(int sig)
{
	(void)sig;
	heard++;
}

static timer_t make(int sig)
{
	timer_t t;
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig, .sigev_value.sival_int = 7};
	CHECK(timer_create(CLOCK_MONOTONIC, &e, &t) == 0);
	return t;
}

static void arm(timer_t t, long ns)
{
	struct itimerspec s = {from_ns(ns), from_ns(ns)};
	CHECK(timer_settime(t, 0, &s, NULL) == 0);
}

static void left(const char *what, timer_t t, long most)
{
	struct itimerspec s;
	CHECK(timer_gettime(t, &s) == 0);
	printf("%s: armed %d, interval %ld\n", what, to_ns(s.it_value) > 0 && to_ns(s.it_value) <= most, to_ns(s.it_interval));
}

static void ignored(void)
{
	signal(SIGUSR1, SIG_IGN);
	timer_t t = make(SIGUSR1);
	arm(t, 1);
	nap();
	left("ignored", t, 1);
	// Armed again, its signal is delivered.
	arm(t, MSEC);
	on_signal(SIGUSR1, count, 0);
	while (heard == 0)
		nap();
	printf("heard\n");
	CHECK(timer_delete(t) == 0);

	heard = 0;
	signal(SIGUSR1, SIG_IGN);
	t = make(SIGUSR1);
	arm(t, MSEC / 10);
	nap();
	on_signal(SIGUSR1, count, 0);
	while (heard == 0)
		nap();
	printf("heard without being set anew\n");
	CHECK(timer_delete(t) == 0);

	t = make(SIGCHLD); // ignored by default
	arm(t, 1);
	nap();
	left("ignored by default", t, 1);
	CHECK(timer_delete(t) == 0);
}

static void pending(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	timer_t t = make(SIGUSR2);
	arm(t, 1);
	nap();
	left("pending", t, 1);
	SHOW(timer_getoverrun(t));
	siginfo_t i;
	SHOW(sigwaitinfo(&set, &i) == SIGUSR2);
	printf("code SI_TIMER %d, value %d, overrun %d, the same %d\n", i.si_code == SI_TIMER, i.si_value.sival_int,
	       i.si_overrun > 10000, i.si_overrun == timer_getoverrun(t));
	CHECK(timer_delete(t) == 0);
	struct timespec none = {0};
	while (sigtimedwait(&set, NULL, &none) > 0)
		;

	// One expiration: no overrun.
	t = make(SIGUSR2);
	struct itimerspec s = {.it_value = {0, 1}};
	CHECK(timer_settime(t, 0, &s, NULL) == 0);
	nap();
	CHECK(timer_gettime(t, &s) == 0);
	printf("once: %ld\n", to_ns(s.it_value));
	SHOW(sigwaitinfo(&set, &i) == SIGUSR2);
	printf("overrun %d\n", i.si_overrun);
	CHECK(timer_delete(t) == 0);

	// Ignoring the signal discards the pending one, and the timer's next.
	t = make(SIGUSR2);
	arm(t, 1);
	nap();
	signal(SIGUSR2, SIG_IGN);
	sigset_t p;
	nap();
	CHECK(timer_delete(t) == 0);
	CHECK(sigpending(&p) == 0);
	signal(SIGUSR2, SIG_DFL);
	while (sigtimedwait(&set, NULL, &none) > 0)
		;
}

static void interval_timer(void)
{
	signal(SIGALRM, SIG_IGN);
	struct itimerval v = {{0, 1}, {0, 1}};
	CHECK(setitimer(ITIMER_REAL, &v, NULL) == 0);
	nap();
	CHECK(getitimer(ITIMER_REAL, &v) == 0);
	printf("ignored alarm: %ld, interval %ld\n", v.it_value.tv_usec, v.it_interval.tv_usec);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	signal(SIGALRM, SIG_DFL);
	v = (struct itimerval){{0, 1}, {0, 1}};
	CHECK(setitimer(ITIMER_REAL, &v, NULL) == 0);
	nap();
	for (int k = 0; k < 3; k++) {
		siginfo_t i;
		SHOW(sigwaitinfo(&set, &i) == SIGALRM);
	}
	v = (struct itimerval){{0}, {0}};
	CHECK(setitimer(ITIMER_REAL, &v, NULL) == 0);
}

static void descriptor(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec s = {{0, 1}, {0, 1}};
	CHECK(timerfd_settime(fd, 0, &s, NULL) == 0);
	nap();
	uint64_t n;
	CHECK(read(fd, &n, 8) == 8);
	printf("timerfd: %d\n", n > 10000);
	close(fd);
}

int main(void)
{
	ignored();
	pending();
	interval_timer();
	descriptor();
	return 0;
}
