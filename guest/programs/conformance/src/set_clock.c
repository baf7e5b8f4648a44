// Setting the clock: clock_settime, settimeofday, adjtimex; waits for a time on it, and waits for a period.
// native: no (it would set the host's clock)
// root: yes
#include "conformance.h"

#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>

#define HOUR (3600 * SEC)

static void set(int64_t ns)
{
	struct timespec t = from_ns(ns);
	CHECK(clock_settime(CLOCK_REALTIME, &t) == 0);
}

// near reports whether a clock shows a time, or a little more.
static bool near(clockid_t c, int64_t ns) { return now(c) >= ns && now(c) < ns + SEC; }

static void steps(void)
{
	int64_t start = now(CLOCK_REALTIME), up = now(CLOCK_MONOTONIC);
	set(start + HOUR);
	printf("forward: %d, others stay: %d\n", near(CLOCK_REALTIME, start + HOUR), near(CLOCK_MONOTONIC, up) && near(CLOCK_BOOTTIME, up));
	printf("coarse %d, TAI %d, time %d\n", near(CLOCK_REALTIME_COARSE, start + HOUR - 10 * MSEC), near(CLOCK_TAI, start + HOUR),
	       time(NULL) - (start + HOUR) / SEC <= 1);
	set(start);
	printf("back: %d\n", near(CLOCK_REALTIME, start));
	struct timeval v = {start / SEC + 7200, 5};
	SHOW(syscall(SYS_settimeofday, &v, NULL));
	printf("settimeofday: %d\n", near(CLOCK_REALTIME, (start / SEC + 7200) * SEC));
	write_file("file", "x");
	struct stat s;
	CHECK(stat("file", &s) == 0);
	printf("files too: %d\n", to_ns(s.st_mtim) >= start + 2 * HOUR - SEC);
	set(start);
}

static void refused(void)
{
	struct timespec t = {0}, bad = {1, 1000000000};
	struct timeval v = {.tv_usec = 2000000};
	SHOW(clock_settime(CLOCK_MONOTONIC, &t));
	SHOW(clock_settime(77, &t));
	SHOW(clock_settime(CLOCK_REALTIME, &bad));
	SHOW(syscall(SYS_clock_settime, CLOCK_REALTIME, NULL));
	SHOW(clock_settime(CLOCK_REALTIME, &t)); // less than the monotonic clock
	SHOW(settimeofday(&v, NULL));
	pid_t p = fork();
	CHECK(p >= 0);
	if (p == 0) {
		CHECK(setresuid(1000, 1000, 1000) == 0);
		clock_gettime(CLOCK_REALTIME, &t);
		SHOW(clock_settime(CLOCK_REALTIME, &t));
		gettimeofday(&v, NULL);
		SHOW(settimeofday(&v, NULL));
		struct timex x = {.modes = ADJ_STATUS};
		SHOW(adjtimex(&x));
		x.modes = 0;
		SHOW(adjtimex(&x));
		_exit(0);
	}
	CHECK(wait_for(p) == 0);
}

static int64_t begin;

static void *sleeper(void *arg)
{
	struct timespec t = from_ns(begin + HOUR);
	sigset_t ours; // so that the timer's signal, due at the same time, goes to the first thread
	CHECK(sigemptyset(&ours) == 0 && sigaddset(&ours, SIGUSR1) == 0);
	OK(pthread_sigmask(SIG_BLOCK, &ours, NULL));
	OK(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL));
	printf("slept until then\n");
	return arg;
}

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void *waiter(void *arg)
{
	struct timespec t = from_ns(begin + HOUR + SEC);
	OK(pthread_mutex_lock(&mu));
	printf("pthread_cond_timedwait: %s\n", errname(pthread_cond_timedwait(&cond, &mu, &t)));
	OK(pthread_mutex_unlock(&mu));
	return arg;
}

static void *relative(void *arg)
{
	struct timespec t = {0, 50 * MSEC};
	int64_t from = now(CLOCK_MONOTONIC);
	OK(clock_nanosleep(CLOCK_REALTIME, 0, &t, NULL));
	int64_t took = now(CLOCK_MONOTONIC) - from;
	printf("a relative sleep took what it takes: %d\n", took >= 50 * MSEC && took < SEC);
	return arg;
}

static atomic_int rings;

static void ring(int sig)
{
	(void)sig;
	rings++;
}

