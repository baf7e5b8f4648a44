// timerfd: one shot, interval, absolute, on each clock, polling, counts, time left, re-arming, refusals.
#include "conformance.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

static int set(int fd, int64_t value, int64_t interval, int flags)
{
	struct itimerspec it = {.it_value = from_ns(value), .it_interval = from_ns(interval)};
	return timerfd_settime(fd, flags, &it, NULL);
}

int main(void)
{
	uint64_t n;
	struct itimerspec it, old;
	static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME};
	for (int i = 0; i < LEN(clocks); i++) {
		int fd = timerfd_create(clocks[i], 0);
		CHECK(fd >= 0);
		int64_t begin = now(clocks[i]);
		CHECK(set(fd, 2 * MSEC, 0, 0) == 0);
		CHECK(read(fd, &n, 8) == 8 && n == 1 && now(clocks[i]) - begin >= 2 * MSEC);
		int64_t at = now(clocks[i]) + 2 * MSEC;
		CHECK(set(fd, at, 0, TFD_TIMER_ABSTIME) == 0);
		CHECK(read(fd, &n, 8) == 8 && n == 1 && now(clocks[i]) >= at);
		CHECK(set(fd, 1, 0, TFD_TIMER_ABSTIME) == 0); // in the past
		CHECK(read(fd, &n, 8) == 8);
		printf("clock %d: %lu\n", (int)clocks[i], n);
		CHECK(close(fd) == 0);
	}
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	SHOW(fcntl(fd, F_GETFD));
	SHOW(read(fd, &n, 8)); // not armed
	SHOW(set(fd, MSEC, MSEC, 0));
	SHOW(read(fd, &n, 4));
	struct timespec ts = {0, 6 * MSEC};
	CHECK(nanosleep(&ts, NULL) == 0);
	CHECK(read(fd, &n, 8) == 8 && n >= 5);
	printf("several expirations\n");
	CHECK(timerfd_gettime(fd, &it) == 0);
	printf("interval %ld, left within it %d\n", it.it_interval.tv_nsec, it.it_value.tv_nsec <= MSEC && it.it_value.tv_sec == 0);
	memset(&it, 0, sizeof it);
	SHOW(timerfd_settime(fd, 0, &it, &old));
	printf("old interval %ld\n", old.it_interval.tv_nsec);
	// Disarming clears expirations that were not read.
	SHOW(read(fd, &n, 8));
	CHECK(timerfd_gettime(fd, &it) == 0);
	printf("disarmed %d\n", it.it_value.tv_sec == 0 && it.it_value.tv_nsec == 0);

	struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT};
	SHOW(poll(&p, 1, 0));
	CHECK(set(fd, MSEC, 0, 0) == 0);
	SHOW(poll(&p, 1, -1));
	printf("in %d out %d\n", (p.revents & POLLIN) != 0, (p.revents & POLLOUT) != 0);
	SHOW(read(fd, &n, 8));
	SHOW(poll(&p, 1, 0));
	int ep = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) == 0 && set(fd, MSEC / 2, MSEC / 2, 0) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(epoll_wait(ep, &ev, 1, -1) == 1 && read(fd, &n, 8) == 8 && n >= 1);
	printf("edges\n");

	// Two timers expire in the order of their times.
	int a = timerfd_create(CLOCK_MONOTONIC, 0), b = timerfd_create(CLOCK_MONOTONIC, 0);
	int64_t base = now(CLOCK_MONOTONIC);
	CHECK(set(b, base + 3 * MSEC, 0, TFD_TIMER_ABSTIME) == 0 && set(a, base + 2 * MSEC, 0, TFD_TIMER_ABSTIME) == 0);
	CHECK(read(b, &n, 8) == 8);
	p.fd = a;
	SHOW(poll(&p, 1, 0));

	SHOW(timerfd_create(77, 0));
	SHOW(timerfd_create(CLOCK_MONOTONIC, 0x7777));
	SHOW(set(fd, MSEC, 0, 77));
	it.it_value.tv_nsec = SEC;
	SHOW(timerfd_settime(fd, 0, &it, NULL));
	SHOW(timerfd_settime(0x7777, 0, &it, NULL));
	SHOW(timerfd_settime(ep, 0, &old, NULL));
	SHOW(timerfd_gettime(ep, &old));
	SHOW(write(fd, &n, 8));
	return 0;
}
