// Every clock: monotonic, consistent with related clocks, resolutions, gettimeofday and time; over threads; refusals.
#include "conformance.h"

#include <sys/time.h>

static const struct {
	const char *name;
	clockid_t id;
} clock_[] = {
	{"REALTIME", CLOCK_REALTIME},
	{"MONOTONIC", CLOCK_MONOTONIC},
	{"MONOTONIC_RAW", CLOCK_MONOTONIC_RAW},
	{"REALTIME_COARSE", CLOCK_REALTIME_COARSE},
	{"MONOTONIC_COARSE", CLOCK_MONOTONIC_COARSE},
	{"BOOTTIME", CLOCK_BOOTTIME},
	{"TAI", CLOCK_TAI},
	{"PROCESS_CPUTIME", CLOCK_PROCESS_CPUTIME_ID},
	{"THREAD_CPUTIME", CLOCK_THREAD_CPUTIME_ID},
};

static _Atomic(int64_t) last;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

static void *watcher(void *arg)
{
	for (int i = 0; i < 200; i++) {
		OK(pthread_mutex_lock(&mu));
		int64_t t = now(CLOCK_MONOTONIC);
		CHECK(t >= last);
		last = t;
		OK(pthread_mutex_unlock(&mu));
	}
	return arg;
}

int main(void)
{
	struct timespec t;
	for (int i = 0; i < LEN(clock_); i++) {
		CHECK(clock_getres(clock_[i].id, &t) == 0 && t.tv_sec == 0 && t.tv_nsec > 0 && t.tv_nsec <= 10 * MSEC);
		int64_t before = now(clock_[i].id);
		CHECK(before >= 0);
		for (int k = 0; k < 300; k++) {
			CHECK(clock_gettime(clock_[i].id, &t) == 0);
			CHECK(t.tv_nsec >= 0 && t.tv_nsec < SEC && to_ns(t) >= before);
			before = to_ns(t);
		}
		printf("%s: monotone\n", clock_[i].name);
	}
	// All of them advance.
	int64_t begin[LEN(clock_)];
	for (int i = 0; i < LEN(clock_); i++)
		begin[i] = now(clock_[i].id);
	volatile unsigned long work = 0;
	while (now(CLOCK_THREAD_CPUTIME_ID) - begin[8] < 6 * MSEC || now(CLOCK_MONOTONIC_COARSE) == begin[4] ||
	       now(CLOCK_REALTIME_COARSE) == begin[3])
		work++;
	for (int i = 0; i < LEN(clock_); i++)
		CHECK(now(clock_[i].id) > begin[i]);
	printf("all move\n");
	CHECK(now(CLOCK_MONOTONIC) - begin[1] >= now(CLOCK_THREAD_CPUTIME_ID) - begin[8] - MSEC);

	// A coarse clock is less than a tick or two late.
	int64_t coarse = now(CLOCK_MONOTONIC_COARSE), fine = now(CLOCK_MONOTONIC);
	CHECK(coarse <= fine);
	CHECK(now(CLOCK_REALTIME_COARSE) <= now(CLOCK_REALTIME));
	// The real time is after the year of this program and before the year 2100.
	int64_t real = now(CLOCK_REALTIME);
	CHECK(real > 1500000000 * SEC && real < 4100000000 * SEC);
	struct timeval tv;
	int64_t a = now(CLOCK_REALTIME);
	CHECK(gettimeofday(&tv, NULL) == 0);
	int64_t b = now(CLOCK_REALTIME), got = tv.tv_sec * SEC + tv.tv_usec * 1000L;
	CHECK(got >= a - 1000 && got <= b);
	time_t s = time(NULL), s2;
	CHECK(s >= a / SEC - 1 && s <= now(CLOCK_REALTIME) / SEC);
	CHECK(time(&s2) == s2 && s2 >= s);
	struct timespec u;
	CHECK(timespec_get(&u, TIME_UTC) == TIME_UTC && to_ns(u) >= b);
	printf("gettimeofday, time and timespec_get agree\n");
	CHECK(syscall(SYS_time, NULL) >= s && syscall(SYS_gettimeofday, &tv, NULL) == 0);
	CHECK(now(CLOCK_BOOTTIME) >= fine && now(CLOCK_MONOTONIC) >= fine);

	pthread_t w[4];
	for (int i = 0; i < LEN(w); i++)
		w[i] = start(watcher, NULL);
	for (int i = 0; i < LEN(w); i++)
		finish(w[i]);
	printf("monotone over threads\n");
	SHOW(clock_gettime(77, &t));
	SHOW(clock_getres(77, &t));
	SHOW(clock_getres(CLOCK_MONOTONIC, NULL));
	SHOW(clock_settime(CLOCK_MONOTONIC, &t));
	SHOW(clock_settime(77, &t));
	return 0;
}
