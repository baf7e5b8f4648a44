// epoll: level and edge triggering, one shot, re-arming, data, order of readiness, entries of closed descriptors.
#include "conformance.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

static int ep;

static void ctl(int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event ev = {.events = events, .data.u64 = data};
	CHECK(epoll_ctl(ep, op, fd, &ev) == 0);
}

static int by_data(const void *a, const void *b)
{
	const struct epoll_event *x = a, *y = b;
	return x->data.u64 < y->data.u64 ? -1 : 1;
}

static void wait_(const char *what)
{
	struct epoll_event ev[10];
	int n = epoll_wait(ep, ev, LEN(ev), 0);
	CHECK(n >= 0);
	qsort(ev, n, sizeof ev[0], by_data);
	printf("%s:", what);
	for (int i = 0; i < n; i++)
		printf(" %lu(%s%s%s%s%s)", ev[i].data.u64, ev[i].events & EPOLLIN ? "I" : "", ev[i].events & EPOLLOUT ? "O" : "",
		       ev[i].events & EPOLLHUP ? "H" : "", ev[i].events & EPOLLERR ? "E" : "", ev[i].events & EPOLLRDHUP ? "R" : "");
	printf("\n");
}

int main(void)
{
	int p[2], q[2], pair[2];
	char buf[10];
	CHECK((ep = epoll_create1(EPOLL_CLOEXEC)) >= 0 && pipe(p) == 0 && pipe(q) == 0);
	SHOW(fcntl(ep, F_GETFD));
	ctl(EPOLL_CTL_ADD, p[0], EPOLLIN, 1);
	ctl(EPOLL_CTL_ADD, q[0], EPOLLIN | EPOLLET, 2);
	wait_("nothing");
	CHECK(write(p[1], "ab", 2) == 2 && write(q[1], "ab", 2) == 2);
	wait_("both");
	wait_("level only");
	CHECK(read(p[0], buf, 1) == 1 && read(q[0], buf, 1) == 1);
	wait_("level still");
	CHECK(write(q[1], "c", 1) == 1);
	wait_("new edge");
	CHECK(read(p[0], buf, 1) == 1);
	wait_("all taken");
	// Changing an edge-triggered entry that is ready reports it anew.
	ctl(EPOLL_CTL_MOD, q[0], EPOLLIN | EPOLLET, 22);
	wait_("modified");
	CHECK(close(q[1]) == 0);
	wait_("hung up");
	wait_("once");

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	ctl(EPOLL_CTL_ADD, pair[0], EPOLLIN | EPOLLOUT | EPOLLONESHOT, 3);
	wait_("one shot");
	wait_("disarmed");
	CHECK(write(pair[1], "x", 1) == 1);
	wait_("still disarmed");
	ctl(EPOLL_CTL_MOD, pair[0], EPOLLIN | EPOLLRDHUP, 3);
	wait_("armed again");
	CHECK(shutdown(pair[1], SHUT_WR) == 0);
	wait_("peer shut down");
	CHECK(close(pair[1]) == 0);
	wait_("peer closed");
	ctl(EPOLL_CTL_MOD, pair[0], 0, 3);
	wait_("hang-up is always told");
	CHECK(close(pair[0]) == 0);
	wait_("closed descriptors leave");

	// A duplicate keeps the entry alive after the descriptor is closed.
	int e = eventfd(1, 0), twin = dup(e);
	ctl(EPOLL_CTL_ADD, e, EPOLLIN, 4);
	ctl(EPOLL_CTL_ADD, twin, EPOLLIN, 5);
	wait_("twins");
	CHECK(close(e) == 0);
	wait_("one closed");
	CHECK(close(twin) == 0);
	wait_("both closed");

	// The limit of events; the events left out are first the next time.
	int fd[6];
	for (int i = 0; i < LEN(fd); i++) {
		fd[i] = eventfd(1, 0);
		ctl(EPOLL_CTL_ADD, fd[i], EPOLLIN, 10 + i);
	}
	int seen[6] = {0};
	for (int round = 0; round < 3; round++) {
		struct epoll_event ev[2];
		CHECK(epoll_wait(ep, ev, 2, 0) == 2);
		seen[ev[0].data.u64 - 10]++;
		seen[ev[1].data.u64 - 10]++;
	}
	for (int i = 0; i < LEN(seen); i++)
		printf("%d", seen[i]);
	printf("\n");
	ctl(EPOLL_CTL_DEL, fd[0], 0, 0);
	wait_("one deleted");
	return 0;
}
