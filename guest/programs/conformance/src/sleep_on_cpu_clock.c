// clock_nanosleep on processor-time clocks: other threads' time ends it, remaining time, own and other processes, errors.
#include "conformance.h"

static atomic_bool over;
static volatile unsigned long work;

static void *burn(void *arg)
{
	while (!over)
		for (int i = 0; i < 2000; i++)
			work++;
	return arg;
}

static int sleep_on(clockid_t c, int flags, struct timespec *t, struct timespec *left)
{
	return syscall(SYS_clock_nanosleep, c, flags, t, left);
}

static void handler(int sig) { (void)sig; }

static void *interrupt(void *arg)
{
	nap();
	for (int i = 0; i < 2000 && !over; i++) {
		CHECK(pthread_kill(*(pthread_t *)arg, SIGUSR1) == 0);
		nap();
	}
	return NULL;
}

static void own_process(void)
{
	const clockid_t c = CLOCK_PROCESS_CPUTIME_ID;
	pthread_t t = start(burn, NULL);
	struct timespec ts = {0, 3 * MSEC}, left = {7, 7};
	int64_t before = now(c);
	SHOW(sleep_on(c, 0, &ts, &left));
	CHECK(now(c) - before >= 3 * MSEC && left.tv_sec == 7);
	ts = after(c, 3 * MSEC);
	SHOW(sleep_on(c, TIMER_ABSTIME, &ts, &left));
	CHECK(now(c) >= to_ns(ts));
	ts = (struct timespec){0, 1};
	SHOW(sleep_on(c, TIMER_ABSTIME, &ts, NULL));
	clockid_t other;
	OK(pthread_getcpuclockid(t, &other));
	ts = after(other, 2 * MSEC);
	SHOW(sleep_on(other, TIMER_ABSTIME, &ts, NULL));
	CHECK(now(other) >= to_ns(ts));
	over = true;
	finish(t);
}

// Only the interrupting thread uses processor time, so only a signal
// ends these.
static void interrupted(void)
{
	over = false;
	pthread_t self = pthread_self(), t = start(interrupt, &self);
	struct timespec ts = {1000, 0}, left = {0, 0};
	SHOW(sleep_on(CLOCK_PROCESS_CPUTIME_ID, 0, &ts, &left));
	CHECK(left.tv_sec > 900 && left.tv_sec <= 1000);
	left.tv_sec = 5;
	SHOW(sleep_on(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &ts, &left));
	CHECK(left.tv_sec == 5);
	over = true;
	finish(t);
}

static void other_process(void)
{
	over = false;
	pid_t pid = fork();
	if (pid == 0) {
		burn(NULL);
		_exit(0);
	}
	clockid_t c;
	OK(clock_getcpuclockid(pid, &c));
	struct timespec ts = {0, 3 * MSEC};
	int64_t before = now(c);
	SHOW(sleep_on(c, 0, &ts, NULL));
	CHECK(now(c) - before >= 3 * MSEC);
	kill(pid, SIGKILL);
	printf("%s\n", status_text(wait_for(pid)));
	SHOWE(clock_getcpuclockid(pid, &c));
}

static void errors(void)
{
	struct timespec ts = {0, 1}, bad = {0, SEC};
	clockid_t self;
	OK(pthread_getcpuclockid(pthread_self(), &self));
	SHOW(sleep_on(self, 0, &ts, NULL));
	SHOW(sleep_on(CLOCK_THREAD_CPUTIME_ID, 0, &ts, NULL));
	SHOW(sleep_on(CLOCK_MONOTONIC_RAW, 0, &ts, NULL));
	SHOW(sleep_on(CLOCK_MONOTONIC_COARSE, 0, &ts, NULL));
	SHOW(sleep_on(CLOCK_REALTIME_COARSE, 0, &bad, NULL));
	SHOW(sleep_on(CLOCK_BOOTTIME, 0, &ts, NULL));
	SHOW(sleep_on(CLOCK_TAI, 0, &ts, NULL));
	SHOW(sleep_on(99, 0, &ts, NULL));
	SHOW(sleep_on(99, 0, NULL, NULL));
	SHOW(sleep_on(CLOCK_PROCESS_CPUTIME_ID, 0, &bad, NULL));
	SHOW(sleep_on(CLOCK_PROCESS_CPUTIME_ID, 0, NULL, NULL));
	SHOWE(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &ts, NULL));
	// The clock of a process without such an id, and of init's only thread.
	clockid_t nobody = ~(1 << 27) * 8 | 2, init_thread = ~1 * 8 | 6;
	SHOW(sleep_on(nobody, 0, &ts, NULL));
	SHOW(sleep_on(init_thread, 0, &ts, NULL));
	SHOW(syscall(SYS_clock_gettime, init_thread, &ts));
	struct timespec res;
	SHOW(syscall(SYS_clock_getres, CLOCK_PROCESS_CPUTIME_ID, &res));
	printf("resolution %ld\n", res.tv_nsec);
}

int main(void)
{
	on_signal(SIGUSR1, handler, SA_RESTART);
	own_process();
	interrupted();
	other_process();
	errors();
	return 0;
}
