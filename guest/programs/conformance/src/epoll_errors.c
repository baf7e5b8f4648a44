// epoll calls that are refused, time-outs, nested epolls and circles of them, EPOLLEXCLUSIVE.
#include "conformance.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

static int ctl(int ep, int op, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.fd = fd};
	return epoll_ctl(ep, op, fd, &ev);
}

int main(void)
{
	struct epoll_event ev[4];
	int ep = epoll_create1(0), e = eventfd(0, 0), p[2];
	CHECK(ep >= 0 && e >= 0 && pipe(p) == 0);
	write_file("file", "");
	int file = open("file", O_RDONLY);
	SHOW(epoll_create1(0x7777));
	SHOW(epoll_create(0));
	SHOW(close(epoll_create(1)));
	SHOW(ctl(ep, EPOLL_CTL_ADD, e, EPOLLIN));
	SHOW(ctl(ep, EPOLL_CTL_ADD, e, EPOLLIN));
	SHOW(ctl(ep, EPOLL_CTL_MOD, p[0], EPOLLIN));
	SHOW(ctl(ep, EPOLL_CTL_DEL, p[0], 0));
	SHOW(ctl(ep, EPOLL_CTL_ADD, file, EPOLLIN));
	SHOW(ctl(ep, EPOLL_CTL_ADD, 0x7777, EPOLLIN));
	SHOW(ctl(0x7777, EPOLL_CTL_ADD, e, EPOLLIN));
	SHOW(ctl(p[0], EPOLL_CTL_ADD, e, EPOLLIN));
	SHOW(ctl(ep, EPOLL_CTL_ADD, ep, EPOLLIN));
	SHOW(ctl(ep, 77, e, EPOLLIN));
	SHOW(ctl(ep, EPOLL_CTL_MOD, e, EPOLLIN | EPOLLEXCLUSIVE));
	SHOW(ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT));
	SHOW(ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN | EPOLLEXCLUSIVE));
	SHOW(ctl(ep, EPOLL_CTL_MOD, p[0], EPOLLIN));
	SHOW(epoll_ctl(ep, EPOLL_CTL_DEL, p[0], NULL));
	SHOW(epoll_wait(ep, ev, 0, 0));
	volatile int negative = -1;
	SHOW(epoll_wait(ep, ev, negative, 0));
	SHOW(epoll_wait(p[0], ev, 4, 0));
	SHOW(epoll_wait(0x7777, ev, 4, 0));
	SHOW(syscall(SYS_epoll_wait, ep, 16, 4, 0));
	SHOW(epoll_wait(ep, ev, 4, 0));
	int64_t begin = now(CLOCK_MONOTONIC);
	SHOW(epoll_wait(ep, ev, 4, 2));
	CHECK(now(CLOCK_MONOTONIC) - begin >= 2 * MSEC);
	int r = epoll_pwait2(ep, ev, 4, &(struct timespec){0, MSEC}, NULL);
	CHECK(r == 0 || (r == -1 && errno == ENOSYS));

	// An epoll instance can itself be polled.
	int outer = epoll_create1(0);
	SHOW(ctl(outer, EPOLL_CTL_ADD, ep, EPOLLIN));
	SHOW(epoll_wait(outer, ev, 4, 0));
	CHECK(eventfd_write(e, 1) == 0);
	SHOW(epoll_wait(outer, ev, 4, 0));
	printf("it is the inner one: %d\n", ev[0].data.fd == ep);
	SHOW(epoll_wait(ep, ev, 4, 0));
	eventfd_t v;
	CHECK(eventfd_read(e, &v) == 0);
	SHOW(epoll_wait(outer, ev, 4, 0));
	SHOW(ctl(ep, EPOLL_CTL_ADD, outer, EPOLLIN)); // a circle
	// Nesting has a limit.
	int chain = ep, deep = 0;
	for (; deep < 10; deep++) {
		int next = epoll_create1(0);
		if (ctl(next, EPOLL_CTL_ADD, chain, EPOLLIN) != 0)
			break;
		chain = next;
	}
	printf("nested %d more: %s\n", deep, errname(errno));
	return 0;
}