static void waits(void)
{
	begin = now(CLOCK_REALTIME);
	int64_t up = now(CLOCK_MONOTONIC);
	on_signal(SIGUSR1, ring, SA_RESTART);
	struct itimerspec s = {{0}, from_ns(begin + HOUR)};
	int fd = timerfd_create(CLOCK_REALTIME, 0), cancelled = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
	CHECK(timerfd_settime(fd, TFD_TIMER_ABSTIME, &s, NULL) == 0);
	CHECK(timerfd_settime(cancelled, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &s, NULL) == 0);
	timer_t timer;
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	CHECK(timer_create(CLOCK_REALTIME, &e, &timer) == 0 && timer_settime(timer, TIMER_ABSTIME, &s, NULL) == 0);
	pthread_t r = start(relative, NULL);
	nap();
	set(begin + HOUR - 100 * SEC);
	finish(r);
	uint64_t n;
	SHOW(read(cancelled, &n, 8));
	SHOW(read(cancelled, &n, 8));
	CHECK(timer_gettime(timer, &s) == 0);
	printf("left: %d\n", to_ns(s.it_value) > 98 * SEC && to_ns(s.it_value) <= 100 * SEC);
	CHECK(timerfd_gettime(fd, &s) == 0);
	printf("left: %d\n", to_ns(s.it_value) > 98 * SEC && to_ns(s.it_value) <= 100 * SEC);
	printf("rings %d\n", rings);
	pthread_t a = start(sleeper, NULL);
	nap();
	set(begin + HOUR + 1);
	finish(a);
	SHOW(read(fd, &n, 8));
	while (rings == 0)
		nap();
	printf("rings %d\n", rings);
	pthread_t w = start(waiter, NULL);
	nap();
	set(begin + HOUR + SEC);
	finish(w);
	printf("all in a moment: %d\n", now(CLOCK_MONOTONIC) - up < 5 * SEC);
}

static void show(const char *what, int r, const struct timex *x)
{
	printf("%s: %d, offset %ld freq %ld maxerror %ld esterror %ld status %x constant %ld precision %ld tolerance %ld tick %ld tai %d\n",
	       what, r, x->offset, x->freq, x->maxerror, x->esterror, x->status, x->constant, x->precision, x->tolerance, x->tick, x->tai);
}

static void discipline(void)
{
	struct timex x = {0};
	int r = adjtimex(&x);
	show("at first", r, &x);
	printf("the time: %d\n", near(CLOCK_REALTIME, x.time.tv_sec * SEC + x.time.tv_usec * 1000));
	x = (struct timex){.modes = ADJ_STATUS | ADJ_MAXERROR | ADJ_ESTERROR | ADJ_TIMECONST | ADJ_NANO, .maxerror = 5, .esterror = 6, .constant = 3};
	r = adjtimex(&x);
	show("set", r, &x);
	printf("nanoseconds: %d\n", near(CLOCK_REALTIME, x.time.tv_sec * SEC + x.time.tv_usec));
	x = (struct timex){.modes = ADJ_TAI, .constant = 37};
	SHOW(clock_adjtime(CLOCK_REALTIME, &x));
	printf("TAI: %d\n", near(CLOCK_TAI, now(CLOCK_REALTIME) + 37 * SEC - MSEC));
	int64_t was = now(CLOCK_REALTIME);
	x = (struct timex){.modes = ADJ_SETOFFSET | ADJ_NANO, .time = {-3, 500000000}};
	SHOW(clock_adjtime(CLOCK_REALTIME, &x));
	printf("offset: %d\n", near(CLOCK_REALTIME, was - 5 * SEC / 2));
	x = (struct timex){.modes = ADJ_FREQUENCY, .freq = 100};
	SHOW(adjtimex(&x)); // the rate of virtual time does not change
	x = (struct timex){.modes = ADJ_FREQUENCY | ADJ_TICK, .tick = 10000};
	SHOW(adjtimex(&x));
	x.tick = 1;
	SHOW(adjtimex(&x));
	SHOW(clock_adjtime(CLOCK_MONOTONIC, &x));
	SHOW(clock_adjtime(77, &x));
	SHOW(syscall(SYS_adjtimex, NULL));
	struct timeval old;
	SHOW(adjtime(NULL, &old));
}

int main(void)
{
	steps();
	refused();
	waits();
	discipline();
	return 0;
}
