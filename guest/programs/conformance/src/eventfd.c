// eventfd: sums, semaphore mode, full and empty, polling, between threads and processes, refused writes.
#include "conformance.h"

#include <poll.h>
#include <sys/eventfd.h>

static int sem, work;
static atomic_int taken;

static void *taker(void *arg)
{
	eventfd_t v;
	for (int i = 0; i < 25; i++) {
		CHECK(eventfd_read(sem, &v) == 0 && v == 1);
		taken++;
	}
	return arg;
}

static void *adder(void *arg)
{
	for (int i = 1; i <= 50; i++)
		CHECK(eventfd_write(work, i) == 0);
	return arg;
}

static void state(const char *what, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT};
	CHECK(poll(&p, 1, 0) >= 0);
	printf("%s:%s%s%s\n", what, p.revents & POLLIN ? " IN" : "", p.revents & POLLOUT ? " OUT" : "",
	       p.revents & POLLERR ? " ERR" : "");
}

int main(void)
{
	uint64_t v = 0;
	int fd = eventfd(3, EFD_NONBLOCK | EFD_CLOEXEC);
	SHOW(fcntl(fd, F_GETFD));
	state("three", fd);
	SHOW(read(fd, &v, 8));
	printf("value %lu\n", v);
	SHOW(read(fd, &v, 8));
	state("zero", fd);
	v = 5;
	SHOW(write(fd, &v, 8));
	SHOW(write(fd, &v, 8));
	SHOW(read(fd, &v, 7));
	SHOW(write(fd, &v, 7));
	SHOW(read(fd, &v, 8));
	printf("value %lu\n", v);
	v = UINT64_MAX;
	SHOW(write(fd, &v, 8));
	v = UINT64_MAX - 1;
	SHOW(write(fd, &v, 8));
	state("full", fd);
	v = 1;
	SHOW(write(fd, &v, 8));
	v = 0;
	SHOW(write(fd, &v, 8));
	SHOW(read(fd, &v, 8));
	printf("full value %d\n", v == UINT64_MAX - 1);
	SHOW(eventfd(0, 0x7777));

	// Semaphore mode gives one at a time.
	sem = eventfd(0, EFD_SEMAPHORE);
	pthread_t t[4];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(taker, NULL);
	CHECK(eventfd_write(sem, 60) == 0);
	nap();
	CHECK(eventfd_write(sem, 40) == 0);
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	printf("taken %d\n", taken);
	CHECK(fcntl(sem, F_SETFL, O_NONBLOCK) == 0);
	SHOW(read(sem, &v, 8));

	// No added value is lost.
	work = eventfd(0, 0);
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(adder, NULL);
	uint64_t sum = 0;
	while (sum < 4 * 1275) {
		CHECK(read(work, &v, 8) == 8 && v > 0);
		sum += v;
	}
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	printf("sum %lu\n", sum);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(eventfd_write(work, 77) == 0);
		_exit(0);
	}
	SHOW(read(work, &v, 8));
	printf("from the child %lu\n", v);
	CHECK(wait_for(pid) == 0);
	// A blocked writer continues when a reader makes room.
	CHECK(eventfd_write(work, UINT64_MAX - 1) == 0);
	t[0] = start(adder, NULL);
	nap();
	CHECK(read(work, &v, 8) == 8);
	for (sum = 0; sum < 1275; sum += v)
		CHECK(read(work, &v, 8) == 8);
	finish(t[0]);
	printf("sum %lu\n", sum);
	return 0;
}
