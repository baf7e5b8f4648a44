// alarm, ualarm and setitimer: real, virtual and profiling timers, intervals, time left, replacement, refusals.
#include "conformance.h"

#include <sys/time.h>

static volatile sig_atomic_t alrm, vt, prof;

static void handler(int sig)
{
	if (sig == SIGALRM)
		alrm++;
	else if (sig == SIGVTALRM)
		vt++;
	else
		prof++;
}

static volatile unsigned long work;

int main(void)
{
	struct itimerval it = {0}, old;
	on_signal(SIGALRM, handler, 0);
	on_signal(SIGVTALRM, handler, SA_RESTART);
	on_signal(SIGPROF, handler, SA_RESTART);
	SHOW(alarm(100));
	unsigned left = alarm(50);
	printf("left close to 100: %d\n", left >= 99 && left <= 100);
	left = alarm(0);
	printf("left close to 50: %d\n", left >= 49 && left <= 50);
	SHOW(alarm(0));

	it.it_value.tv_usec = 2000;
	SHOW(setitimer(ITIMER_REAL, &it, NULL));
	while (alrm == 0)
		nap();
	printf("alarms %d\n", (int)alrm);
	CHECK(getitimer(ITIMER_REAL, &old) == 0);
	printf("disarmed %d\n", old.it_value.tv_sec == 0 && old.it_value.tv_usec == 0);
	it.it_interval.tv_usec = 1000;
	SHOW(setitimer(ITIMER_REAL, &it, NULL));
	while (alrm < 4)
		nap();
	it = (struct itimerval){0};
	SHOW(setitimer(ITIMER_REAL, &it, &old));
	printf("interval %ld\n", (long)old.it_interval.tv_usec);
	CHECK(old.it_value.tv_usec > 0 || alrm >= 4);

	// Virtual and profiling timers run while the process does.
	it.it_value.tv_usec = 4000;
	SHOW(setitimer(ITIMER_VIRTUAL, &it, NULL));
	SHOW(setitimer(ITIMER_PROF, &it, NULL));
	while (vt == 0 || prof == 0)
		work++;
	printf("virtual %d, profiling %d\n", (int)vt, (int)prof);

	// alarm and ITIMER_REAL are one timer.
	it.it_value = (struct timeval){30, 0};
	CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
	left = alarm(0);
	printf("alarm sees the itimer: %d\n", left >= 29 && left <= 30);
	it.it_value.tv_usec = 1000000;
	SHOW(setitimer(ITIMER_REAL, &it, NULL));
	it.it_value = (struct timeval){-1, 0};
	SHOW(setitimer(ITIMER_REAL, &it, NULL));
	SHOW(setitimer(77, &it, NULL));
	SHOW(getitimer(77, &it));

	// A child does not inherit it; execve is not tried here.
	it.it_value = (struct timeval){100, 0};
	CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(getitimer(ITIMER_REAL, &old) == 0);
		_exit(old.it_value.tv_sec == 0 ? 0 : 1);
	}
	printf("child: %s\n", status_text(wait_for(pid)));
	// An alarm interrupts a sleep.
	ualarm(2000, 2000);
	struct timespec req = {100, 0}, rem;
	SHOW(nanosleep(&req, &rem));
	ualarm(0, 0);
	printf("remaining %d\n", rem.tv_sec >= 98 && rem.tv_sec <= 100);
	return 0;
}
