// How long a receiver waits: MSG_WAITALL, SO_RCVLOWAT, MSG_PEEK, MSG_TRUNC, and reads of zero bytes.
#include "inet.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

static void *slowly(void *fd)
{
	for (const char *s = "one two three"; *s; s++) {
		CHECK(write(*(int *)fd, s, 1) == 1);
		usleep(500);
	}
	return NULL;
}

static void show(const char *what, const char *buf, long n)
{
	printf("%s: %ld %.*s %s\n", what, n, n > 0 ? (int)n : 0, buf, n < 0 ? errname(errno) : "");
}

static void settle(int s, int want)
{
	int n = 0;
	while (n < want)
		CHECK(ioctl(s, FIONREAD, &n) == 0);
}

static void streams(int a, int b)
{
	char buf[100];
	struct iovec v[2] = {{buf, 2}, {buf + 2, 2}};
	pthread_t t = start(slowly, &a);
	show("wait for all", buf, recv(b, buf, 7, MSG_WAITALL));
	finish(t);
	settle(b, 6);
	show("peek", buf, recv(b, buf, 3, MSG_PEEK));
	show("readv", buf, readv(b, v, 2));
	show("read nothing", buf, read(b, buf, 0));
	show("rest", buf, read(b, buf, 100));
	show("read nothing", buf, read(b, buf, 0));

	int low = 5;
	CHECK(setsockopt(b, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low) == 0);
	t = start(slowly, &a);
	show("at least 5", buf, recv(b, buf, 5, 0));
	finish(t);
	settle(b, 8);
	show("all there is", buf, recv(b, buf, 100, 0));
	CHECK(send(a, "x", 1, 0) == 1);
	show("without waiting", buf, recv(b, buf, 100, MSG_DONTWAIT | MSG_WAITALL));
	CHECK(send(a, "last", 4, 0) == 4 && shutdown(a, SHUT_WR) == 0);
	show("to the end", buf, recv(b, buf, 100, MSG_WAITALL));
	show("the end", buf, recv(b, buf, 100, MSG_WAITALL));
}

static void low_water_poll(void)
{
	int s[2], low = 5;
	char buf[10];
	connection(s);
	struct pollfd p = {s[1], POLLIN, 0};
	CHECK(setsockopt(s[1], SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low) == 0);
	CHECK(send(s[0], "1234", 4, 0) == 4);
	settle(s[1], 4);
	SHOW(poll(&p, 1, 0));
	CHECK(send(s[0], "5", 1, 0) == 1);
	SHOW(poll(&p, 1, -1));
	show("five", buf, recv(s[1], buf, 10, 0));
}

static void truncated(void)
{
	int s[2];
	char buf[10] = "untouched";
	connection(s);
	CHECK(send(s[0], "0123456789", 10, 0) == 10);
	settle(s[1], 10);
	show("dropped", buf, recv(s[1], buf, 4, MSG_TRUNC));
	memcpy(buf, "untouched", 10);
	SHOW(recv(s[1], NULL, 3, MSG_TRUNC));
	show("after that", buf, recv(s[1], buf, 10, 0));
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0);
	CHECK(send(s[0], "0123456789", 10, 0) == 10 && send(s[0], "", 0, 0) == 0 && send(s[0], "x", 1, 0) == 1);
	show("length of all", buf, recv(s[1], buf, 4, MSG_TRUNC | MSG_PEEK));
	show("cut", buf, recv(s[1], buf, 4, 0));
	show("read nothing", buf, read(s[1], buf, 0));
	show("recv nothing", buf, recv(s[1], buf, 0, MSG_PEEK));
	show("empty", buf, recv(s[1], buf, 10, 0));
	show("recv nothing", buf, recv(s[1], buf, 0, 0));
	show("none", buf, recv(s[1], buf, 10, MSG_DONTWAIT));
	show("errors", buf, recv(s[1], buf, 10, MSG_ERRQUEUE | MSG_DONTWAIT));
	CHECK((s[0] = socket(AF_INET, SOCK_DGRAM, 0)) >= 0);
	show("errors", buf, recv(s[0], buf, 10, MSG_ERRQUEUE));
}

int main(void)
{
	int s[2];
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0);
	streams(s[0], s[1]);
	connection(s);
	streams(s[0], s[1]);
	low_water_poll();
	truncated();
	return 0;
}
