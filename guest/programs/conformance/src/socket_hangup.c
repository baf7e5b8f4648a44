// Events of poll and epoll for sockets whose other side shuts down, closes or resets, level- and edge-triggered.
#include "inet.h"

#include <poll.h>
#include <sys/epoll.h>

static int watch(int s, uint32_t events)
{
	int e = epoll_create1(0);
	struct epoll_event ev = {.events = events, .data.fd = s};
	CHECK(e >= 0 && epoll_ctl(e, EPOLL_CTL_ADD, s, &ev) == 0);
	return e;
}

static const char *text(uint32_t events)
{
	static char buf[100];
	snprintf(buf, sizeof buf, "%s%s%s%s%s%s", events & EPOLLIN ? " IN" : "", events & EPOLLOUT ? " OUT" : "",
		 events & EPOLLRDHUP ? " RDHUP" : "", events & EPOLLHUP ? " HUP" : "", events & EPOLLERR ? " ERR" : "",
		 events & EPOLLPRI ? " PRI" : "");
	return buf;
}

// expect waits until the level-triggered events have the final value, and
// prints the events of both triggers.
static void expect(int s, int level, int edge, uint32_t want, const char *what)
{
	struct pollfd p = {s, POLLIN | POLLOUT | POLLRDHUP, 0};
	do
		CHECK(poll(&p, 1, -1) == 1);
	while (((uint32_t)p.revents & want) != want);
	struct epoll_event ev = {0};
	printf("%s: poll%s", what, text(p.revents));
	int n = epoll_wait(level, &ev, 1, 0);
	printf(", level %d%s", n, n > 0 ? text(ev.events) : "");
	n = epoll_wait(edge, &ev, 1, 0);
	printf(", edge %d%s", n, n > 0 ? text(ev.events) : "");
	n = epoll_wait(edge, &ev, 1, 0);
	printf(", again %d\n", n);
}

static void pair(int s[2], int family)
{
	if (family == AF_UNIX)
		CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0);
	else
		connection(s);
}

static void run(int family)
{
	int s[2], level, edge;
	const uint32_t all = EPOLLIN | EPOLLOUT | EPOLLRDHUP;
	puts(family == AF_UNIX ? "unix" : "tcp");
	for (int how = 0; how < 6; how++) {
		pair(s, family);
		level = watch(s[0], all);
		edge = watch(s[0], all | EPOLLET);
		expect(s[0], level, edge, EPOLLOUT, "fresh");
		switch (how) {
		case 0:
			CHECK(shutdown(s[1], SHUT_WR) == 0);
			expect(s[0], level, edge, EPOLLRDHUP, "other side shut down");
			CHECK(shutdown(s[0], SHUT_WR) == 0);
			expect(s[0], level, edge, EPOLLHUP, "both shut down");
			break;
		case 1:
			CHECK(close(s[1]) == 0);
			expect(s[0], level, edge, EPOLLRDHUP, "other side closed");
			break;
		case 2:
			CHECK(send(s[0], "unread", 6, 0) == 6);
			struct pollfd p = {s[1], POLLIN, 0};
			CHECK(poll(&p, 1, -1) == 1);
			CHECK(close(s[1]) == 0);
			expect(s[0], level, edge, EPOLLERR, "closed with unread data");
			SHOW(recv(s[0], &(char){0}, 1, 0));
			expect(s[0], level, edge, EPOLLHUP, "after the error");
			break;
		case 3:
			CHECK(send(s[1], "data", 4, 0) == 4);
			expect(s[0], level, edge, EPOLLIN, "data");
			CHECK(shutdown(s[1], SHUT_WR) == 0);
			expect(s[0], level, edge, EPOLLRDHUP, "data and end");
			SHOW(recv(s[0], (char[10]){0}, 10, 0));
			expect(s[0], level, edge, EPOLLRDHUP, "end");
			break;
		case 4:
			CHECK(shutdown(s[0], SHUT_RD) == 0);
			expect(s[0], level, edge, EPOLLRDHUP, "own reading shut down");
			break;
		case 5:
			CHECK(shutdown(s[0], SHUT_WR) == 0);
			expect(s[0], level, edge, EPOLLOUT, "own writing shut down");
			CHECK(close(s[1]) == 0);
			expect(s[0], level, edge, EPOLLHUP, "and closed by the other");
			break;
		}
		close(s[0]), close(s[1]), close(level), close(edge);
	}
}

int main(void)
{
	on_signal(SIGPIPE, SIG_IGN, 0);
	run(AF_UNIX);
	run(AF_INET);

	// A refused connection, and a socket that was never connected.
	int unused = tcp(), s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK(bind_to(unused, 0) == 0);
	int level = watch(s, EPOLLIN | EPOLLOUT), edge = watch(s, EPOLLIN | EPOLLOUT | EPOLLET);
	expect(s, level, edge, EPOLLHUP, "never connected");
	errno = 0;
	CHECK(connect_to(s, port_of(unused)) == -1 && (errno == EINPROGRESS || errno == ECONNREFUSED));
	expect(s, level, edge, EPOLLHUP | EPOLLERR, "refused");
	int error;
	socklen_t n = sizeof error;
	CHECK(getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &n) == 0);
	puts(errname(error));
	expect(s, level, edge, EPOLLHUP, "after the error");
	return 0;
}
