// times, getrusage, clock and CPU-time clocks: monotone, consistent, threads and waited-for children counted.
#include "conformance.h"

#include <sys/time.h>
#include <sys/times.h>

static volatile unsigned long work;

static void burn(int64_t ns)
{
	int64_t until = now(CLOCK_THREAD_CPUTIME_ID) + ns;
	do
		for (int i = 0; i < 20000; i++)
			work++;
	while (now(CLOCK_THREAD_CPUTIME_ID) < until);
}

static int64_t used(int who)
{
	struct rusage r;
	CHECK(getrusage(who, &r) == 0);
	return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * SEC + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000L;
}

static void *burner(void *arg)
{
	burn(4 * MSEC);
	CHECK(used(RUSAGE_THREAD) >= 0);
	return arg;
}

int main(void)
{
	struct tms t;
	CHECK(times(&t) != (clock_t)-1);
	printf("children at first: %ld %ld\n", (long)t.tms_cutime, (long)t.tms_cstime);
	int64_t thread0 = now(CLOCK_THREAD_CPUTIME_ID), process0 = now(CLOCK_PROCESS_CPUTIME_ID);
	int64_t self0 = used(RUSAGE_SELF);
	clock_t clock0 = clock();
	pthread_t p = start(burner, NULL);
	finish(p);
	// The other thread's time counts for the process, not for this thread.
	CHECK(now(CLOCK_PROCESS_CPUTIME_ID) - process0 >= 4 * MSEC);
	CHECK(now(CLOCK_THREAD_CPUTIME_ID) - thread0 < now(CLOCK_PROCESS_CPUTIME_ID) - process0);
	CHECK(used(RUSAGE_SELF) >= self0 && clock() >= clock0);
	printf("threads counted\n");
	burn(3 * MSEC);
	CHECK(now(CLOCK_THREAD_CPUTIME_ID) - thread0 >= 3 * MSEC);
	// Sleeping uses no time.
	thread0 = now(CLOCK_THREAD_CPUTIME_ID);
	int64_t real0 = now(CLOCK_MONOTONIC);
	struct timespec ts = {0, 5 * MSEC};
	CHECK(nanosleep(&ts, NULL) == 0);
	CHECK(now(CLOCK_MONOTONIC) - real0 >= 5 * MSEC);
	CHECK(now(CLOCK_THREAD_CPUTIME_ID) - thread0 < 5 * MSEC);
	printf("sleep is free\n");

	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(used(RUSAGE_CHILDREN) == 0);
		CHECK(now(CLOCK_PROCESS_CPUTIME_ID) < now(CLOCK_MONOTONIC));
		burn(5 * MSEC);
		_exit(0);
	}
	siginfo_t si;
	CHECK(waitid(P_PID, pid, &si, WEXITED | WNOWAIT) == 0);
	int64_t before = used(RUSAGE_CHILDREN);
	clockid_t c;
	CHECK(clock_getcpuclockid(getpid(), &c) == 0 && now(c) > 0);
	CHECK(wait_for(pid) == 0);
	CHECK(before == 0 && used(RUSAGE_CHILDREN) > 0);
	printf("child counted once it is waited for\n");
	struct rusage r;
	CHECK(getrusage(RUSAGE_SELF, &r) == 0 && r.ru_maxrss > 0 && r.ru_minflt >= 0);
	SHOW(getrusage(77, &r));
	SHOWE(clock_getcpuclockid(999999999, &c));
	clock_t last = times(&t);
	for (int i = 0; i < 100; i++) {
		clock_t n = times(&t);
		CHECK(n >= last);
		last = n;
	}
	return 0;
}
