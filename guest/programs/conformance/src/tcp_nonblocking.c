// Non-blocking TCP: connect in progress, EAGAIN in all calls, full buffers, time-outs, poll states, wake-up by shutdown.
#include "inet.h"

#include <poll.h>
#include <sys/ioctl.h>

static int poll_for(int fd, int events)
{
	struct pollfd p = {.fd = fd, .events = events};
	CHECK(poll(&p, 1, -1) == 1);
	return p.revents;
}

static void *blocked_accept(void *arg)
{
	int r = accept((int)(intptr_t)arg, NULL, NULL);
	return (void *)(intptr_t)(r < 0 ? errno : 0);
}

static void *blocked_recv(void *arg)
{
	char c;
	ssize_t r = recv((int)(intptr_t)arg, &c, 1, 0);
	return (void *)(intptr_t)(r < 0 ? errno : r);
}

int main(void)
{
	static char big[1 << 20];
	char buf[100];
	int l = listener(), v, pair[2];
	socklen_t n = sizeof v;
	CHECK(fcntl(l, F_SETFL, O_NONBLOCK) == 0);
	SHOW(accept(l, NULL, NULL));
	int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	SHOW(fcntl(s, F_GETFD));
	int r = connect_to(s, port_of(l));
	CHECK(r == 0 || errno == EINPROGRESS);
	printf("writable %d\n", (poll_for(s, POLLOUT) & (POLLOUT | POLLERR)) == POLLOUT);
	SHOW(getsockopt(s, SOL_SOCKET, SO_ERROR, &v, &n));
	printf("error %d\n", v);
	SHOW(connect_to(s, port_of(l)) == 0 || errno == EISCONN);
	CHECK(poll_for(l, POLLIN) & POLLIN);
	int c = accept4(l, NULL, NULL, SOCK_NONBLOCK);
	CHECK(c >= 0);
	SHOW(recv(s, buf, 10, 0));
	SHOW(recv(c, buf, 10, 0));
	// Full in one direction, free in the other.
	long sent = 0;
	for (int tries = 0; tries < 5; tries++) {
		ssize_t w;
		while ((w = send(s, big, sizeof big, 0)) > 0)
			sent += w;
		CHECK(errno == EAGAIN);
		nap();
	}
	CHECK(sent > 0);
	struct pollfd p = {.fd = s, .events = POLLOUT | POLLIN};
	SHOW(poll(&p, 1, 0));
	SHOW(send(c, "other way", 9, 0));
	printf("in %d\n", (poll_for(s, POLLIN) & POLLIN) != 0);
	SHOW(recv(s, buf, 100, 0));
	long got = 0;
	while (got < sent) {
		poll_for(c, POLLIN);
		ssize_t k = recv(c, big, sizeof big, 0);
		CHECK(k > 0);
		got += k;
	}
	SHOW(recv(c, buf, 10, 0));
	printf("writable again %d\n", (poll_for(s, POLLOUT) & POLLOUT) != 0);
	SHOW(send(s, "counted", 7, 0));
	poll_for(c, POLLIN);
	SHOW(ioctl(c, FIONREAD, &v));
	printf("to read %d\n", v);
	SHOW(ioctl(c, FIONBIO, &(int){0}));
	SHOW(fcntl(c, F_GETFL) & O_NONBLOCK);
	SHOW(shutdown(s, SHUT_WR));
	poll_for(c, POLLRDHUP);
	printf("rdhup %d\n", (poll_for(c, POLLIN | POLLRDHUP) & (POLLIN | POLLRDHUP)) == (POLLIN | POLLRDHUP));

	// Refused, reported later.
	int nobody = tcp();
	CHECK(bind_to(nobody, 0) == 0);
	int f = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	r = connect_to(f, port_of(nobody));
	if (r == -1 && errno == EINPROGRESS) {
		poll_for(f, POLLOUT);
		n = sizeof v;
		CHECK(getsockopt(f, SOL_SOCKET, SO_ERROR, &v, &n) == 0);
		errno = v;
	}
	printf("refused: %s\n", errname(errno));

	// Time-outs of blocking sockets.
	connection(pair);
	struct timeval tv = {0, 2000};
	SHOW(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv));
	int64_t begin = now(CLOCK_MONOTONIC);
	SHOW(recv(pair[0], buf, 1, 0));
	CHECK(now(CLOCK_MONOTONIC) - begin >= 2 * MSEC);
	SHOW(setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv));
	while ((r = send(pair[0], big, sizeof big, 0)) > 0)
		;
	printf("send: %s\n", errname(errno));

	// shutdown wakes waiting threads.
	CHECK(fcntl(l, F_SETFL, 0) == 0);
	pthread_t t = start(blocked_accept, (void *)(intptr_t)l);
	nap();
	SHOW(shutdown(l, SHUT_RDWR));
	printf("accept: %s\n", errname((intptr_t)finish(t)));
	connection(pair);
	t = start(blocked_recv, (void *)(intptr_t)pair[0]);
	nap();
	SHOW(shutdown(pair[0], SHUT_RD));
	printf("recv: %ld\n", (long)finish(t));
	return 0;
}
